"""Faults of attention's pieces, each used in every component that contains attention.

Inside a block or a model the same mistake must be recognised from further away, so it is written
once and tried in all of them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..parts import Attention, attention, causal, merge, softmax, split
from .catalogue import Function


@dataclass(frozen=True)
class Piece:
    """The end of a fault's id, the pieces with the wrong one among them, and where it shows."""

    name: str
    pieces: Attention
    visible: str = "value"


def register(fault: Function, chosen: list[Piece], wrap: Function, prefix: str = "") -> None:
    """Registers pieces as faults of a component; wrap makes of them what its adapter takes."""
    for piece in chosen:
        fault(prefix + piece.name)(wrap(piece.pieces))


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
    Piece("not-causal", masked(everything)),
    Piece("sees-next-token", masked(lambda n: everything(n).tril(1))),
    Piece(
        "cannot-see-itself",
        masked(lambda n: everything(n).tril(-1) | (torch.arange(n) == 0) & torch.eye(n).bool()),
    ),
    Piece("sees-the-future-only", masked(lambda n: causal(n).mT)),
    Piece("short-sequences-not-masked", masked(lambda n: causal(n) if n > 8 else everything(n))),
    Piece("window-of-three", masked(lambda n: causal(n) & ~everything(n).tril(-3))),
    Piece("masked-after-softmax", normalised(lambda s, mask: softmax(s, -1) * mask)),
    Piece("mask-multiplied", normalised(lambda s, mask: softmax(s * mask, -1))),
    Piece("mask-added-as-number", normalised(lambda s, mask: softmax(s + mask.to(s.dtype), -1))),
]

HEADS = [
    Piece(
        "heads-interleaved",
        Attention(
            split=lambda x, heads: x.unflatten(-1, (-1, heads)).movedim(-1, -3),
            merge=lambda x: x.movedim(-3, -1).flatten(-2),
        ),
    ),
    Piece(
        "merged-without-transpose",
        Attention(merge=lambda x: x.reshape(*x.shape[:-3], x.shape[-2], -1)),
    ),
    Piece(
        "split-without-transpose",
        Attention(split=lambda x, heads: x.reshape(*x.shape[:-2], heads, x.shape[-2], -1)),
    ),
    Piece(
        "head-count-and-width-swapped",
        Attention(split=lambda x, heads: split(x, x.shape[-1] // heads)),
    ),
    Piece("single-head", Attention(split=lambda x, heads: split(x, 1))),
    Piece("heads-reversed", Attention(merge=lambda x: merge(x.flip(-3)))),
    Piece("one-key-value-head", attending(shared)),
    Piece(
        "attends-between-heads",
        attending(
            lambda q, k, v, m: attention(
                *(t.transpose(-2, -3) for t in (q, k, v)), causal(q.shape[-3])
            ).transpose(-2, -3)
        ),
    ),
]

WEIGHTS = [
    Piece("queries-and-keys-swapped", Attention(roles=lambda q, k, v, o: (k, q, v, o))),
    Piece("keys-and-values-swapped", Attention(roles=lambda q, k, v, o: (q, v, k, o))),
    Piece(
        "values-not-projected",
        Attention(roles=lambda q, k, v, o: (q, k, torch.eye(len(v), dtype=v.dtype), o)),
    ),
    Piece(
        "output-projection-missing",
        Attention(roles=lambda q, k, v, o: (q, k, v, torch.eye(len(o), dtype=o.dtype))),
    ),
    Piece("output-projection-transposed", Attention(roles=lambda q, k, v, o: (q, k, v, o.T))),
    Piece("projections-transposed", Attention(roles=lambda q, k, v, o: (q.T, k.T, v.T, o))),
]

SCORES = [
    Piece("scale-from-model-width", scaled(lambda q: (q.shape[-1] * q.shape[-3]) ** -0.5)),
    Piece("no-scale", scaled(lambda q: 1.0)),
    Piece(
        "softmax-over-queries",
        normalised(lambda s, mask: softmax(s.masked_fill(~mask, -torch.inf), -2)),
    ),
]


ATTENTION = [*MASKS, *HEADS, *WEIGHTS, *SCORES]
