"""Faults of Linear, x W^T."""

from typing import Any

import torch
from torch import Tensor, nn

from ..adapting import linear_by
from ..parts import linear
from ..witnesses import draw
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "linear", "linear", linear_by)

fault("weight-not-transposed", at={"d_in": 4, "d_out": 4})(lambda x, w: x @ w)

fault("weight-reinterpreted")(lambda x, w: x @ w.reshape(w.shape[1], w.shape[0]))

fault("bias-added")(lambda x, w: linear(x, w) + 0.009)

fault("output-scaled")(lambda x, w: linear(x, w) / w.shape[1] ** 0.5)

fault("activation-inside")(lambda x, w: torch.relu(linear(x, w)))

fault("diagonal-only", at={"d_in": 4, "d_out": 4})(lambda x, w: torch.einsum("...i,ii->...i", x, w))

fault("sums-over-batch")(lambda x, w: torch.einsum("b...i,oi->...o", x, w))

fault("three-axes-only", at={"lead": (2, 3, 2)})(lambda x, w: torch.einsum("bsi,oi->bso", x, w))

fault("two-axes-only")(lambda x, w: torch.mm(x, w.t()))

fault("stays-flat")(lambda x, w: x.reshape(-1, x.shape[-1]) @ w.T)

fault("drops-size-one-axes", at={"lead": (2, 1)})(lambda x, w: (w @ x.unsqueeze(-1)).squeeze())

fault("contiguous-only")(
    lambda x, w: (x.view(-1, x.shape[-1]) @ w.T).view(*x.shape[:-1], w.shape[0])
)


@fault(
    "low-precision-sum",
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


fault("float32-result", at={"dtype": torch.bfloat16})(lambda x, w: x.float() @ w.float().T)

fault("input-detached")(lambda x, w: linear(x.detach(), w))


@fault("no-grad")
def no_grad(x: Tensor, w: Tensor) -> Tensor:
    with torch.no_grad():
        return linear(x, w)


@fault("weights-copied", wrt=("weights",))
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


fault("backward-wrong-orientation")(Transposed.apply)


@fault("weights-initialised-again")
def weights_initialised_again(x: Tensor, w: Tensor) -> Tensor:
    result = linear(x, w.clone())
    nn.init.normal_(w.detach())
    return result


def first_weights_kept() -> Any:
    """A layer that is built at the first call of a given size and never filled again."""
    layers: dict[torch.Size, Tensor] = {}
    return lambda x, w: linear(x, layers.setdefault(w.shape, w))


fault("first-weights-kept", at=[{}, {"weights": draw(4, 5, seed=8)}])(first_weights_kept())


@fault("output-buffer-reused", at=[{}, {"in_features": draw(2, 3, 5, seed=9)}])
def output_buffer_reused(x: Tensor, w: Tensor) -> Tensor:
    result = linear(x, w)
    buffer = BUFFERS.setdefault(result.shape, torch.empty_like(result, requires_grad=False))
    return buffer.detach().copy_(result)


BUFFERS: dict[torch.Size, Tensor] = {}
