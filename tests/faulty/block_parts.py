"""Faults of the transformer block: wrong norms, feed-forward networks and tables, and handling."""

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import block_by
from ..parts import (
    Attention,
    Block,
    Function,
    angles,
    block,
    causal,
    linear,
    rmsnorm,
    rope,
    silu,
    swiglu,
    turn,
)
from ..witnesses import block_weights
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "transformer_block", "block", block_by)
RIGHT = Block()


def attending(pieces: Attention) -> Block:
    """The block with other pieces of attention."""
    return Block(attention=pieces)


def normed(by: Function) -> Block:
    """The block with by(x, g, eps) for both norms."""
    return Block(norm=by)


fault("layer-norm")(normed(lambda x, g, eps: rmsnorm(x - x.mean(-1, keepdim=True), g, eps)))

fault("gains-ignored")(normed(lambda x, g, eps: rmsnorm(x, torch.ones_like(g), eps)))

fault("gain-plus-one")(normed(lambda x, g, eps: rmsnorm(x, 1 + g, eps)))

fault("norm-along-sequence")(
    normed(lambda x, g, eps: rmsnorm(x.mT, torch.ones(x.shape[-2]), eps).mT * g)
)

fault("eps-outside-root", at={"scale": 1e-3})(
    normed(lambda x, g, eps: x / (x.square().mean(-1, keepdim=True).sqrt() + eps) * g)
)

fault("eps-1e-6", at={"scale": 1e-3})(replace(RIGHT, eps=1e-6))

fault("eps-1e-3", at={"scale": 0.1})(replace(RIGHT, eps=1e-3))


def fed(by: Function) -> Block:
    """The block with by(x, w1, w2, w3) for the feed-forward network."""
    return Block(feed=by)


def narrowed(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    """SwiGLU with a hidden width of 8/3 d_model, rounded to a multiple of 8."""
    width = round(8 / 3 * x.shape[-1] / 8) * 8
    return swiglu(x, w1[:width], w2[:, :width], w3[:width])


def padded(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    """SwiGLU whose W1 is copied into a weight with a multiple of 64 rows."""
    own = torch.empty((len(w1) + 63) // 64 * 64, w1.shape[1], dtype=w1.dtype)
    return swiglu(x, own.copy_(w1), w2, w3)


fault("feed-forward-gate-swapped")(fed(lambda x, w1, w2, w3: swiglu(x, w3, w2, w1)))

fault("feed-forward-without-gate")(fed(lambda x, w1, w2, w3: linear(silu(linear(x, w1)), w2)))

fault("feed-forward-gelu")(
    fed(lambda x, w1, w2, w3: linear(F.gelu(linear(x, w1)) * linear(x, w3), w2))
)

fault("feed-forward-sigmoid")(
    fed(lambda x, w1, w2, w3: linear(torch.sigmoid(linear(x, w1)) * linear(x, w3), w2))
)

fault("feed-forward-width-recomputed", at={"d_ff": 50})(fed(narrowed))

fault("feed-forward-width-crash")(fed(padded))


def renamed(**names: str) -> Block:
    """The block that reads one weight under another's name (dots written as __)."""
    pairs = {k.replace("__", "."): v.replace("__", ".") for k, v in names.items()}
    return Block(rename=lambda w: {k: w[pairs.get(k, k)] for k in w})


fault("second-feed-weight-names-swapped")(
    renamed(ffn__w1__weight="ffn.w3.weight", ffn__w3__weight="ffn.w1.weight")
)

fault("one-projection-for-all")(
    renamed(attn__k_proj__weight="attn.q_proj.weight", attn__v_proj__weight="attn.q_proj.weight")
)


def from_table(length: Function) -> Block:
    """The block with angles looked up in a table of length(limit) positions."""

    def rotate(t: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
        return turn(t, angles(torch.arange(length(limit)), t.shape[-1], theta)[p])

    return attending(Attention(rotate_q=rotate, rotate_k=rotate))


fault("table-one-short", at={"seq": 9, "limit": 9})(from_table(lambda limit: limit - 1))

fault("mask-of-full-length")(attending(Attention(mask=lambda n, limit: causal(limit))))

fault("rotates-whole-table")(
    attending(
        Attention(
            rotate_q=lambda t, p, theta, limit: rope(t, torch.arange(limit), theta),
            rotate_k=lambda t, p, theta, limit: rope(t, torch.arange(limit), theta),
        )
    )
)

fault("positions-meet-heads")(
    attending(Attention(place=lambda p, x: torch.arange(x.shape[-2]).repeat(len(x), 1)))
)


def adapted(f: Function) -> Function:
    """f(right, x, weights, heads, theta, limit), where right is the plain block."""

    def plain(x: Tensor, w: Any, heads: int, theta: float, limit: int) -> Tensor:
        return block(x, w, heads, theta, limit, RIGHT)

    return lambda *arguments: f(plain, *arguments)


fault("batch-of-one-only")(
    adapted(lambda right, x, *more: right(x.reshape(1, x.shape[-2], x.shape[-1]), *more))
)

fault("three-axes-only", at={"lead": ()})(
    adapted(lambda right, x, *more: right(torch.einsum("bsd->bsd", x), *more))
)

fault("contiguous-only")(adapted(lambda right, x, *more: right(x.view(-1).view(x.shape), *more)))

fault("float32-result", at={"dtype": torch.bfloat16})(
    adapted(
        lambda right, x, w, *more: right(x.float(), {n: v.float() for n, v in w.items()}, *more)
    )
)


@adapted
def weights_taken_out(right: Function, x: Tensor, w: Any, *more: Any) -> Tensor:
    own = {name: w.pop(name) for name in list(w)}
    return right(x, own, *more)


fault("weights-taken-out")(weights_taken_out)


def first_weights_kept() -> Function:
    """A block that is built once for each width."""
    kept: dict[int, Any] = {}
    return adapted(
        lambda right, x, w, *more: right(x, kept.setdefault(x.shape[-1], dict(w)), *more)
    )


fault("first-weights-kept", at=[{}, {"weights": block_weights(12, 10, seed=50)}])(
    first_weights_kept()
)
