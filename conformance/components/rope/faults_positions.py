"""Mistakes about which position a row has, about axes, and about the derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.rope.oracle import feature_pairs, rope, row_positions, turned_pairs
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import axes_other_than, refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.numerics.dtypes import FLOAT32, wider

MISTAKES = Mistakes("rope")
fault = MISTAKES.fault

Rows = Callable[[Any, tuple[int, ...], int], Any]
Turn = Callable[[Array], Array]


def placed(identifier: str, rows: Rows) -> None:
    """The rows have other positions: `rows(positions given, shape of the rows, limit)`."""
    fault(identifier, "row_positions")(as_array(rows))


def as_array(rows: Rows) -> Rows:
    """`rows` of positions that may have come as anything array-like."""
    return lambda given, shape, limit: rows(np.asarray(given), shape, limit)


def around(identifier: str, change: Callable[[Turn, Array], Array]) -> None:
    """`change(turn, x)` for the whole, with the right rotation at hand as `turn`."""

    def instead(
        *, d_k: int, theta: float, max_seq_len: int, in_query_or_key: Array, token_positions: Any
    ) -> Array:
        def turn(x: Array) -> Array:
            return rope(
                d_k=d_k,
                theta=theta,
                max_seq_len=max_seq_len,
                in_query_or_key=x,
                token_positions=token_positions,
            )

        return change(turn, in_query_or_key)

    fault(identifier)(instead)


def in_order(p: Any) -> Any:
    """Positions in ascending order along the sequence."""
    return np.sort(p) if p.ndim else p


def of_first_row(p: Any) -> Any:
    """The positions of the first sequence."""
    return p.reshape(-1, p.shape[-1])[0]


def beyond(p: Any, length: int) -> bool:
    """Whether a table of that many rows lacks one of the positions."""
    return bool(p.size) and bool(p.max() >= length)


def squeezed(x: Array) -> Array:
    """Without its axes of length one."""
    return m.reshape(x, tuple(length for length in x.shape if length != 1))


placed("rope-positions-ignored", lambda p, shape, limit: np.arange(shape[-1]))
placed("rope-positions-from-one", lambda p, shape, limit: p + 1)
placed("rope-positions-relative", lambda p, shape, limit: p - p[..., :1])
placed("rope-positions-sorted", lambda p, shape, limit: in_order(p))
placed("rope-positions-clipped-to-length", lambda p, shape, limit: np.minimum(p, shape[-1] - 1))
placed("rope-last-position-clamped", lambda p, shape, limit: np.minimum(p, limit - 2))
placed("rope-positions-as-bytes", lambda p, shape, limit: p.astype(np.uint8))
placed("rope-positions-normalised", lambda p, shape, limit: p / limit)
placed("rope-positions-of-first-row", lambda p, shape, limit: of_first_row(p))
placed("rope-rotates-by-head", lambda p, shape, limit: np.arange(shape[-2])[:, None])
placed("rope-positions-along-batch", lambda p, shape, limit: p[..., None])
placed("rope-head-axis-always-added", lambda p, shape, limit: p[:, None] if p.ndim == 2 else p)
placed("rope-head-axis-on-full-positions", lambda p, shape, limit: p if p.ndim == 1 else p[:, None])
placed("rope-whole-table", lambda p, shape, limit: np.arange(limit))
placed(
    "rope-table-one-short",
    refusing(row_positions, lambda p, shape, limit: beyond(p, limit - 1)),
)
placed(
    "rope-table-of-sequence-length",
    refusing(row_positions, lambda p, shape, limit: beyond(p, shape[-1])),
)
placed("rope-vector-positions-only", refusing(row_positions, lambda p, shape, limit: p.ndim != 1))

fault("rope-four-axes-only", "feature_pairs")(refusing(feature_pairs, axes_other_than(4)))
fault("rope-three-axes-only", "feature_pairs")(refusing(feature_pairs, axes_other_than(3)))

around("rope-heads-after-sequence", lambda turn, x: m.swap(turn(m.swap(x, -2, -3)), -2, -3))
around("rope-single-token-not-rotated", lambda turn, x: x if x.shape[-2] == 1 else turn(x))
around("rope-drops-size-one-axes", lambda turn, x: squeezed(turn(x)))
around("rope-added-to-input", lambda turn, x: x + turn(x))
around("rope-no-grad", lambda turn, x: m.detach(turn(x)))


def first_row_turned(turn: Turn, x: Array) -> Array:
    """The first entry along the first axis, turned, and the others as they are."""
    first = np.arange(x.shape[0]).reshape(-1, *[1] * (x.ndim - 1)) == 0
    return m.where(first, turn(x), x)


around("rope-first-row-only-rotated", first_row_turned)


@fault("rope-decaying-length")
def decaying_length(
    *, d_k: int, theta: float, max_seq_len: int, in_query_or_key: Array, token_positions: Any
) -> Array:
    x = in_query_or_key
    rows = np.asarray(row_positions(token_positions, x.shape[:-1], max_seq_len))
    decay = m.constant(0.99 ** rows[..., None], x, wider(x.format, FLOAT32))
    turned = rope(
        d_k=d_k,
        theta=theta,
        max_seq_len=max_seq_len,
        in_query_or_key=x,
        token_positions=token_positions,
    )
    return m.cast(turned * decay, x.format)


def with_slope(value: Array, slope: Array) -> Array:
    """The first value with the second's derivative: what is added is zero."""
    return value + (slope - m.detach(slope))


@fault("rope-backward-turns-forward", "turned_pairs")
def backward_turns_forward(a: Array, b: Array, cosine: Array, sine: Array) -> tuple[Array, Array]:
    first, second = turned_pairs(m.detach(a), m.detach(b), cosine, sine)
    # The transpose of turning back is turning: so does the gradient then.
    back_first, back_second = turned_pairs(a, b, cosine, -sine)
    return with_slope(first, back_first), with_slope(second, back_second)


@fault("rope-assigned-through-data", "turned_pairs")
def assigned_through_data(a: Array, b: Array, cosine: Array, sine: Array) -> tuple[Array, Array]:
    first, second = turned_pairs(m.detach(a), m.detach(b), cosine, sine)
    return with_slope(first, a), with_slope(second, b)
