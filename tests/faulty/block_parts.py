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
from .catalogue import CONVENTION, MISREAD, PYTORCH, REPORTS, SPEED, SUBMISSIONS, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "transformer_block", "block", block_by)
RIGHT = Block()


def attending(pieces: Attention) -> Block:
    """The block with other pieces of attention."""
    return Block(attention=pieces)


def normed(by: Function) -> Block:
    """The block with by(x, g, eps) for both norms."""
    return Block(norm=by)


fault(
    "layer-norm",
    "Normalises with the mean subtracted, as LayerNorm does.",
    "Which norm does this block have?",
    source=CONVENTION,
)(normed(lambda x, g, eps: rmsnorm(x - x.mean(-1, keepdim=True), g, eps)))

fault(
    "gains-ignored",
    "Does not apply the norms' gains.",
    "Are all the weights used?",
    source=SUBMISSIONS,
)(normed(lambda x, g, eps: rmsnorm(x, torch.ones_like(g), eps)))

fault(
    "gain-plus-one",
    "Multiplies by 1 + gain.",
    "Here the gain starts at one, not at zero.",
    source=CONVENTION,
)(normed(lambda x, g, eps: rmsnorm(x, 1 + g, eps)))

fault(
    "norm-along-sequence",
    "Normalises over the sequence axis.",
    "Each token is normalised by its own features alone.",
)(normed(lambda x, g, eps: rmsnorm(x.mT, torch.ones(x.shape[-2]), eps).mT * g))

fault(
    "eps-outside-root",
    "Adds eps to the root instead of to the mean under the root.",
    "At which magnitude of the input does the place of eps matter?",
    source=SUBMISSIONS,
    at={"scale": 1e-3},
)(normed(lambda x, g, eps: x / (x.square().mean(-1, keepdim=True).sqrt() + eps) * g))

fault(
    "eps-1e-6",
    "Uses 1e-6 for eps.",
    "Which eps does the course text give?",
    source=CONVENTION,
    level="SHOULD",
    at={"scale": 1e-3},
)(replace(RIGHT, eps=1e-6))

fault(
    "eps-1e-3",
    "Uses 1e-3 for eps.",
    "Which eps does the course text give?",
    source=REPORTS,
    at={"scale": 0.1},
)(replace(RIGHT, eps=1e-3))


def fed(by: Function) -> Block:
    """The block with by(x, w1, w2, w3) for the feed-forward network."""
    return Block(feed=by)


def narrowed(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    """SwiGLU with a hidden width of 8/3 d_model, rounded to a multiple of 8."""
    width = round(8 / 3 * x.shape[-1] / 8) * 8
    return swiglu(x, w1[:width], w2[:, :width], w3[:width])


def padded(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    """SwiGLU whose W1 is copied into a weight with a multiple of 64 rows."""
    own = torch.empty((len(w1) + 63) // 64 * 64, w1.shape[1])
    return swiglu(x, own.copy_(w1), w2, w3)


fault(
    "feed-forward-gate-swapped",
    "Puts the activation on W3 x instead of W1 x.",
    "Which of the two weights belongs to the gate?",
    source=CONVENTION,
)(fed(lambda x, w1, w2, w3: swiglu(x, w3, w2, w1)))

fault(
    "feed-forward-without-gate",
    "Leaves out W3 and applies W2 to silu(W1 x).",
    "Are all the weights used?",
    source=CONVENTION,
)(fed(lambda x, w1, w2, w3: linear(silu(linear(x, w1)), w2)))

fault(
    "feed-forward-gelu",
    "Gates with GELU.",
    "Which variant of GLU is this?",
    source=CONVENTION,
)(fed(lambda x, w1, w2, w3: linear(F.gelu(linear(x, w1)) * linear(x, w3), w2)))

fault(
    "feed-forward-sigmoid",
    "Gates with the sigmoid alone.",
    "The gate is x sigmoid(x), not sigmoid(x).",
    source=MISREAD,
)(fed(lambda x, w1, w2, w3: linear(torch.sigmoid(linear(x, w1)) * linear(x, w3), w2)))

fault(
    "feed-forward-width-recomputed",
    "Uses 8/3 d_model, rounded to a multiple of 8, as hidden width instead of d_ff.",
    "The rule is advice for choosing d_ff; whoever calls has chosen already.",
    source=SUBMISSIONS,
    at={"d_ff": 50},
)(fed(narrowed))

fault(
    "feed-forward-width-crash",
    "Allocates the feed-forward weights with d_ff rounded up to a multiple of 64.",
    "The rule is advice for choosing d_ff; whoever calls has chosen already.",
    source=SUBMISSIONS,
    visible="crash",
)(fed(padded))


def renamed(**names: str) -> Block:
    """The block that reads one weight under another's name (dots written as __)."""
    pairs = {k.replace("__", "."): v.replace("__", ".") for k, v in names.items()}
    return Block(rename=lambda w: {k: w[pairs.get(k, k)] for k in w})


fault(
    "second-feed-weight-names-swapped",
    "Reads W3 under the name of W1 and W1 under the name of W3.",
    "Which name belongs to the gate?",
)(renamed(ffn__w1__weight="ffn.w3.weight", ffn__w3__weight="ffn.w1.weight"))

fault(
    "one-projection-for-all",
    "Reads the query weight for keys and values too.",
    "Are all the weights used?",
)(renamed(attn__k_proj__weight="attn.q_proj.weight", attn__v_proj__weight="attn.q_proj.weight"))


def from_table(length: Function) -> Block:
    """The block with angles looked up in a table of length(limit) positions."""

    def rotate(t: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
        return turn(t, angles(torch.arange(length(limit)), t.shape[-1], theta)[p])

    return attending(Attention(rotate_q=rotate, rotate_k=rotate))


fault(
    "table-one-short",
    "Builds a rotary table that lacks the last position.",
    "Try a sequence of the largest length.",
    source=REPORTS,
    visible="crash",
    at={"seq": 9, "limit": 9},
)(from_table(lambda limit: limit - 1))

fault(
    "mask-of-full-length",
    "Builds the mask for the longest sequence and does not cut it.",
    "How many tokens are there in this call?",
    source=REPORTS,
    visible="crash",
)(attending(Attention(mask=lambda n, limit: causal(limit))))

fault(
    "rotates-whole-table",
    "Uses all rows of the rotary table, which fits full-length sequences only.",
    "Which rows of the table belong to this sequence?",
    source=REPORTS,
    visible="crash",
)(
    attending(
        Attention(
            rotate_q=lambda t, p, theta, limit: rope(t, torch.arange(limit), theta),
            rotate_k=lambda t, p, theta, limit: rope(t, torch.arange(limit), theta),
        )
    )
)

fault(
    "positions-meet-heads",
    "Repeats positions over the batch and meets them with the heads: only batch 1 or batch = "
    "heads runs.",
    "Which axis of the positions meets which axis of the vectors?",
    source=SUBMISSIONS,
    visible="crash",
)(attending(Attention(place=lambda p, x: torch.arange(x.shape[-2]).repeat(len(x), 1))))


def adapted(f: Function) -> Function:
    """f(right, x, weights, heads, theta, limit), where right is the plain block."""

    def plain(x: Tensor, w: Any, heads: int, theta: float, limit: int) -> Tensor:
        return block(x, w, heads, theta, limit, RIGHT)

    return lambda *arguments: f(plain, *arguments)


fault(
    "batch-of-one-only",
    "Views the input as one sequence, which fails for larger batches.",
    "Try two sequences at once.",
    source=SUBMISSIONS,
    visible="crash",
)(adapted(lambda right, x, *more: right(x.reshape(1, x.shape[-2], x.shape[-1]), *more)))

fault(
    "three-axes-only",
    "Unpacks batch, sequence, features.",
    "How many leading axes an input has is open.",
    source=SUBMISSIONS,
    level="SHOULD",
    visible="crash",
    at={"lead": ()},
)(adapted(lambda right, x, *more: right(torch.einsum("bsd->bsd", x), *more)))

fault(
    "contiguous-only",
    "Uses view on the input, which refuses a transposed one.",
    "Not every tensor lies in memory in the order of its axes.",
    source=PYTORCH,
    visible="strides",
)(adapted(lambda right, x, *more: right(x.view(-1).view(x.shape), *more)))

fault(
    "float32-result",
    "Answers in float32 for input of lower precision.",
    "Widening inside is fine; what leaves has the dtype that came in.",
    level="SHOULD",
    visible="dtype",
    at={"dtype": torch.bfloat16},
)(adapted(lambda right, x, w, *more: right(x.float(), {n: v.float() for n, v in w.items()}, *more)))


@adapted
def weights_taken_out(right: Function, x: Tensor, w: Any, *more: Any) -> Tensor:
    own = {name: w.pop(name) for name in list(w)}
    return right(x, own, *more)


fault(
    "weights-taken-out",
    "Takes the weights out of the caller's dictionary.",
    "What does the caller find in the dictionary afterwards?",
    source=SUBMISSIONS,
    level="SHOULD",
    visible="purity",
)(weights_taken_out)


def first_weights_kept() -> Function:
    """A block that is built once for each width."""
    kept: dict[int, Any] = {}
    return adapted(
        lambda right, x, w, *more: right(x, kept.setdefault(x.shape[-1], dict(w)), *more)
    )


fault(
    "first-weights-kept",
    "Keeps the weights of the first call for all later ones of the same width.",
    "Call it twice with different weights.",
    source=SPEED,
    visible="state",
    at=[{}, {"weights": block_weights(12, 10, seed=50)}],
)(first_weights_kept())
