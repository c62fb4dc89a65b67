"""Plain, correct components whose pieces can be replaced: the common ground of both corpora.

Each component is a short function; composite ones take a frozen dataclass of pieces
(`Attention`, `Block`, `Model`), so that a fault replaces one piece and leaves the rest right. The
`*_by` functions at the end turn a short function into one with the adapter's signature. With every
argument in float64 the adapters in `CORRECT` are what the corpora's own tests compare with.

Shapes: features last, weights (out, in), heads (..., heads, seq, d_k).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

Function = Callable[..., Any]
Weights = Mapping[str, Tensor]
MINUS_INFINITY = -math.inf


def wide(x: Tensor) -> Tensor:
    """x in float32, or as it is when it is more precise."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def linear(x: Tensor, w: Tensor) -> Tensor:
    """x W^T: (..., d_in) and (d_out, d_in) -> (..., d_out)."""
    return x @ w.mT


def embedding(w: Tensor, ids: Tensor) -> Tensor:
    """Rows of w: (vocab, d) and (...) -> (..., d)."""
    return w[ids]


def rmsnorm(x: Tensor, g: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * g, statistics at least in float32."""
    y = wide(x)
    y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)
    return (y * g).to(x.dtype)


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x)."""
    return x * torch.sigmoid(x)


def glu(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    """sigmoid(x W1^T) * (x W2^T)."""
    return torch.sigmoid(linear(x, w1)) * linear(x, w2)


def swiglu(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    """W2 (silu(W1 x) * W3 x)."""
    return linear(silu(linear(x, w1)) * linear(x, w3), w2)


def softmax(x: Tensor, dim: int) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`, shifted by the maximum."""
    y = wide(x)
    y = torch.exp(y - y.amax(dim, keepdim=True))
    return (y / y.sum(dim, keepdim=True)).to(x.dtype)


def frequencies(d: int, theta: float) -> Tensor:
    """theta^(-2i/d) for i = 0 .. d/2 - 1, float64."""
    return theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)


def angles(positions: Tensor, d: int, theta: float) -> Tensor:
    """Position times frequency: (...) -> (..., d/2), float64."""
    return positions[..., None] * frequencies(d, theta)


def turn(x: Tensor, angle: Tensor) -> Tensor:
    """Rotates the pairs (2i, 2i+1) of x (..., d) by angle (..., d/2)."""
    y = wide(x)
    a, b = y[..., 0::2], y[..., 1::2]
    c, s = angle.cos().to(y.dtype), angle.sin().to(y.dtype)
    return torch.stack((a * c - b * s, a * s + b * c), dim=-1).flatten(-2).to(x.dtype)


def rope(x: Tensor, positions: Tensor, theta: float, limit: int | None = None) -> Tensor:
    """Rotary embedding of (..., seq, d_k); `limit` is the longest sequence and needs no table."""
    return turn(x, angles(positions, x.shape[-1], theta))


def sinusoidal(d: int, positions: Tensor) -> Tensor:
    """Sine at even, cosine at odd features: (...) -> (..., d), float32."""
    angle = angles(positions, d, 10000.0)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2).float()


def rotation(t: Tensor) -> Tensor:
    """[[cos, -sin], [sin, cos]]: (...) -> (..., 2, 2)."""
    c, s = torch.cos(t), torch.sin(t)
    return torch.stack((c, -s, s, c), dim=-1).unflatten(-1, (2, 2))


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    scale: float | None = None,
    fill: float = MINUS_INFINITY,
    normalise: Function = softmax,
) -> Tensor:
    """softmax(q k^T / sqrt(d_k)) v with masked (False) scores set to `fill`."""
    scores = (q * (q.shape[-1] ** -0.5 if scale is None else scale)) @ k.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, fill)
    return normalise(scores, -1) @ v


def causal(n: int) -> Tensor:
    """(n, n), True where a query (row) may see a key (column): itself and what came before."""
    where = torch.arange(n)
    return where[:, None] >= where


def split(x: Tensor, heads: int) -> Tensor:
    """(..., seq, heads * d_k) -> (..., heads, seq, d_k), heads as contiguous blocks."""
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


def merge(x: Tensor) -> Tensor:
    """(..., heads, seq, d_k) -> (..., seq, heads * d_k)."""
    return x.transpose(-2, -3).flatten(-2)


def place(positions: Tensor | None, x: Tensor) -> Tensor:
    """Positions that broadcast against (..., heads, seq) for x (..., seq, d_model)."""
    if positions is None:
        return torch.arange(x.shape[-2], device=x.device)
    has_batch_but_no_head_axis = 1 < positions.ndim < x.ndim
    return positions.unsqueeze(-2) if has_batch_but_no_head_axis else positions


def keep(x: Tensor, *unused: Any) -> Tensor:
    """x itself: the piece that does nothing."""
    return x


@dataclass(frozen=True)
class Attention:
    """The pieces of causal multi-head self-attention.

    roles permutes or changes (wq, wk, wv, wo); before changes x; rotate_* get (t, positions,
    theta, limit) with t (..., heads, seq, d_k); mask gets the length and the limit (or None);
    after gets (result, x).
    """

    roles: Function = lambda q, k, v, o: (q, k, v, o)
    project: Function = linear
    before: Function = keep
    split: Function = split
    place: Function = place
    rotate_q: Function = rope
    rotate_k: Function = rope
    rotate_v: Function = keep
    mask: Function = lambda n, limit: causal(n)
    attend: Function = attention
    merge: Function = merge
    after: Function = keep


def self_attention(
    x: Tensor,
    weights: tuple[Tensor, Tensor, Tensor, Tensor],
    heads: int,
    pieces: Attention,
    positions: Tensor | None = None,
    theta: float | None = None,
    limit: int | None = None,
) -> Tensor:
    """(..., seq, d_model) -> (..., seq, d_model); no rotation when theta is None."""
    wq, wk, wv, wo = pieces.roles(*weights)
    x = pieces.before(x)
    q, k, v = (pieces.split(pieces.project(x, w), heads) for w in (wq, wk, wv))
    if theta is not None:
        where = pieces.place(positions, x)
        q = pieces.rotate_q(q, where, theta, limit)
        k = pieces.rotate_k(k, where, theta, limit)
        v = pieces.rotate_v(v, where, theta, limit)
    y = pieces.merge(pieces.attend(q, k, v, pieces.mask(x.shape[-2], limit)))
    return pieces.after(linear(y, wo), x)


def pre_norm(x: Tensor, n1: Function, attend: Function, n2: Function, feed: Function) -> Tensor:
    """z = x + attend(n1(x)); z + feed(n2(z))."""
    z = x + attend(n1(x))
    return z + feed(n2(z))


@dataclass(frozen=True)
class Block:
    """The pieces of a transformer block; wire gets (x, norm1, attention, norm2, feed-forward)."""

    rename: Function = keep
    norm: Function = rmsnorm
    eps: float = 1e-5
    attention: Attention = field(default_factory=Attention)
    feed: Function = swiglu
    wire: Function = pre_norm


PROJECTIONS = ("attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.output_proj")


def block(
    x: Tensor, weights: Weights, heads: int, theta: float, limit: int, pieces: Block
) -> Tensor:
    """A pre-norm block with the weights' names of the adapters contract."""
    w = pieces.rename(weights)
    projections = tuple(w[f"{name}.weight"] for name in PROJECTIONS)
    feed_weights = [w[f"ffn.w{i}.weight"] for i in (1, 2, 3)]

    def attend(t: Tensor) -> Tensor:
        return self_attention(t, projections, heads, pieces.attention, None, theta, limit)

    return pieces.wire(
        x,
        lambda t: pieces.norm(t, w["ln1.weight"], pieces.eps),
        attend,
        lambda t: pieces.norm(t, w["ln2.weight"], pieces.eps),
        lambda t: pieces.feed(t, *feed_weights),
    )


def layer(weights: Weights, i: int) -> dict[str, Tensor]:
    """The weights of layer i without the prefix "layers.{i}."."""
    prefix = f"layers.{i}."
    return {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)}


@dataclass(frozen=True)
class Model:
    """The pieces of the language model.

    order lists the layers to run; between gets (x, x after the embedding); last is the final
    norm; head gets (x, weights); finish gets the logits.
    """

    rename: Function = keep
    embed: Function = embedding
    order: Function = range
    block: Block = field(default_factory=Block)
    between: Function = keep
    last: Function = rmsnorm
    head: Function = lambda x, weights: linear(x, weights["lm_head.weight"])
    finish: Function = keep


def language_model(
    ids: Tensor, weights: Weights, layers: int, heads: int, theta: float, limit: int, pieces: Model
) -> Tensor:
    """Token ids (..., seq) -> logits (..., seq, vocab)."""
    w = pieces.rename(weights)
    start = x = pieces.embed(w["token_embeddings.weight"], ids)
    for i in pieces.order(layers):
        x = block(x, layer(w, i), heads, theta, limit, pieces.block)
        x = pieces.between(x, start)
    return pieces.finish(pieces.head(pieces.last(x, w["ln_final.weight"], 1e-5), w))


def temper(logits: Tensor, temperature: float) -> Tensor:
    """Logits (..., vocab) -> probabilities; temperature 0 puts all mass on the first maximum."""
    if temperature == 0:
        best = logits.argmax(-1, keepdim=True)
        return torch.zeros_like(logits).scatter(-1, best, 1.0)
    return softmax(logits / temperature, -1)


def nucleus(p: Tensor, top_p: float | None) -> Tensor:
    """Keeps the smallest set of most probable tokens whose mass reaches top_p, renormalised."""
    if top_p is None or top_p >= 1:
        return p
    ranked, order = p.sort(dim=-1, descending=True, stable=True)
    before = torch.nn.functional.pad(ranked.cumsum(-1)[..., :-1], (1, 0))
    kept = ranked.masked_fill(before >= top_p, 0.0)
    kept = kept / kept.sum(-1, keepdim=True)
    return torch.zeros_like(p).scatter(-1, order, kept)


def next_token(logits: Tensor, temperature: float = 1.0, top_p: float | None = None) -> Tensor:
    """(..., seq, vocab) -> (..., vocab): the distribution of the token after the last position."""
    p = nucleus(temper(wide(logits[..., -1, :]), temperature), top_p)
    return p.to(logits.dtype)
