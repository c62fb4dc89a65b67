"""Faults of RMSNorm around what it computes: dtype, shape, memory, gradient, state."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import rmsnorm_by
from ..parts import rmsnorm, wide
from ..witnesses import draw
from .catalogue import PYTORCH, REPORTS, SPEED, SUBMISSIONS, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "rmsnorm", "rmsnorm", rmsnorm_by)
HALF = {"scale": 300.0, "dtype": torch.float16}


@fault(
    "squares-in-half",
    "Throws the upcast input away, so that the squares overflow in float16.",
    "An upcast returns a new tensor; which one is squared?",
    source=SUBMISSIONS,
    at=HALF,
)
def squares_in_half(x: Tensor, g: Tensor, eps: float) -> Tensor:
    x.to(torch.float32)
    return (x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * g).to(x.dtype)


@fault(
    "low-precision-sum",
    "Adds up the squares in the input's low precision.",
    "What happens to 256 + 1 in bfloat16?",
    source=REPORTS,
    at=lambda: {
        "d_model": 1024,
        "eps": 1e-3,
        "weights": torch.ones(1024, dtype=torch.bfloat16),
        "in_features": torch.ones(2, 1024, dtype=torch.bfloat16),
    },
)
def low_precision_sum(x: Tensor, g: Tensor, eps: float) -> Tensor:
    total = torch.zeros_like(x[..., :1])
    for i in range(x.shape[-1]):
        total = total + x[..., i, None] ** 2
    return (wide(x) / torch.sqrt(wide(total) / x.shape[-1] + eps) * g).to(x.dtype)


fault(
    "float32-result",
    "Leaves the result in float32.",
    "What leaves the layer has the dtype that came in.",
    source=SUBMISSIONS,
    visible="dtype",
    at={"dtype": torch.bfloat16},
)(lambda x, g, eps: rmsnorm(x.float(), g, eps))

fault(
    "gain-decides-dtype",
    "Casts back before the gain, so that a float32 gain makes a float32 result.",
    "Which of the two operands decides the dtype of a product?",
    source=SUBMISSIONS,
    visible="dtype",
    at=lambda: {
        "d_model": 8,
        "eps": 1e-3,
        "weights": torch.linspace(0.5, 2, 8),
        "in_features": draw(2, 3, 8, dtype=torch.bfloat16),
    },
)(lambda x, g, eps: g * rmsnorm(x, torch.ones_like(g), eps))

fault(
    "bfloat16-inside",
    "Rounds every input to bfloat16 on the way, float32 too.",
    "Half precision is for input that came in half precision.",
    source=SPEED,
    at={"scale": 1.0},
)(lambda x, g, eps: rmsnorm(x.to(torch.bfloat16), g, eps).to(x.dtype))

fault(
    "float64-through-float32",
    "Narrows float64 input to float32, whose squares overflow.",
    "Widening is harmless, narrowing is not.",
    level="SHOULD",
    source=SUBMISSIONS,
    at={"scale": 1e30, "dtype": torch.float64},
)(lambda x, g, eps: rmsnorm(x.float(), g, eps).to(x.dtype))


@fault(
    "three-axes-only",
    "Unpacks the shape into batch, sequence and features.",
    "How many leading axes an input has is not for this layer to know.",
    source=SUBMISSIONS,
    visible="crash",
    at={"lead": (4,)},
)
def three_axes_only(x: Tensor, g: Tensor, eps: float) -> Tensor:
    batch, length, width = x.shape
    return rmsnorm(x.reshape(batch * length, width), g, eps).reshape(batch, length, width)


fault(
    "axis-lost",
    "Drops the reduced axis, so that the division broadcasts the wrong way or fails.",
    "What shape must the scale have to meet x feature by feature?",
    visible="crash",
)(lambda x, g, eps: x / torch.sqrt(x.square().mean(-1) + eps) * g)

fault(
    "stays-flat",
    "Flattens the leading axes and does not restore them.",
    "Compare the shape of the output with that of the input.",
    visible="shape",
)(lambda x, g, eps: rmsnorm(x.reshape(-1, x.shape[-1]), g, eps))

fault(
    "drops-size-one-axes",
    "Squeezes the result, which loses every axis of size 1.",
    "Try a batch of one and a sequence of one.",
    visible="shape",
    at={"lead": (2, 1)},
)(lambda x, g, eps: rmsnorm(x, g, eps).squeeze())

fault(
    "contiguous-only",
    "Uses view on the input, which refuses a transposed one.",
    "Not every tensor lies in memory in the order of its axes.",
    source=PYTORCH,
    visible="strides",
)(lambda x, g, eps: rmsnorm(x.view(-1, x.shape[-1]), g, eps).view(x.shape))


@fault(
    "input-overwritten",
    "Divides the input in place.",
    "A name ending in an underscore, or an operator like /=, changes the caller's tensor.",
    source=SUBMISSIONS,
    visible="purity",
)
def input_overwritten(x: Tensor, g: Tensor, eps: float) -> Tensor:
    x /= torch.sqrt(wide(x).square().mean(-1, keepdim=True) + eps).to(x.dtype)
    return (x * g).to(x.dtype)


@fault(
    "gain-overwritten",
    "Uses the gain's memory to hold the gain of this call divided by its largest element.",
    "The caller still owns the gain.",
    source=PYTORCH,
    visible="purity",
)
def gain_overwritten(x: Tensor, g: Tensor, eps: float) -> Tensor:
    largest = g.detach().abs().max().clone()
    scaled = g.detach().div_(largest)
    return rmsnorm(x, scaled.clone() * largest, eps)


@fault(
    "scale-detached",
    "Treats the root mean square as a constant in the derivative.",
    "The scale depends on every element of the row.",
    source=PYTORCH,
    visible="gradient",
)
def scale_detached(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = wide(x)
    scale = torch.rsqrt(y.detach().square().mean(-1, keepdim=True) + eps)
    return (y * scale * g).to(x.dtype)


fault(
    "gain-detached",
    "Reads the gain's data, so that it cannot be trained.",
    "Ask for the gradient of the gain.",
    source=PYTORCH,
    level="SHOULD",
    visible="gradient",
    wrt=("weights",),
)(lambda x, g, eps: rmsnorm(x, g.data, eps))


class GainForgotten(torch.autograd.Function):
    """The right value with a backward pass that forgets the gain."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, g: Tensor, eps: float) -> Tensor:
        inverse = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x * inverse, inverse)
        return x * inverse * g

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None, None]:
        normal, inverse = ctx.saved_tensors
        return (dy - normal * (dy * normal).mean(-1, keepdim=True)) * inverse, None, None


fault(
    "backward-forgets-gain",
    "The hand-written backward pass leaves out the gain.",
    "The chain passes through the product with the gain first.",
    visible="gradient",
)(GainForgotten.apply)

fault(
    "gradient-nan-at-zero",
    "Takes the norm's root without eps and adds eps to its square, so a row of zeros has no "
    "derivative.",
    "What is the slope of a square root at zero?",
    source=PYTORCH,
    visible="gradient",
    at=lambda: {
        "d_model": 4,
        "eps": 1e-3,
        "weights": torch.ones(4),
        "in_features": torch.zeros(2, 4),
    },
)(lambda x, g, eps: x / (x.square().mean(-1, keepdim=True).sqrt() ** 2 + eps).sqrt() * g)


def first_gain_kept() -> Any:
    """A layer that is built once for each width."""
    gains: dict[int, Tensor] = {}
    return lambda x, g, eps: rmsnorm(x, gains.setdefault(x.shape[-1], g), eps)


fault(
    "first-gain-kept",
    "Keeps the gain of the first call for all later ones of the same width.",
    "Call it twice with different gains.",
    source=SPEED,
    visible="state",
    at=[{}, {"weights": torch.linspace(0.5, 2, 8)}],
)(first_gain_kept())


def first_eps_kept() -> Any:
    """A layer that is built once for each width, with its eps."""
    found: dict[int, float] = {}
    return lambda x, g, eps: rmsnorm(x, g, found.setdefault(x.shape[-1], eps))


fault(
    "first-eps-kept",
    "Keeps the eps of the first call for all later ones of the same width.",
    "Call it twice with different eps.",
    source=SPEED,
    visible="state",
    at=[{"eps": 1e-6}, {"eps": 1e-1}],
)(first_eps_kept())


def running_statistics() -> Any:
    """A norm that smooths its mean square over calls, as BatchNorm does."""
    running: dict[str, Tensor] = {}

    def f(x: Tensor, g: Tensor, eps: float) -> Tensor:
        mean = wide(x).square().mean(-1, keepdim=True)
        if "mean" in running and running["mean"].shape == mean.shape:
            mean = (running["mean"] + mean) / 2
        running["mean"] = mean.detach()
        return (wide(x) * torch.rsqrt(mean + eps) * g).to(x.dtype)

    return f


fault(
    "running-statistics",
    "Smooths the mean square over calls, as batch normalisation does in training.",
    "Nothing of one call may be left in the next.",
    visible="state",
    at=[{}, {"in_features": draw(2, 3, 8, seed=9, scale=3.0)}],
)(running_statistics())

fault(
    "length-with-lower-bound",
    "Normalises rows with F.normalize, whose eps is a lower bound for the length.",
    "How does the function you call use its eps?",
    source=PYTORCH,
    at={"scale": 3e-3, "eps": 1e-3},
)(lambda x, g, eps: F.normalize(x, dim=-1, eps=eps) * x.shape[-1] ** 0.5 * g)
