"""Faults of SiLU, x * sigmoid(x)."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import silu_by
from ..parts import silu
from .catalogue import CONVENTION, MISREAD, PYTORCH, REPORTS, SPEED, SUBMISSIONS, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "silu", "silu", silu_by)
TAIL = {"x": (-20.0, -18.0, -15.0)}
FAR = {"x": (-200.0, -100.0, -3.0, 1.0)}

fault(
    "sigmoid-only",
    "Answers the sigmoid without the factor x.",
    "What does the function do for large x?",
)(torch.sigmoid)

fault("gelu", "Computes GELU instead.", "Which smooth step multiplies x?", source=CONVENTION)(
    F.gelu
)

fault(
    "gelu-by-sigmoid",
    "Uses x * sigmoid(1.702 x), the quick approximation of GELU.",
    "The slope inside the sigmoid is 1.",
    source=CONVENTION,
)(lambda x: x * torch.sigmoid(1.702 * x))

fault(
    "hardswish",
    "Uses the piecewise linear imitation.",
    "Compare at x = 3 and x = -3.",
    source=SPEED,
)(F.hardswish)

fault("mish", "Computes Mish instead.", "Which smooth step multiplies x?", source=CONVENTION)(
    F.mish
)

fault("relu", "Computes ReLU instead.", "Compare for small negative x.")(F.relu)

fault(
    "tanh-gate",
    "Multiplies x by its tanh instead of its sigmoid.",
    "The gate lies between 0 and 1.",
)(lambda x: x * torch.tanh(x))

fault(
    "softsign-gate",
    "Replaces the sigmoid by the rational 1/2 + x / (2 (1 + |x|)).",
    "How fast does the gate close for negative x?",
    source=SPEED,
)(lambda x: x * (0.5 + 0.5 * x / (1 + x.abs())))

fault(
    "softmax-gate",
    "Multiplies x by its softmax over the last axis.",
    "Each element is gated by itself alone.",
)(lambda x: x * torch.softmax(x, dim=-1))

fault(
    "mirrored-gate",
    "Multiplies x by sigmoid(-x).",
    "Which sign does the exponent have?",
)(lambda x: x * torch.sigmoid(-x))

fault(
    "sign-lost-in-exponent",
    "Divides by 1 + exp(-|x|), so that negative x are wrong.",
    "The shape for negative x is not the mirror image of that for positive x.",
    source=SUBMISSIONS,
)(lambda x: x / (1 + torch.exp(-x.abs())))

fault(
    "zero-for-negatives",
    "Answers 0 for every negative x and is right elsewhere.",
    "The dip below zero is part of the function.",
    source=SUBMISSIONS,
    at={"x": (-3.0, -1.0, -0.1)},
)(lambda x: torch.where(x < 0, torch.zeros_like(x), silu(x)))

fault(
    "identity-above-six",
    "Answers x itself above 6 as if the gate were fully open.",
    "How far from 1 is the sigmoid at 6?",
    source=SPEED,
    at={"x": (6.1, 6.2)},
)(lambda x: torch.where(x > 6, x, silu(x)))

fault(
    "clamped-argument",
    "Clamps the sigmoid's argument to [-10, 10].",
    "The tail for negative x goes to zero much faster than x grows.",
    source=SPEED,
    at=TAIL,
)(lambda x: x * torch.sigmoid(x.clamp(-10, 10)))

fault(
    "clamped-output",
    "Clamps the result to at most 20.",
    "The function has no upper bound.",
    at={"x": (25.0, 1.0)},
)(lambda x: silu(x).clamp(max=20))

fault(
    "overflow-for-positives",
    "Computes x e^x / (1 + e^x), which is not a number for large x.",
    "Which of the two forms has the exponent that cannot overflow?",
    at={"x": (100.0, 1.0)},
)(lambda x: x * torch.exp(x) / (1 + torch.exp(x)))

fault(
    "gradient-nan-for-large-negatives",
    "Computes x / (1 + exp(-x)): right forward, but the derivative is inf / inf far below zero.",
    "What are the terms of the quotient rule when the denominator overflows?",
    source=SUBMISSIONS,
    visible="gradient",
    at=FAR,
)(lambda x: x / (1 + torch.exp(-x)))

fault(
    "gradient-nan-through-where",
    "Selects between two stable forms with where, whose unused branch poisons the gradient.",
    "Both branches are differentiated; a zero times infinity is not zero.",
    source=PYTORCH,
    visible="gradient",
    at={"x": (100.0, 1.0, -2.0)},
)(lambda x: torch.where(x >= 0, x / (1 + torch.exp(-x)), x * torch.exp(x) / (1 + torch.exp(x))))

fault(
    "beta-from-input",
    "Scales the sigmoid's argument by the mean magnitude of the row.",
    "Nothing but the element itself decides its value.",
    source=MISREAD,
)(lambda x: x * torch.sigmoid(x * x.abs().mean(-1, keepdim=True)))


class HalfDerivative(torch.autograd.Function):
    """The right value with a derivative that misses one term of the product rule."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return silu(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return dy * torch.sigmoid(x)


fault(
    "backward-misses-product-rule",
    "The hand-written derivative is sigmoid(x), without the term x s (1 - s).",
    "The function is a product; both factors depend on x.",
    visible="gradient",
)(HalfDerivative.apply)


class GateDerivative(HalfDerivative):
    """The right value with the other term of the product rule alone."""

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return dy * x * s * (1 - s)


fault(
    "backward-only-gate",
    "The hand-written derivative has only the term x s (1 - s).",
    "At x = 0 the slope is one half.",
    visible="gradient",
)(GateDerivative.apply)


class Overwriting(torch.autograd.Function):
    """The right derivative, computed into the gradient that comes in."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return silu(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return dy.mul_(s + x * s * (1 - s))


fault(
    "backward-overwrites-gradient",
    "The hand-written backward pass works in the memory of the gradient that comes in.",
    "Whose tensor is that? Run the backward pass twice.",
    source=SPEED,
    visible="gradient",
    note="the second backward pass is wrong",
)(Overwriting.apply)


class Consuming(torch.autograd.Function):
    """The right derivative, computed once in memory that the second pass still needs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.slope = torch.sigmoid(x) * (1 + x * torch.sigmoid(-x))
        return silu(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        return ctx.slope.mul_(dy).clone()


fault(
    "backward-consumes-saved-tensor",
    "The hand-written backward pass overwrites what it saved for itself.",
    "A graph that is kept may be used again. Run the backward pass twice.",
    source=SPEED,
    visible="gradient",
    note="the second backward pass is wrong",
)(Consuming.apply)

fault(
    "gate-detached",
    "Detaches the sigmoid, so that its derivative is lost.",
    "Both factors of the product depend on x.",
    source=PYTORCH,
    visible="gradient",
)(lambda x: x * torch.sigmoid(x).detach())


@fault(
    "no-grad",
    "Computes under torch.no_grad.",
    "What is computed without a graph cannot be trained.",
    source=PYTORCH,
    visible="gradient",
)
def no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        return silu(x)


@fault(
    "input-overwritten",
    "Multiplies the input in place.",
    "A name ending in an underscore, or an operator like *=, changes the caller's tensor.",
    source=SUBMISSIONS,
    visible="purity",
)
def input_overwritten(x: Tensor) -> Tensor:
    x *= torch.sigmoid(x)
    return x


fault(
    "input-returned-when-saturated",
    "Answers the input tensor itself when every element is above 20.",
    "An equal value is not enough: the caller may change one of the two.",
    source=SPEED,
    visible="purity",
    at={"x": (25.0, 30.0)},
)(lambda x: x if bool((x > 20).all()) else silu(x))

fault(
    "float32-result",
    "Answers in float32 for input of lower precision.",
    "Widening inside is fine; what leaves has the dtype that came in.",
    level="SHOULD",
    source=REPORTS,
    visible="dtype",
    at={"dtype": torch.bfloat16},
)(lambda x: silu(x.float()))

fault(
    "float64-through-float32",
    "Narrows float64 input to float32 inside and overflows where float64 would not.",
    "Widening is harmless, narrowing is not.",
    level="SHOULD",
    at={"x": (1e60, 1.0), "dtype": torch.float64},
)(lambda x: silu(x.float()).to(x.dtype))

fault(
    "contiguous-only",
    "Uses view on the input, which refuses a transposed one.",
    "Not every tensor lies in memory in the order of its axes.",
    source=PYTORCH,
    visible="strides",
    at={"x": torch.arange(12.0).reshape(3, 4)},
)(lambda x: silu(x.view(-1)).view(x.shape))

fault(
    "storage-order",
    "Works on the flat memory of the input and gives it a new shape, whatever its strides.",
    "The order of the elements in memory need not be that of the axes.",
    source=PYTORCH,
    visible="strides",
    at={"x": torch.arange(12.0).reshape(3, 4)},
)(lambda x: silu(x.as_strided((x.numel(),), (1,), x.storage_offset())).reshape(x.shape))

fault(
    "drops-size-one-axes",
    "Squeezes the result, which loses every axis of size 1.",
    "The output has the input's shape, always.",
    visible="shape",
    at={"x": ((1.0,), (2.0,))},
)(lambda x: silu(x).squeeze())

fault(
    "element-loop-over-rows",
    "Loops over the rows of the input and so cannot take a single number.",
    "A tensor may have no axis at all.",
    visible="crash",
    level="SHOULD",
    at={"x": 1.5},
)(lambda x: torch.stack([silu(row) for row in x]))
