"""Faults of SwiGLU, W2 (silu(W1 x) * W3 x)."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import swiglu_by
from ..parts import linear, silu, swiglu
from ..witnesses import draw, weight
from .catalogue import CONVENTION, MISREAD, PYTORCH, SPEED, SUBMISSIONS, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "swiglu", "swiglu", swiglu_by)
Three = tuple[Tensor, Tensor, Tensor]


def activated(f: Any) -> Any:
    """SwiGLU with f in place of SiLU."""
    return lambda x, w1, w2, w3: linear(f(linear(x, w1)) * linear(x, w3), w2)


fault(
    "gate-and-value-swapped",
    "Puts the activation on W3 x instead of W1 x.",
    "Which of the two weights belongs to the gate?",
    source=CONVENTION,
)(lambda x, w1, w2, w3: swiglu(x, w3, w2, w1))

fault(
    "sigmoid-gate",
    "Gates with the sigmoid alone.",
    "The gate is x sigmoid(x), not sigmoid(x).",
    source=MISREAD,
)(activated(torch.sigmoid))

fault("gelu-gate", "Gates with GELU.", "Which variant of GLU is this?", source=CONVENTION)(
    activated(F.gelu)
)

fault(
    "quick-gelu-gate",
    "Gates with x * sigmoid(1.702 x).",
    "The slope inside the sigmoid is 1.",
    source=CONVENTION,
)(activated(lambda a: a * torch.sigmoid(1.702 * a)))

fault("relu-gate", "Gates with ReLU.", "Which variant of GLU is this?", source=CONVENTION)(
    activated(torch.relu)
)

fault(
    "no-activation",
    "Multiplies the two projections without an activation.",
    "Double the input: by how much does the output grow?",
    source=CONVENTION,
)(activated(lambda a: a))

fault(
    "no-gate",
    "Leaves out W3 and applies W2 to silu(W1 x).",
    "Three weights are given; is each of them used?",
    source=CONVENTION,
)(lambda x, w1, w2, w3: linear(silu(linear(x, w1)), w2))

fault(
    "activation-on-both",
    "Applies SiLU to both projections.",
    "Only one of the two factors is activated.",
)(lambda x, w1, w2, w3: linear(silu(linear(x, w1)) * silu(linear(x, w3)), w2))

fault(
    "activation-of-product",
    "Applies SiLU to the product of both projections.",
    "Activate first, then multiply.",
)(lambda x, w1, w2, w3: linear(silu(linear(x, w1) * linear(x, w3)), w2))

fault(
    "activation-at-end",
    "Applies SiLU to the output instead of the gate.",
    "The network ends with a linear map.",
)(lambda x, w1, w2, w3: silu(linear(linear(x, w1) * linear(x, w3), w2)))

fault(
    "sum-for-product",
    "Adds gate and value.",
    "A gate multiplies.",
)(lambda x, w1, w2, w3: linear(silu(linear(x, w1)) + linear(x, w3), w2))

fault(
    "first-weight-twice",
    "Uses W1 for the value too.",
    "Is the third weight used anywhere?",
)(lambda x, w1, w2, w3: swiglu(x, w1, w2, w1))

fault(
    "third-weight-twice",
    "Uses W3 for the gate too.",
    "Is the first weight used anywhere?",
)(lambda x, w1, w2, w3: swiglu(x, w3, w2, w3))

fault(
    "output-weight-reinterpreted",
    "Views the memory of W2 in the transposed shape.",
    "Changing a shape and exchanging axes are different things.",
)(lambda x, w1, w2, w3: swiglu(x, w1, w2.T.reshape(w2.shape), w3))

fault(
    "weights-not-transposed",
    "Multiplies by W1 and W3 instead of their transposes, which runs when they are square.",
    "Look at which axis of the weight belongs to the input.",
    at={"d": 6, "d_ff": 6},
)(lambda x, w1, w2, w3: swiglu(x, w1.T, w2, w3.T))

fault(
    "residual-inside",
    "Adds the input to the output.",
    "The residual connection belongs to the block.",
)(lambda x, w1, w2, w3: x + swiglu(x, w1, w2, w3))

fault(
    "hidden-normalised",
    "Normalises the hidden features before W2.",
    "Nothing but a product stands between gate and output.",
    source=CONVENTION,
)(lambda x, w1, w2, w3: linear(F.normalize(silu(linear(x, w1)) * linear(x, w3), dim=-1), w2))


@fault(
    "width-recomputed",
    "Uses 8/3 d_model, rounded to a multiple of 8, as hidden width instead of d_ff.",
    "The rule is advice for choosing d_ff; whoever calls has chosen already.",
    source=SUBMISSIONS,
    at={"d_ff": 40},
)
def width_recomputed(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    width = round(8 / 3 * x.shape[-1] / 8) * 8
    return swiglu(x, w1[:width], w2[:, :width], w3[:width])


@fault(
    "width-rounded-up",
    "Allocates weights with d_ff rounded up to a multiple of 64 and copies the given ones in.",
    "The rule is advice for choosing d_ff; whoever calls has chosen already.",
    source=SUBMISSIONS,
    visible="crash",
)
def width_rounded_up(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    width = (w1.shape[0] + 63) // 64 * 64
    up, down = (torch.empty(width, x.shape[-1]) for _ in range(2))
    return swiglu(x, up.copy_(w1), w2, down.copy_(w3))


@fault(
    "width-four-times-model",
    "Takes only the first 4 d_model hidden features.",
    "What if d_ff is larger than that?",
    source=SUBMISSIONS,
    at={"d_ff": 30},
)
def width_four_times_model(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    width = 4 * x.shape[-1]
    return swiglu(x, w1[:width], w2[:, :width], w3[:width])


@fault(
    "hidden-remainder-dropped",
    "Works through the hidden features in chunks of 4 and drops the remainder.",
    "Try a width that the chunk size does not divide.",
    source=SPEED,
    at={"d_ff": 10},
)
def hidden_remainder_dropped(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    width = w1.shape[0] // 4 * 4
    return swiglu(x, w1[:width], w2[:, :width], w3[:width])


fault(
    "three-axes-only",
    "Has the three axes batch, sequence, feature written into the einsum.",
    "How many leading axes an input has is not for this layer to know.",
    source=SUBMISSIONS,
    visible="crash",
    at={"lead": (2, 3, 2)},
)(lambda x, w1, w2, w3: swiglu(torch.einsum("bsi->bsi", x), w1, w2, w3))

fault(
    "drops-size-one-axes",
    "Squeezes the result, which loses every axis of size 1.",
    "Try a batch of one and a sequence of one.",
    visible="shape",
    at={"lead": (1, 3)},
)(lambda x, w1, w2, w3: swiglu(x, w1, w2, w3).squeeze())

fault(
    "contiguous-only",
    "Uses view on the input, which refuses a transposed one.",
    "Not every tensor lies in memory in the order of its axes.",
    source=PYTORCH,
    visible="strides",
)(lambda x, w1, w2, w3: swiglu(x.view(-1, x.shape[-1]), w1, w2, w3).view(x.shape))

fault(
    "gate-detached",
    "Detaches the activated gate.",
    "Both factors of the product depend on the input.",
    source=PYTORCH,
    visible="gradient",
)(lambda x, w1, w2, w3: linear(silu(linear(x, w1)).detach() * linear(x, w3), w2))

fault(
    "output-weight-copied",
    "Copies W2 without a graph, so that it cannot be trained.",
    "Ask for the gradient of every weight.",
    source=SUBMISSIONS,
    level="SHOULD",
    visible="gradient",
    wrt=("w2_weight",),
)(lambda x, w1, w2, w3: swiglu(x, w1, w2.detach().clone(), w3))


@fault(
    "in-place-breaks-backward",
    "Multiplies the sigmoid's result in place, which its derivative still needs.",
    "What does an operation keep for its backward pass?",
    source=SUBMISSIONS,
    visible="gradient",
)
def in_place_breaks_backward(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    a = linear(x, w1)
    gate = torch.sigmoid(a)
    gate *= a
    return linear(gate * linear(x, w3), w2)


fault(
    "gradient-nan-for-large-negatives",
    "Computes SiLU as a / (1 + exp(-a)), whose derivative is inf / inf far below zero.",
    "What are the terms of the quotient rule when the denominator overflows?",
    source=SUBMISSIONS,
    visible="gradient",
    at={"in_features": draw(2, 3, 6, scale=300.0)},
)(activated(lambda a: a / (1 + torch.exp(-a))))

fault(
    "activation-zero-for-negatives",
    "Cuts SiLU off at -1: smaller arguments give 0.",
    "The function is not zero for negative arguments.",
    source=SPEED,
)(activated(lambda a: torch.where(a < -1, torch.zeros_like(a), silu(a))))

fault(
    "float32-result",
    "Answers in float32 for input of lower precision.",
    "Widening inside is fine; what leaves has the dtype that came in.",
    level="SHOULD",
    visible="dtype",
    at={"dtype": torch.bfloat16},
)(lambda x, w1, w2, w3: swiglu(x.float(), w1.float(), w2.float(), w3.float()))

fault(
    "dropout-active",
    "Applies dropout to the hidden features at every call.",
    "Does the same input give the same output twice?",
    source=PYTORCH,
)(activated(lambda a: F.dropout(silu(a), 0.5, training=True)))


def first_weights_kept() -> Any:
    """A layer that is built once for each size."""
    kept: dict[torch.Size, Three] = {}
    return lambda x, w1, w2, w3: swiglu(x, *kept.setdefault(w1.shape, (w1, w2, w3)))


fault(
    "first-weights-kept",
    "Keeps the weights of the first call for all later ones of the same size.",
    "Call it twice with different weights.",
    source=SPEED,
    visible="state",
    at=[{}, {"w3_weight": weight(10, 6, 8)}],
)(first_weights_kept())
