"""Rotary position embedding, pairs (2i, 2i+1), written in different ways.

All accept positions (seq,), (1, seq), (batch, 1, seq) and whatever else broadcasts against the
leading axes, in any order and repeated; all answer in the input's dtype.
"""

from typing import Any

import einops
import torch
from torch import Tensor, nn

from ..adapting import rope_by
from ..parts import wide
from .catalogue import COURSES, FLOAT32, LIBRARIES, NUMERICS, PRACTICE, TEXTBOOK, Entry, registrar

ENTRIES: list[Entry] = []
variant = registrar(ENTRIES, "rope", "rope", rope_by)


def frequencies(d: int, theta: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """theta^(-2i/d)."""
    return 1.0 / theta ** (torch.arange(0, d, 2, dtype=dtype) / d)


@variant("stacked", "Rotated even and odd features stacked, then flattened.", TEXTBOOK)
def stacked(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    angle = positions[..., None] * frequencies(x.shape[-1], theta, wide(x).dtype)
    c, s = angle.cos(), angle.sin()
    y = wide(x)
    even, odd = y[..., ::2], y[..., 1::2]
    return torch.stack((even * c - odd * s, even * s + odd * c), dim=-1).flatten(-2).to(x.dtype)


@variant(
    "sliced",
    "Assignment to the even and odd features of an empty tensor.",
    COURSES,
    "must-only",
    FLOAT32,
)
def sliced(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    angle = positions[..., None].float() * frequencies(x.shape[-1], theta)
    c, s = torch.cos(angle), torch.sin(angle)
    even, odd = x[..., 0::2], x[..., 1::2]
    result = torch.empty_like(x)
    result[..., 0::2] = even * c - odd * s
    result[..., 1::2] = even * s + odd * c
    return result


@variant("complex", "Pairs as complex numbers times exp(i angle).", LIBRARIES)
def complex_product(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    y = wide(x)
    angle = (positions[..., None] * frequencies(x.shape[-1], theta, torch.float64)).to(y.dtype)
    turns = torch.polar(torch.ones_like(angle), angle)
    pairs = torch.view_as_complex(y.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


@variant("matrices", "A 2x2 matrix per position and pair, applied by einsum.", TEXTBOOK)
def matrices(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    angle = positions[..., None] * frequencies(x.shape[-1], theta, wide(x).dtype)
    c, s = angle.cos(), angle.sin()
    rows = torch.stack((torch.stack((c, -s), -1), torch.stack((s, c), -1)), -2)
    y = wide(x)
    pairs = y.unflatten(-1, (-1, 2))
    return torch.einsum("...ij,...j->...i", rows.to(y.dtype), pairs).flatten(-2).to(x.dtype)


@variant("block-diagonal", "One d_k x d_k block-diagonal matrix per position.", TEXTBOOK)
def block_diagonal(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    y = wide(x)
    d = x.shape[-1]
    angle = (positions[..., None] * frequencies(d, theta, torch.float64)).to(y.dtype)
    big = torch.zeros(*positions.shape, d, d, dtype=y.dtype)
    even = torch.arange(0, d, 2)
    big[..., even, even] = angle.cos()
    big[..., even, even + 1] = -angle.sin()
    big[..., even + 1, even] = angle.sin()
    big[..., even + 1, even + 1] = angle.cos()
    return (big @ y.unsqueeze(-1)).squeeze(-1).to(x.dtype)


@variant(
    "half-split-permuted", "Half-split rotation between a permutation and its inverse.", LIBRARIES
)
def half_split_permuted(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    d = x.shape[-1]
    order = torch.cat((torch.arange(0, d, 2), torch.arange(1, d, 2)))
    y = wide(x)[..., order]
    angle = positions[..., None] * frequencies(d, theta, wide(x).dtype)
    c, s = angle.cos().repeat(*[1] * (angle.ndim - 1), 2), torch.cat((angle, angle), -1).sin()
    low, high = y.chunk(2, dim=-1)
    turned = y * c + torch.cat((-high, low), dim=-1) * s
    return turned[..., order.argsort()].to(x.dtype)


@variant("rotate-every-two", "x cos + (-odd, even) sin with doubled tables.", LIBRARIES)
def rotate_every_two(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    angle = positions[..., None] * frequencies(x.shape[-1], theta, wide(x).dtype).repeat_interleave(
        2
    )
    y = wide(x)
    quarter = einops.rearrange(y, "... (i two) -> ... i two", two=2)
    quarter = torch.stack((-quarter[..., 1], quarter[..., 0]), dim=-1)
    quarter = einops.rearrange(quarter, "... i two -> ... (i two)")
    return (y * angle.cos() + quarter * angle.sin()).to(x.dtype)


@variant(
    "table",
    "Tables of cosines and sines up to the limit, looked up by position.",
    COURSES,
    "must-only",
    FLOAT32,
)
def table(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    angle = torch.outer(torch.arange(limit).float(), frequencies(x.shape[-1], theta))
    c, s = angle.cos()[positions], angle.sin()[positions]
    even, odd = wide(x).unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((c * even - s * odd, s * even + c * odd), -1).flatten(-2).to(x.dtype)


@variant(
    "table-in-input-dtype",
    "The table is rounded to the input's dtype after cos and sin.",
    LIBRARIES,
)
def table_in_input_dtype(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    angle = torch.arange(limit)[:, None] * frequencies(x.shape[-1], theta, torch.float64)
    c, s = angle.cos().to(x.dtype)[positions], angle.sin().to(x.dtype)[positions]
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * c - odd * s, even * s + odd * c), dim=-1).flatten(-2)


@variant("float64-inside", "Angles, tables and products in float64.", NUMERICS)
def float64_inside(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    angle = positions[..., None] * frequencies(x.shape[-1], theta, torch.float64)
    even, odd = x.double()[..., 0::2], x.double()[..., 1::2]
    c, s = angle.cos(), angle.sin()
    return torch.stack((even * c - odd * s, odd * c + even * s), -1).flatten(-2).to(x.dtype)


@variant(
    "growing-cache", "Tables per width and theta, rebuilt when a longer one is needed.", LIBRARIES
)
def growing_cache(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    key = (x.shape[-1], theta)
    if key not in CACHE or len(CACHE[key]) < limit:
        angle = torch.arange(limit)[:, None] * frequencies(*key, torch.float64)
        CACHE[key] = torch.stack((angle.cos(), angle.sin()), dim=-1)
    c, s = wide(CACHE[key][positions]).to(wide(x).dtype).unbind(-1)
    even, odd = wide(x).unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((c * even - s * odd, s * even + c * odd), -1).flatten(-2).to(x.dtype)


CACHE: dict[tuple[int, float], Tensor] = {}


class Rotary(nn.Module):
    """The usual course module: float32 tables in buffers that stay out of the state dict."""

    def __init__(self, theta: float, d_k: int, max_seq_len: int) -> None:
        super().__init__()
        angle = torch.outer(torch.arange(max_seq_len).float(), frequencies(d_k, theta))
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        c, s = self.cos[positions], self.sin[positions]
        even, odd = x[..., 0::2], x[..., 1::2]
        pairs = torch.stack((even * c - odd * s, even * s + odd * c), dim=-1)
        return pairs.reshape(x.shape).to(x.dtype)


@variant("module", "A module with float32 tables in buffers.", COURSES, "must-only", FLOAT32)
def module(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    return Rotary(theta, x.shape[-1], limit)(x, positions)


class Turn(torch.autograd.Function):
    """Rotation whose derivative is the rotation back."""

    @staticmethod
    def forward(ctx: Any, even: Tensor, odd: Tensor, c: Tensor, s: Tensor) -> Any:
        ctx.save_for_backward(c, s)
        return even * c - odd * s, even * s + odd * c

    @staticmethod
    def backward(ctx: Any, d_even: Tensor, d_odd: Tensor) -> Any:
        c, s = ctx.saved_tensors
        return d_even * c + d_odd * s, d_odd * c - d_even * s, None, None


@variant("own-backward", "A custom autograd function whose derivative rotates back.", PRACTICE)
def own_backward(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    y = wide(x)
    angle = positions[..., None] * frequencies(x.shape[-1], theta, torch.float64)
    shape = (*x.shape[:-1], x.shape[-1] // 2)
    c, s = (t.to(y.dtype).expand(shape) for t in (angle.cos(), angle.sin()))
    return torch.stack(Turn.apply(y[..., 0::2], y[..., 1::2], c, s), -1).flatten(-2).to(x.dtype)


@variant("pair-loop", "One pair of features after the other, concatenated.", TEXTBOOK)
def pair_loop(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    y, d = wide(x), x.shape[-1]
    columns = []
    for i in range(d // 2):
        angle = positions.double() * theta ** (-2 * i / d)
        c, s = angle.cos().to(y.dtype), angle.sin().to(y.dtype)
        a, b = y[..., 2 * i], y[..., 2 * i + 1]
        columns += [c * a - s * b, s * a + c * b]
    return torch.stack(columns, dim=-1).to(x.dtype)


@variant("vmap", "One vector at one position, vectorised by torch.vmap.", PRACTICE)
def mapped(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    if not x.numel():
        return x.clone()
    d = x.shape[-1]
    frequency = frequencies(d, theta, wide(x).dtype)

    def one(vector: Tensor, position: Tensor) -> Tensor:
        c, s = torch.cos(position * frequency), torch.sin(position * frequency)
        a, b = vector[0::2], vector[1::2]
        return torch.stack((c * a - s * b, s * a + c * b), dim=1).reshape(d)

    flat = positions.expand(x.shape[:-1]).reshape(-1)
    return torch.vmap(one)(wide(x).reshape(-1, d), flat).reshape(x.shape).to(x.dtype)
