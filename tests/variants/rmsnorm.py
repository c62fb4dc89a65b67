"""RMSNorm, x / sqrt(mean(x^2) + eps) * g, written in different ways.

All take their statistics at least in float32 and answer in the input's dtype.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..adapting import rmsnorm_by
from ..parts import wide
from .catalogue import (
    COPIES,
    COURSES,
    FLOAT32,
    LIBRARIES,
    NUMERICS,
    PRACTICE,
    TEXTBOOK,
    TORCH,
    Entry,
    registrar,
)

ENTRIES: list[Entry] = []
variant = registrar(ENTRIES, "rmsnorm", "rmsnorm", rmsnorm_by)


@variant("textbook", "Divides by the root of the mean square plus eps.", TEXTBOOK)
def textbook(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = wide(x)
    rms = torch.sqrt(y.pow(2).mean(dim=-1, keepdim=True) + eps)
    return (y / rms * g).to(x.dtype)


@variant("rsqrt", "Multiplies by torch.rsqrt, squares by x * x.", PRACTICE)
def reciprocal_root(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = wide(x)
    return (y * torch.rsqrt((y * y).mean(-1, keepdim=True) + eps) * g).to(x.dtype)


@variant("norm", "Mean square from Tensor.norm: norm^2 / d.", PRACTICE)
def from_norm(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = wide(x)
    mean_square = y.norm(2, dim=-1, keepdim=True) ** 2 / y.shape[-1]
    return (y / (mean_square + eps).sqrt() * g).to(x.dtype)


@variant("einsum", "Sum of squares as an inner product by einsum.", PRACTICE)
def einsum(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = wide(x)
    mean_square = torch.einsum("...d,...d->...", y, y) / y.shape[-1]
    scale = (mean_square + eps) ** -0.5
    return torch.einsum("...d,...,d->...d", y, scale, wide(g).to(y.dtype)).to(x.dtype)


@variant("functional", "F.rms_norm on the upcast input.", TORCH)
def functional(x: Tensor, g: Tensor, eps: float) -> Tensor:
    return (F.rms_norm(wide(x), (x.shape[-1],), None, eps) * g).to(x.dtype)


@variant("gain-after-cast", "Rounds to the input's dtype first, then applies the gain.", LIBRARIES)
def gain_after_cast(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = wide(x)
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + eps)
    return (g * y.to(x.dtype)).to(x.dtype)


@variant("gain-before-cast", "Applies a widened gain and rounds once.", LIBRARIES)
def gain_before_cast(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = wide(x)
    normal = y / torch.sqrt(torch.mean(torch.square(y), -1, keepdim=True) + eps)
    return (normal * wide(g)).to(dtype=x.dtype)


@variant("float64-inside", "Computes in float64 and rounds once.", NUMERICS)
def float64_inside(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = x.double()
    return (y / (y.pow(2).mean(-1, keepdim=True) + eps).sqrt() * g).to(x.dtype)


@variant("reversed-chunks", "Adds squares chunk by chunk, from the last feature.", NUMERICS)
def reversed_chunks(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = wide(x)
    total = torch.zeros_like(y[..., :1])
    for part in reversed(y.split(3, dim=-1)):
        total = total + part.pow(2).sum(-1, keepdim=True)
    return (y / torch.sqrt(total / y.shape[-1] + eps) * g).to(x.dtype)


@variant("variance-plus-mean", "Mean square as variance plus squared mean.", NUMERICS)
def variance_plus_mean(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = wide(x)
    mean = y.mean(-1, keepdim=True)
    mean_square = (y - mean).square().mean(-1, keepdim=True) + mean**2
    return (y * torch.rsqrt(mean_square + eps) * g).to(x.dtype)


@variant("matmul-mean", "Mean of squares as a product with a vector of 1/d.", PRACTICE)
def matmul_mean(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = wide(x)
    average = torch.full((y.shape[-1], 1), 1 / y.shape[-1], dtype=y.dtype, device=y.device)
    return (y / (y.square() @ average + eps).sqrt() * g).to(x.dtype)


@variant(
    "scaled-by-maximum", "Divides by the largest magnitude first, so no square overflows.", NUMERICS
)
def scaled_by_maximum(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = wide(x)
    largest = y.detach().abs().amax(-1, keepdim=True).clamp(min=1.0)
    y = y / largest
    return (y / torch.sqrt(y.square().mean(-1, keepdim=True) + eps / largest**2) * g).to(x.dtype)


@variant("flattened", "Leading axes flattened to one, then restored.", PRACTICE)
def flattened(x: Tensor, g: Tensor, eps: float) -> Tensor:
    rows = wide(x).reshape(-1, x.shape[-1])
    scale = rows.pow(2).mean(1).add(eps).rsqrt()
    return (rows * scale[:, None] * g[None, :]).reshape(x.shape).to(x.dtype)


@variant("vmap", "One row at a time, vectorised by torch.vmap.", PRACTICE)
def mapped(x: Tensor, g: Tensor, eps: float) -> Tensor:
    rows = wide(x).reshape(-1, x.shape[-1])
    if not rows.numel():
        return x.clone()
    normal = torch.vmap(lambda r: r / torch.sqrt((r * r).mean() + eps) * g)(rows)
    return normal.reshape(x.shape).to(x.dtype)


class Normalise(torch.autograd.Function):
    """The row's normalisation with its derivative by hand: (dy - n mean(dy n)) / rms."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, eps: float) -> Tensor:
        inverse = torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(y * inverse, inverse)
        return y * inverse

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:
        normal, inverse = ctx.saved_tensors
        return (dy - normal * (dy * normal).mean(-1, keepdim=True)) * inverse, None


@variant("own-backward", "A custom autograd function with the derivative by hand.", PRACTICE)
def own_backward(x: Tensor, g: Tensor, eps: float) -> Tensor:
    return (Normalise.apply(wide(x), eps) * g).to(x.dtype)


class RMSNorm(nn.Module):
    """The usual course module: one float32 gain."""

    def __init__(self, d_model: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        in_dtype = x.dtype
        x = x.to(torch.float32)
        rms = torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return (x / rms * self.weight).to(in_dtype)


@variant(
    "module",
    "A float32 module filled by load_state_dict, float32 inside.",
    COURSES,
    "must-only",
    COPIES,
)
def module(x: Tensor, g: Tensor, eps: float) -> Tensor:
    layer = RMSNorm(x.shape[-1], eps)
    layer.load_state_dict({"weight": g})
    return layer(x)


@variant(
    "float32-inside",
    "Upcasts to float32 whatever the input, as the course text says.",
    COURSES,
    "must-only",
    FLOAT32,
)
def float32_inside(x: Tensor, g: Tensor, eps: float) -> Tensor:
    y = x.to(torch.float32)
    return (y / torch.sqrt(y.pow(2).mean(-1, keepdim=True) + eps) * g).to(x.dtype)
