"""Faults of RMSNorm around what it computes: dtype, shape, memory, gradient, state."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import rmsnorm_by
from ..parts import rmsnorm, wide
from ..witnesses import draw
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "rmsnorm", "rmsnorm", rmsnorm_by)
HALF = {"scale": 300.0, "dtype": torch.float16}


@fault("squares-in-half", at=HALF)
def squares_in_half(x: Tensor, g: Tensor, eps: float) -> Tensor:
    x.to(torch.float32)
    return (x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * g).to(x.dtype)


@fault(
    "low-precision-sum",
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


fault("float32-result", at={"dtype": torch.bfloat16})(lambda x, g, eps: rmsnorm(x.float(), g, eps))

fault(
    "gain-decides-dtype",
    at=lambda: {
        "d_model": 8,
        "eps": 1e-3,
        "weights": torch.linspace(0.5, 2, 8),
        "in_features": draw(2, 3, 8, dtype=torch.bfloat16),
    },
)(lambda x, g, eps: g * rmsnorm(x, torch.ones_like(g), eps))

fault("bfloat16-inside", at={"scale": 1.0})(
    lambda x, g, eps: rmsnorm(x.to(torch.bfloat16), g, eps).to(x.dtype)
)

fault("float64-through-float32", at={"scale": 1e30, "dtype": torch.float64})(
    lambda x, g, eps: rmsnorm(x.float(), g, eps).to(x.dtype)
)


@fault("three-axes-only", at={"lead": (4,)})
def three_axes_only(x: Tensor, g: Tensor, eps: float) -> Tensor:
    batch, length, width = x.shape
    return rmsnorm(x.reshape(batch * length, width), g, eps).reshape(batch, length, width)


fault("axis-lost")(lambda x, g, eps: x / torch.sqrt(x.square().mean(-1) + eps) * g)

fault("stays-flat")(lambda x, g, eps: rmsnorm(x.reshape(-1, x.shape[-1]), g, eps))

fault("drops-size-one-axes", at={"lead": (2, 1)})(lambda x, g, eps: rmsnorm(x, g, eps).squeeze())

fault("contiguous-only")(lambda x, g, eps: rmsnorm(x.view(-1, x.shape[-1]), g, eps).view(x.shape))


@fault("input-overwritten")
def input_overwritten(x: Tensor, g: Tensor, eps: float) -> Tensor:
    x /= torch.sqrt(wide(x).square().mean(-1, keepdim=True) + eps).to(x.dtype)
    return (x * g).to(x.dtype)


@fault("gain-overwritten")
def gain_overwritten(x: Tensor, g: Tensor, eps: float) -> Tensor:
    largest = g.detach().abs().max().clone()
    scaled = g.detach().div_(largest)
    return rmsnorm(x, scaled.clone() * largest, eps)


@fault("scale-detached")
def scale_detached(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = wide(x)
    scale = torch.rsqrt(y.detach().square().mean(-1, keepdim=True) + eps)
    return (y * scale * g).to(x.dtype)


fault("gain-detached", wrt=("weights",))(lambda x, g, eps: rmsnorm(x, g.data, eps))


class GainForgotten(torch.autograd.Function):
    """The right value with a backward pass that forgets the gain."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, g: Tensor, eps: float) -> Tensor:
        inverse = torch.rsqrt(wide(x).square().mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(wide(x) * inverse, inverse)
        return (wide(x) * inverse * g).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None, None]:
        normal, inverse = ctx.saved_tensors
        dx = (dy - normal * (dy * normal).mean(-1, keepdim=True)) * inverse
        return dx.to(dy.dtype), None, None


fault("backward-forgets-gain")(GainForgotten.apply)

fault(
    "gradient-nan-at-zero",
    at=lambda: {
        "d_model": 4,
        "eps": 1e-3,
        "weights": torch.ones(4),
        "in_features": torch.zeros(2, 4),
    },
)(
    lambda x, g, eps: (
        wide(x) / (wide(x).square().mean(-1, keepdim=True).sqrt() ** 2 + eps).sqrt() * g
    ).to(x.dtype)
)


def first_gain_kept() -> Any:
    """A layer that is built once for each width."""
    gains: dict[int, Tensor] = {}
    return lambda x, g, eps: rmsnorm(x, gains.setdefault(x.shape[-1], g), eps)


fault("first-gain-kept", at=[{}, {"weights": torch.linspace(0.5, 2, 8)}])(first_gain_kept())


def first_eps_kept() -> Any:
    """A layer that is built once for each width, with its eps."""
    found: dict[int, float] = {}
    return lambda x, g, eps: rmsnorm(x, g, found.setdefault(x.shape[-1], eps))


fault("first-eps-kept", at=[{"eps": 1e-6}, {"eps": 1e-1}])(first_eps_kept())


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


fault("running-statistics", at=[{}, {"in_features": draw(2, 3, 8, seed=9, scale=3.0)}])(
    running_statistics()
)

fault("length-with-lower-bound", at={"scale": 3e-3, "eps": 1e-3})(
    lambda x, g, eps: F.normalize(x, dim=-1, eps=eps) * x.shape[-1] ** 0.5 * g
)
