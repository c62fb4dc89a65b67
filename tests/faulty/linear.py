"""Faults of Linear, x W^T."""

from typing import Any

import torch
from torch import Tensor, nn

from ..adapting import linear_by
from ..parts import linear
from ..witnesses import draw
from .catalogue import PYTORCH, SPEED, SUBMISSIONS, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "linear", "linear", linear_by)

fault(
    "weight-not-transposed",
    "Multiplies by W instead of W^T, which runs only when the weight is square.",
    "Look at which axis of the weight belongs to the input.",
    at={"d_in": 4, "d_out": 4},
)(lambda x, w: x @ w)

fault(
    "weight-reinterpreted",
    "Views the weight's memory as (d_in, d_out) instead of transposing it.",
    "Changing a shape and exchanging axes are different things.",
)(lambda x, w: x @ w.reshape(w.shape[1], w.shape[0]))

fault(
    "bias-added",
    "Adds a small constant to every output.",
    "The definition has no bias.",
    source=SUBMISSIONS,
)(lambda x, w: linear(x, w) + 0.009)

fault(
    "output-scaled",
    "Divides the output by the root of the input width.",
    "Such a factor belongs to the initialisation, if anywhere.",
)(lambda x, w: linear(x, w) / w.shape[1] ** 0.5)

fault(
    "activation-inside",
    "Applies a ReLU to the output.",
    "Check on negative outputs: a linear map keeps their sign.",
)(lambda x, w: torch.relu(linear(x, w)))

fault(
    "diagonal-only",
    "Repeats an index in the einsum, so that only the weight's diagonal is used.",
    "Each letter of an einsum means one axis; a letter used twice in one operand means a diagonal.",
    source=SUBMISSIONS,
    at={"d_in": 4, "d_out": 4},
)(lambda x, w: torch.einsum("...i,ii->...i", x, w))

fault(
    "sums-over-batch",
    "Leaves the batch axis out of the result, so that the einsum adds up the batch.",
    "An index that is missing on the right of an einsum is summed over.",
    source=SUBMISSIONS,
    visible="shape",
)(lambda x, w: torch.einsum("b...i,oi->...o", x, w))

fault(
    "three-axes-only",
    "Has the three axes batch, sequence, feature written into the einsum.",
    "How many leading axes an input has is not for this layer to know.",
    source=SUBMISSIONS,
    visible="crash",
    at={"lead": (2, 3, 2)},
)(lambda x, w: torch.einsum("bsi,oi->bso", x, w))

fault(
    "two-axes-only",
    "Uses a matrix product that accepts nothing but two axes.",
    "Try an input with a batch and a sequence axis.",
    visible="crash",
)(lambda x, w: torch.mm(x, w.t()))

fault(
    "stays-flat",
    "Flattens the leading axes and does not restore them.",
    "Compare the shape of the output with that of the input.",
    visible="shape",
)(lambda x, w: x.reshape(-1, x.shape[-1]) @ w.T)

fault(
    "drops-size-one-axes",
    "Squeezes the output, which loses every axis of size 1.",
    "Name the axis that should go; others may have size 1 too.",
    visible="shape",
    at={"lead": (2, 1)},
)(lambda x, w: (w @ x.unsqueeze(-1)).squeeze())

fault(
    "contiguous-only",
    "Uses view on the input, which refuses a transposed one.",
    "Not every tensor lies in memory in the order of its axes.",
    source=PYTORCH,
    visible="strides",
)(lambda x, w: (x.view(-1, x.shape[-1]) @ w.T).view(*x.shape[:-1], w.shape[0]))


@fault(
    "low-precision-sum",
    "Keeps the running sum of the products in the low precision of the input.",
    "What happens to 256 + 1 in bfloat16?",
    level="SHOULD",
    at=lambda: {
        "d_in": 600,
        "d_out": 1,
        "weights": torch.ones(1, 600, dtype=torch.bfloat16),
        "in_features": torch.ones(2, 600, dtype=torch.bfloat16),
    },
)
def low_precision_sum(x: Tensor, w: Tensor) -> Tensor:
    total = torch.zeros(*x.shape[:-1], w.shape[0], dtype=x.dtype)
    for i in range(x.shape[-1]):
        total = total + x[..., i, None] * w[:, i]
    return total


fault(
    "float32-result",
    "Answers in float32 whatever the dtype of input and weight.",
    "Widening inside is fine; what leaves the layer has the dtype that came in.",
    level="SHOULD",
    visible="dtype",
    at={"dtype": torch.bfloat16},
)(lambda x, w: x.float() @ w.float().T)

fault(
    "input-detached",
    "Detaches the input, so that no gradient reaches earlier layers.",
    "Ask for the gradient with respect to the input.",
    source=PYTORCH,
    visible="gradient",
)(lambda x, w: linear(x.detach(), w))


@fault(
    "no-grad",
    "Computes under torch.no_grad.",
    "What is computed without a graph cannot be trained.",
    source=PYTORCH,
    visible="gradient",
)
def no_grad(x: Tensor, w: Tensor) -> Tensor:
    with torch.no_grad():
        return linear(x, w)


@fault(
    "weights-copied",
    "Copies the weights into a new parameter, so that the given tensor gets no gradient.",
    "Follow the gradient back from the output: where does the given weight enter?",
    source=SUBMISSIONS,
    level="SHOULD",
    visible="gradient",
    wrt=("weights",),
)
def weights_copied(x: Tensor, w: Tensor) -> Tensor:
    parameter = nn.Parameter(torch.empty_like(w))
    parameter.data.copy_(w)
    return linear(x, parameter)


class Transposed(torch.autograd.Function):
    """The right value with a backward pass that takes the wrong orientation of the weight."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(w)
        return linear(x, w)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:
        (w,) = ctx.saved_tensors
        return dy @ w.reshape(w.shape[1], w.shape[0]).T, None


fault(
    "backward-wrong-orientation",
    "The hand-written backward pass multiplies by the weight in the wrong orientation.",
    "Check the derivative against finite differences, with a weight that is not symmetric.",
    visible="gradient",
)(Transposed.apply)


@fault(
    "weights-initialised-again",
    "Wraps the given weight without copying it and initialises it anew after use.",
    "The caller still owns the weight; a name ending in an underscore changes it.",
    source=PYTORCH,
    visible="purity",
)
def weights_initialised_again(x: Tensor, w: Tensor) -> Tensor:
    result = linear(x, w.clone())
    nn.init.normal_(w.detach())
    return result


def first_weights_kept() -> Any:
    """A layer that is built at the first call of a given size and never filled again."""
    layers: dict[torch.Size, Tensor] = {}
    return lambda x, w: linear(x, layers.setdefault(w.shape, w))


fault(
    "first-weights-kept",
    "Keeps the weights of the first call for all later ones of the same size.",
    "Call it twice with different weights.",
    source=SPEED,
    visible="state",
    at=[{}, {"weights": draw(4, 5, seed=8)}],
)(first_weights_kept())


@fault(
    "output-buffer-reused",
    "Writes every result of one shape into the same buffer.",
    "Keep an earlier result, call again, and look at the earlier one.",
    source=SPEED,
    visible="purity",
    at=[{}, {"in_features": draw(2, 3, 5, seed=9)}],
)
def output_buffer_reused(x: Tensor, w: Tensor) -> Tensor:
    result = linear(x, w)
    buffer = BUFFERS.setdefault(result.shape, torch.empty_like(result, requires_grad=False))
    return buffer.detach().copy_(result)


BUFFERS: dict[torch.Size, Tensor] = {}
