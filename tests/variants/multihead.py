"""Causal multi-head self-attention, with and without rotary positions, written in different ways.

Each function serves both components: without theta nothing is rotated. Positions may be
(seq,), (1, seq), (batch, seq) or None for 0, 1, 2, ...
"""

import math

import einops
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..adapting import mha_by, mha_rope_by
from ..parts import wide
from . import rope
from .catalogue import (
    COPIES,
    COURSES,
    FLOAT32,
    LIBRARIES,
    PRACTICE,
    TEXTBOOK,
    TORCH,
    Entry,
    Function,
    registrar,
)

ENTRIES: list[Entry] = []
Four = tuple[Tensor, Tensor, Tensor, Tensor]
plain = registrar(ENTRIES, "multihead_self_attention", "mha", mha_by)
turned = registrar(ENTRIES, "multihead_self_attention_with_rope", "mha-rope", mha_rope_by)


def variant(name: str, sentence: str, source: str, level: str = "full", note: str = "") -> Function:
    """Registers a function for both components."""

    def register(function: Function) -> Function:
        plain(name, sentence, source, level, note)(function)
        return turned(name, sentence, source, level, note)(function)

    return register


def spread(positions: Tensor | None, x: Tensor) -> Tensor:
    """Positions with an axis for the heads where they have one for the batch."""
    if positions is None:
        return torch.arange(x.shape[-2])
    return positions[..., None, :] if 1 < positions.ndim < x.ndim else positions


def per_token(positions: Tensor | None, x: Tensor) -> Tensor:
    """Positions that broadcast against the leading axes of x, one for each token."""
    if positions is None:
        return torch.arange(x.shape[-2])
    return positions.squeeze(-2) if positions.ndim == x.ndim else positions


def visible(n: int) -> Tensor:
    """(n, n), True at and below the diagonal."""
    return torch.arange(n)[:, None] >= torch.arange(n)


@variant("textbook", "View, transpose, rotate, mask, softmax, transpose, reshape.", TEXTBOOK)
def textbook(
    x: Tensor,
    w: Four,
    heads: int,
    positions: Tensor | None = None,
    theta: float | None = None,
    limit: int = 0,
) -> Tensor:
    n, d = x.shape[-2:]
    q, k, v = ((x @ m.T).view(*x.shape[:-1], heads, d // heads).transpose(-3, -2) for m in w[:3])
    if theta is not None:
        where = spread(positions, x)
        q, k = (rope.stacked(t, where, theta, limit) for t in (q, k))
    scores = q @ k.transpose(-2, -1) / math.sqrt(d // heads)
    p = torch.softmax(scores.masked_fill(~visible(n), -math.inf), dim=-1)
    return (p @ v).transpose(-3, -2).reshape(x.shape) @ w[3].T


@variant("fused", "One projection for q, k and v, F.scaled_dot_product_attention.", TORCH)
def fused(
    x: Tensor,
    w: Four,
    heads: int,
    positions: Tensor | None = None,
    theta: float | None = None,
    limit: int = 0,
) -> Tensor:
    qkv = F.linear(x, torch.cat(w[:3])).unflatten(-1, (3, heads, -1))
    q, k, v = (t.transpose(-3, -2) for t in qkv.unbind(-3))
    if theta is not None:
        where = spread(positions, x)
        q, k = (rope.complex_product(t, where, theta, limit) for t in (q, k))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return F.linear(y.transpose(-3, -2).flatten(-2), w[3])


@variant("einsum", "Projections with an axis for heads, all products by einsum.", PRACTICE)
def einsum(
    x: Tensor,
    w: Four,
    heads: int,
    positions: Tensor | None = None,
    theta: float | None = None,
    limit: int = 0,
) -> Tensor:
    d = x.shape[-1]
    by_head = [m.reshape(heads, d // heads, d) for m in w[:3]]
    q, k, v = (torch.einsum("...sd,hed->...hse", x, m) for m in by_head)
    if theta is not None:
        where = spread(positions, x)
        q, k = (rope.matrices(t, where, theta, limit) for t in (q, k))
    scores = torch.einsum("...he,...ke->...hk", q * (d // heads) ** -0.5, k)
    p = scores.masked_fill(~visible(x.shape[-2]), -math.inf).softmax(-1)
    out = w[3].reshape(d, heads, d // heads)
    return torch.einsum("...hse,dhe->...sd", p @ v, out)


@variant("head-loop", "One head after the other, results concatenated.", TEXTBOOK)
def head_loop(
    x: Tensor,
    w: Four,
    heads: int,
    positions: Tensor | None = None,
    theta: float | None = None,
    limit: int = 0,
) -> Tensor:
    size = x.shape[-1] // heads
    where = per_token(positions, x)
    results = []
    for h in range(heads):
        rows = slice(h * size, (h + 1) * size)
        q, k, v = (x @ m[rows].T for m in w[:3])
        if theta is not None:
            q, k = (rope.pair_loop(t, where, theta, limit) for t in (q, k))
        scores = (q / size**0.5) @ k.mT
        hidden = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).triu(1)
        results.append(scores.masked_fill(hidden, -math.inf).softmax(-1) @ v)
    return torch.cat(results, dim=-1) @ w[3].T


@variant("einops", "einops.rearrange for heads.", COURSES)
def rearranged(
    x: Tensor,
    w: Four,
    heads: int,
    positions: Tensor | None = None,
    theta: float | None = None,
    limit: int = 0,
) -> Tensor:
    q, k, v = (einops.rearrange(x @ m.T, "... s (h e) -> ... h s e", h=heads) for m in w[:3])
    if theta is not None:
        where = spread(positions, x)
        q, k = (rope.rotate_every_two(t, where, theta, limit) for t in (q, k))
    scores = einops.einsum(q, k, "... q e, ... k e -> ... q k") / q.shape[-1] ** 0.5
    p = torch.where(visible(x.shape[-2]), scores, -torch.inf).softmax(dim=-1)
    return einops.rearrange(p @ v, "... h s e -> ... s (h e)") @ w[3].T


@variant(
    "summed-heads", "Each head has its own output projection; the results are added.", TEXTBOOK
)
def summed_heads(
    x: Tensor,
    w: Four,
    heads: int,
    positions: Tensor | None = None,
    theta: float | None = None,
    limit: int = 0,
) -> Tensor:
    y = wide(x)
    where = per_token(positions, x)
    total = torch.zeros_like(y)
    for m in zip(*(t.chunk(heads) for t in w[:3]), w[3].chunk(heads, dim=1), strict=True):
        q, k, v = (y @ wide(t).T for t in m[:3])
        if theta is not None:
            q, k = (rope.float64_inside(t, where, theta, limit) for t in (q, k))
        scores = (q * q.shape[-1] ** -0.5) @ k.mT
        p = scores.masked_fill(~visible(x.shape[-2]), -math.inf).softmax(-1)
        total = total + p @ v @ wide(m[3]).T
    return total.to(x.dtype)


@variant("flattened", "Batch and heads flattened to one axis, torch.bmm.", LIBRARIES)
def flattened(
    x: Tensor,
    w: Four,
    heads: int,
    positions: Tensor | None = None,
    theta: float | None = None,
    limit: int = 0,
) -> Tensor:
    n, d = x.shape[-2:]
    rows = x.reshape(-1, n, d)
    q, k, v = ((rows @ m.T).reshape(-1, n, heads, d // heads).transpose(1, 2) for m in w[:3])
    if theta is not None:
        where = per_token(positions, x).expand(x.shape[:-1]).reshape(-1, 1, n)
        q, k = (rope.growing_cache(t, where, theta, limit) for t in (q, k))
    q, k, v = (t.reshape(-1, n, d // heads) for t in (q, k, v))
    scores = torch.bmm(q, k.mT) * (d // heads) ** -0.5
    p = (scores + torch.full((n, n), -math.inf, dtype=x.dtype).triu(1)).softmax(-1)
    y = torch.bmm(p, v).reshape(-1, heads, n, d // heads).transpose(1, 2).reshape(x.shape)
    return y @ w[3].T


@variant("growing-cache", "Token by token, keys and values kept as in decoding.", LIBRARIES)
def token_by_token(
    x: Tensor,
    w: Four,
    heads: int,
    positions: Tensor | None = None,
    theta: float | None = None,
    limit: int = 0,
) -> Tensor:
    q, k, v = ((x @ m.T).unflatten(-1, (heads, -1)).transpose(-3, -2) for m in w[:3])
    where = spread(positions, x)
    keys, values, rows = k[..., :0, :], v[..., :0, :], []
    for i in range(x.shape[-2]):
        now = slice(i, i + 1)
        query, key = q[..., now, :], k[..., now, :]
        if theta is not None:
            query, key = (rope.stacked(t, where[..., now], theta, limit) for t in (query, key))
        keys = torch.cat((keys, key), dim=-2)
        values = torch.cat((values, v[..., now, :]), dim=-2)
        p = (query * query.shape[-1] ** -0.5 @ keys.mT).softmax(-1)
        rows.append(p @ values)
    return torch.cat(rows, dim=-2).transpose(-3, -2).flatten(-2) @ w[3].T


class Attention(nn.Module):
    """The usual course module with float32 parameters."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def forward(self, x: Tensor, positions: Tensor, theta: float | None, limit: int) -> Tensor:
        q, k, v = (
            m(x).unflatten(-1, (self.heads, -1)).transpose(-3, -2) for m in (self.q, self.k, self.v)
        )
        if theta is not None:
            turn = rope.Rotary(theta, q.shape[-1], limit)
            q, k = turn(q, positions), turn(k, positions)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        p = scores.masked_fill(~visible(x.shape[-2]), -math.inf).softmax(-1)
        return self.o((p @ v).transpose(-3, -2).flatten(-2))


@variant(
    "module",
    "A float32 module filled by .data.copy_, float32 rotary tables.",
    COURSES,
    "must-only",
    COPIES,
)
def module(
    x: Tensor,
    w: Four,
    heads: int,
    positions: Tensor | None = None,
    theta: float | None = None,
    limit: int = 0,
) -> Tensor:
    layer = Attention(x.shape[-1], heads)
    for part, weight in zip((layer.q, layer.k, layer.v, layer.o), w, strict=True):
        part.weight.data.copy_(weight)
    return layer(x, spread(positions, x), theta, limit)


@plain("torch-forward", "F.multi_head_attention_forward with a causal mask.", TORCH)
def torch_forward(x: Tensor, w: Four, heads: int) -> Tensor:
    n, d = x.shape[-2:]
    rows = x.reshape(-1, n, d).transpose(0, 1)
    y, _ = F.multi_head_attention_forward(
        rows,
        rows,
        rows,
        d,
        heads,
        torch.cat(w[:3]),
        None,
        None,
        None,
        False,
        0.0,
        w[3],
        None,
        need_weights=False,
        attn_mask=~visible(n),
    )
    return y.transpose(0, 1).reshape(x.shape)


@turned(
    "half-split-weights",
    "Rows of Wq and Wk permuted once, then half-split rotation.",
    LIBRARIES,
    "must-only",
    FLOAT32,
)
def half_split_weights(
    x: Tensor, w: Four, heads: int, positions: Tensor | None, theta: float, limit: int
) -> Tensor:
    d = x.shape[-1] // heads
    wq, wk = (m.unflatten(0, (heads, -1, 2)).transpose(1, 2).reshape(m.shape) for m in w[:2])
    q, k, v = ((x @ m.T).unflatten(-1, (heads, d)).transpose(-3, -2) for m in (wq, wk, w[2]))
    angle = spread(positions, x)[..., None] * rope.frequencies(d, theta)
    c, s = torch.cat((angle, angle), -1).cos(), torch.cat((angle, angle), -1).sin()

    def turn(t: Tensor) -> Tensor:
        low, high = t.chunk(2, dim=-1)
        return (t * c + torch.cat((-high, low), -1) * s).to(t.dtype)

    y = F.scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True)
    return y.transpose(-3, -2).flatten(-2) @ w[3].T
