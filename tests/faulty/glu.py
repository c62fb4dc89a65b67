"""Faults of GLU, sigmoid(x W1^T) * (x W2^T)."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import glu_by
from ..parts import glu, linear, silu
from ..witnesses import draw, weight
from .catalogue import CONVENTION, MISREAD, PYTORCH, SPEED, SUBMISSIONS, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "glu", "glu", glu_by)
FAR = {"in_features": draw(2, 3, 6, scale=300.0)}

fault(
    "gate-and-value-swapped",
    "Puts the sigmoid on the second projection instead of the first.",
    "Which of the two weights belongs to the gate?",
    source=CONVENTION,
)(lambda x, w1, w2: glu(x, w2, w1))

fault(
    "silu-gate",
    "Gates with SiLU.",
    "A gate lies between 0 and 1.",
    source=CONVENTION,
)(lambda x, w1, w2: silu(linear(x, w1)) * linear(x, w2))

fault(
    "no-activation",
    "Multiplies the two projections without a sigmoid.",
    "Double the input: does the gate saturate?",
    source=CONVENTION,
)(lambda x, w1, w2: linear(x, w1) * linear(x, w2))

fault(
    "tanh-gate",
    "Gates with tanh.",
    "A gate lies between 0 and 1.",
    source=CONVENTION,
)(lambda x, w1, w2: torch.tanh(linear(x, w1)) * linear(x, w2))

fault(
    "relu-gate",
    "Gates with ReLU.",
    "A gate lies between 0 and 1.",
    source=CONVENTION,
)(lambda x, w1, w2: torch.relu(linear(x, w1)) * linear(x, w2))

fault(
    "softmax-gate",
    "Gates with a softmax over the hidden features.",
    "Each gate is decided by its own feature alone.",
)(lambda x, w1, w2: torch.softmax(linear(x, w1), dim=-1) * linear(x, w2))

fault(
    "closed-gate",
    "Gates with one minus the sigmoid.",
    "Is the gate open where the projection is large?",
)(lambda x, w1, w2: torch.sigmoid(-linear(x, w1)) * linear(x, w2))

fault(
    "sigmoid-on-both",
    "Applies the sigmoid to both projections.",
    "The value passes without any activation.",
)(lambda x, w1, w2: torch.sigmoid(linear(x, w1)) * torch.sigmoid(linear(x, w2)))

fault(
    "sigmoid-of-product",
    "Applies the sigmoid to the product.",
    "Gate first, then multiply.",
)(lambda x, w1, w2: torch.sigmoid(linear(x, w1) * linear(x, w2)))

fault(
    "sigmoid-of-input",
    "Applies the sigmoid to the input instead of to its projection.",
    "The gate sees W1 x.",
    source=MISREAD,
)(lambda x, w1, w2: linear(torch.sigmoid(x), w1) * linear(x, w2))

fault(
    "sum-for-product",
    "Adds gate and value.",
    "A gate multiplies.",
)(lambda x, w1, w2: torch.sigmoid(linear(x, w1)) + linear(x, w2))

fault(
    "first-weight-twice",
    "Uses W1 for the value too.",
    "Is the second weight used anywhere?",
)(lambda x, w1, w2: glu(x, w1, w1))

fault(
    "second-weight-twice",
    "Uses W2 for the gate too.",
    "Is the first weight used anywhere?",
)(lambda x, w1, w2: glu(x, w2, w2))

fault(
    "weights-not-transposed",
    "Multiplies by the weights instead of their transposes, which runs when they are square.",
    "Look at which axis of the weight belongs to the input.",
    at={"d": 6, "d_ff": 6},
)(lambda x, w1, w2: glu(x, w1.T, w2.T))

fault(
    "weights-reinterpreted",
    "Views the weights' memory in the transposed shape.",
    "Changing a shape and exchanging axes are different things.",
)(lambda x, w1, w2: glu(x, w1.T.reshape(w1.shape), w2.T.reshape(w2.shape)))

fault(
    "clamped-gate",
    "Clamps the gate's argument to [-5, 5].",
    "How small does the gate get?",
    source=SPEED,
    at={"w1_weight": -torch.ones(10, 6) * 2, "in_features": torch.ones(2, 6)},
)(lambda x, w1, w2: torch.sigmoid(linear(x, w1).clamp(-5, 5)) * linear(x, w2))


@fault(
    "width-recomputed",
    "Uses two thirds of 4 d_model as hidden width instead of d_ff.",
    "Which argument says how wide the hidden layer is?",
    source=SUBMISSIONS,
    visible="shape",
    at={"d_ff": 20},
)
def width_recomputed(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    width = int(8 / 3 * x.shape[-1])
    return glu(x, w1[:width], w2[:width])


fault(
    "three-axes-only",
    "Has the three axes batch, sequence, feature written into the einsum.",
    "How many leading axes an input has is not for this layer to know.",
    source=SUBMISSIONS,
    visible="crash",
    at={"lead": (4,)},
)(
    lambda x, w1, w2: (
        torch.sigmoid(torch.einsum("bsi,oi->bso", x, w1)) * torch.einsum("bsi,oi->bso", x, w2)
    )
)

fault(
    "drops-size-one-axes",
    "Squeezes the result, which loses every axis of size 1.",
    "Try a batch of one and a sequence of one.",
    visible="shape",
    at={"lead": (1, 3)},
)(lambda x, w1, w2: glu(x, w1, w2).squeeze())

fault(
    "contiguous-only",
    "Uses view on the input, which refuses a transposed one.",
    "Not every tensor lies in memory in the order of its axes.",
    source=PYTORCH,
    visible="strides",
)(lambda x, w1, w2: glu(x.view(-1, x.shape[-1]), w1, w2).view(*x.shape[:-1], -1))

fault(
    "gate-detached",
    "Detaches the gate, so that W1 and part of the input's gradient are lost.",
    "Both factors of the product depend on the input.",
    source=PYTORCH,
    visible="gradient",
)(lambda x, w1, w2: torch.sigmoid(linear(x, w1)).detach() * linear(x, w2))


@fault(
    "in-place-breaks-backward",
    "Multiplies the sigmoid's result in place, which its derivative still needs.",
    "What does an operation keep for its backward pass?",
    source=SUBMISSIONS,
    visible="gradient",
)
def in_place_breaks_backward(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    gate = torch.sigmoid(linear(x, w1))
    gate *= linear(x, w2)
    return gate


fault(
    "gradient-nan-for-large-negatives",
    "Computes the gate as 1 / (1 + exp(-a)), whose derivative is inf / inf far below zero.",
    "What are the terms of the quotient rule when the denominator overflows?",
    source=PYTORCH,
    visible="gradient",
    at=FAR,
)(lambda x, w1, w2: 1 / (1 + torch.exp(-linear(x, w1))) * linear(x, w2))

fault(
    "float32-result",
    "Answers in float32 for input of lower precision.",
    "Widening inside is fine; what leaves has the dtype that came in.",
    level="SHOULD",
    visible="dtype",
    at={"dtype": torch.bfloat16},
)(lambda x, w1, w2: glu(x.float(), w1.float(), w2.float()))


fault(
    "dropout-active",
    "Applies dropout to the hidden features at every call.",
    "Does the same input give the same output twice?",
    source=PYTORCH,
)(lambda x, w1, w2: F.dropout(glu(x, w1, w2), 0.5, training=True))


def first_weights_kept() -> Any:
    """A layer that is built once for each size."""
    kept: dict[torch.Size, tuple[Tensor, Tensor]] = {}
    return lambda x, w1, w2: glu(x, *kept.setdefault(w1.shape, (w1, w2)))


fault(
    "first-weights-kept",
    "Keeps the weights of the first call for all later ones of the same size.",
    "Call it twice with different weights.",
    source=SPEED,
    visible="state",
    at=[{}, {"w1_weight": weight(10, 6, 8)}],
)(first_weights_kept())
