"""Faults of attention's pieces, each used in every component that contains attention.

Inside a block or a model the same mistake must be recognised from further away, so it is written
once and tried in all of them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..parts import (
    Attention,
    attention,
    causal,
    merge,
    softmax,
    split,
)
from .catalogue import CONVENTION, MISREAD, PYTORCH, SLIP, SUBMISSIONS, Function


@dataclass(frozen=True)
class Piece:
    """What a fault says of itself, and the pieces with the wrong one among them."""

    name: str
    sentence: str
    hint: str
    pieces: Attention
    source: str = SLIP
    visible: str = "value"


def register(fault: Function, chosen: list[Piece], wrap: Function, prefix: str = "") -> None:
    """Registers pieces as faults of a component; wrap makes of them what its adapter takes."""
    for piece in chosen:
        describe = fault(
            prefix + piece.name,
            piece.sentence,
            piece.hint,
            source=piece.source,
            visible=piece.visible,
        )
        describe(wrap(piece.pieces))


def masked(by: Function) -> Attention:
    """Attention with by(length) for the causal mask."""
    return Attention(mask=lambda n, limit: by(n))


def attending(by: Function) -> Attention:
    """Attention with by(q, k, v, mask) for the scaled dot product."""
    return Attention(attend=by)


def normalised(by: Function) -> Attention:
    """Attention with by(scores, mask) for the softmax over scores that are not yet masked."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return by(q @ k.mT * q.shape[-1] ** -0.5, mask) @ v

    return Attention(attend=attend)


def scaled(by: Function) -> Attention:
    """Attention with scores multiplied by by(q)."""
    return Attention(attend=lambda q, k, v, m: attention(q, k, v, m, scale=by(q)))


def shared(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The first head's keys and values for all heads."""
    return attention(q, k[..., :1, :, :].expand_as(k), v[..., :1, :, :].expand_as(v), mask)


def everything(n: int) -> Tensor:
    """(n, n), all True."""
    return torch.ones(n, n, dtype=torch.bool)


MASKS = [
    Piece(
        "not-causal",
        "Lets every token see all others.",
        "Change the last token: may an earlier output move?",
        masked(everything),
        SUBMISSIONS,
    ),
    Piece(
        "sees-next-token",
        "Lets every token see the one after it.",
        "On which diagonal does the mask begin?",
        masked(lambda n: everything(n).tril(1)),
    ),
    Piece(
        "cannot-see-itself",
        "Hides every token but the first from itself.",
        "On which diagonal does the mask begin?",
        masked(lambda n: everything(n).tril(-1) | (torch.arange(n) == 0) & torch.eye(n).bool()),
    ),
    Piece(
        "sees-the-future-only",
        "Transposes the mask: every token sees itself and what comes after.",
        "Change the last token: may an earlier output move?",
        masked(lambda n: causal(n).mT),
    ),
    Piece(
        "short-sequences-not-masked",
        "Masks only sequences of more than eight tokens.",
        "Does a shorter sequence have a future?",
        masked(lambda n: causal(n) if n > 8 else everything(n)),
        SUBMISSIONS,
    ),
    Piece(
        "window-of-three",
        "Lets a token see only itself and the two before it.",
        "How far back may a token look?",
        masked(lambda n: causal(n) & ~everything(n).tril(-3)),
        CONVENTION,
    ),
    Piece(
        "masked-after-softmax",
        "Sets weights of later tokens to 0 after the softmax.",
        "What is the sum of the weights that are left?",
        normalised(lambda s, mask: softmax(s, -1) * mask),
        SUBMISSIONS,
    ),
    Piece(
        "mask-multiplied",
        "Multiplies scores by the mask, so later tokens have score 0.",
        "What weight does a score of 0 get?",
        normalised(lambda s, mask: softmax(s * mask, -1)),
    ),
    Piece(
        "mask-added-as-number",
        "Adds the mask to the scores as 0 and 1.",
        "How much must be added to hide a key?",
        normalised(lambda s, mask: softmax(s + mask.to(s.dtype), -1)),
        PYTORCH,
    ),
]

HEADS = [
    Piece(
        "heads-interleaved",
        "Takes the features of a head from all over the projection instead of one block.",
        "Which rows of the projection belong to the first head?",
        Attention(
            split=lambda x, heads: x.unflatten(-1, (-1, heads)).movedim(-1, -3),
            merge=lambda x: x.movedim(-3, -1).flatten(-2),
        ),
        PYTORCH,
    ),
    Piece(
        "merged-without-transpose",
        "Joins the heads without moving the sequence axis back.",
        "Which axis must stand before the features when they are joined?",
        Attention(merge=lambda x: x.reshape(*x.shape[:-3], x.shape[-2], -1)),
        PYTORCH,
    ),
    Piece(
        "split-without-transpose",
        "Splits into heads by shape alone, which mixes tokens and features.",
        "Changing a shape and exchanging axes are different things.",
        Attention(split=lambda x, heads: x.reshape(*x.shape[:-2], heads, x.shape[-2], -1)),
        PYTORCH,
    ),
    Piece(
        "head-count-and-width-swapped",
        "Makes d_k heads of width num_heads.",
        "Which of the two factors of d_model counts heads?",
        Attention(split=lambda x, heads: split(x, x.shape[-1] // heads)),
    ),
    Piece(
        "single-head",
        "Attends with one head of the full width.",
        "Is the number of heads used anywhere?",
        Attention(split=lambda x, heads: split(x, 1)),
    ),
    Piece(
        "heads-reversed",
        "Joins the heads in reverse order.",
        "Which columns of the output weight belong to the first head?",
        Attention(merge=lambda x: merge(x.flip(-3))),
    ),
    Piece(
        "one-key-value-head",
        "Uses the first head's keys and values for all heads.",
        "How many heads do keys and values have here?",
        attending(shared),
        CONVENTION,
    ),
    Piece(
        "attends-between-heads",
        "Lets the heads of one token attend to one another instead of tokens.",
        "Over which axis must the scores run?",
        attending(
            lambda q, k, v, m: attention(
                *(t.transpose(-2, -3) for t in (q, k, v)), causal(q.shape[-3])
            ).transpose(-2, -3)
        ),
        PYTORCH,
    ),
]

WEIGHTS = [
    Piece(
        "queries-and-keys-swapped",
        "Exchanges the projections of queries and keys.",
        "Which weight belongs to the token that looks?",
        Attention(roles=lambda q, k, v, o: (k, q, v, o)),
    ),
    Piece(
        "keys-and-values-swapped",
        "Exchanges the projections of keys and values.",
        "Which weight belongs to what is averaged?",
        Attention(roles=lambda q, k, v, o: (q, v, k, o)),
    ),
    Piece(
        "values-not-projected",
        "Averages the input itself instead of its value projection.",
        "Four weights are given; is each of them used?",
        Attention(roles=lambda q, k, v, o: (q, k, torch.eye(len(v), dtype=v.dtype), o)),
    ),
    Piece(
        "output-projection-missing",
        "Leaves out the output projection.",
        "Four weights are given; is each of them used?",
        Attention(roles=lambda q, k, v, o: (q, k, v, torch.eye(len(o), dtype=o.dtype))),
        SUBMISSIONS,
    ),
    Piece(
        "output-projection-transposed",
        "Multiplies by the output weight instead of its transpose, which always runs.",
        "A square weight hides which axis belongs to the input.",
        Attention(roles=lambda q, k, v, o: (q, k, v, o.T)),
        SUBMISSIONS,
    ),
    Piece(
        "projections-transposed",
        "Multiplies by the input weights instead of their transposes, which always runs.",
        "A square weight hides which axis belongs to the input.",
        Attention(roles=lambda q, k, v, o: (q.T, k.T, v.T, o)),
        SUBMISSIONS,
    ),
]

SCORES = [
    Piece(
        "scale-from-model-width",
        "Divides scores by the root of d_model instead of d_k.",
        "Between vectors of which width is the score an inner product?",
        scaled(lambda q: (q.shape[-1] * q.shape[-3]) ** -0.5),
        MISREAD,
    ),
    Piece(
        "no-scale",
        "Leaves out the scale.",
        "By what does the spread of a score grow with d_k?",
        scaled(lambda q: 1.0),
    ),
    Piece(
        "softmax-over-queries",
        "Takes the softmax over the queries.",
        "What must add up to 1: what one query gives, or what one key gets?",
        normalised(lambda s, mask: softmax(s.masked_fill(~mask, -torch.inf), -2)),
    ),
]


ATTENTION = [*MASKS, *HEADS, *WEIGHTS, *SCORES]
