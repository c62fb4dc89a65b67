"""Builders of the inputs on which mistakes in attention with rotary positions show."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.components.multihead_self_attention.inputs import arguments as without_positions
from conformance.numerics.draw import Draw

Build = dict[str, Any]


def arguments(
    draw: Draw,
    leading: tuple[int, ...],
    positions: Any,
    *,
    length: int | None = None,
    d_model: int = 12,
    num_heads: int = 3,
    theta: float = 50.5,
    max_seq_len: int = 16,
) -> Build:
    """Rows of order one at the given positions; `length` where the positions do not tell it."""
    where = None if positions is None else np.asarray(positions, dtype=np.int64)
    if length is None:
        assert where is not None
        length = where.shape[-1]
    return {
        **without_positions(draw, leading, length, d_model, num_heads),
        "max_seq_len": max_seq_len,
        "theta": theta,
        "token_positions": where,
    }


def at(leading: tuple[int, ...], positions: Any, **sizes: Any) -> Any:
    """A builder of arguments at these positions."""
    return lambda draw: arguments(draw, leading, positions, **sizes)


def pairs_visible(draw: Draw) -> Build:
    """The identity as query and key weight: features are rotated as they stand."""
    made = arguments(draw, (2,), [3, 0, 7, 5], d_model=8, num_heads=1)
    return {**made, "q_proj_weight": np.eye(8), "k_proj_weight": np.eye(8)}


def equal_tokens(draw: Draw) -> Build:
    """Equal tokens at other positions: values are equal too, unless they are rotated."""
    made = arguments(draw, (2,), [1, 4, 5, 11], d_model=8, num_heads=2)
    made["in_features"] = np.repeat(made["in_features"][:, :1], 4, axis=1)
    return made


def drawn_positions(draw: Draw) -> Build:
    """Positions in any order, drawn anew each time."""
    return arguments(draw, (2,), draw.integers(0, 16, 5))


def batch_positions(draw: Draw) -> Build:
    """Each sequence of the batch has positions of its own."""
    return arguments(draw, (2,), draw.integers(0, 16, 2, 5))


def batch_positions_equal_axes(draw: Draw) -> Build:
    """As many sequences as heads and tokens: positions lined up with the heads would fit."""
    return arguments(draw, (3,), draw.integers(0, 16, 3, 3), d_model=12, num_heads=3)


def later_tokens_dominate(draw: Draw) -> Build:
    """Positions fall along the sequence, and every token is larger than the one before."""
    made = arguments(draw, (2,), [13, 9, 8, 4, 1], d_model=8, num_heads=2)
    made["in_features"] *= 2.0 ** np.arange(5)[:, None] / 4
    return made


def zero_token(draw: Draw) -> Build:
    """A token of zeros: all its scores are 0, and none of them is a mask."""
    made = arguments(draw, (2,), [2, 0, 3, 1, 5])
    made["in_features"][:, 2] = 0.0
    return made


def rows_of_all_magnitudes(draw: Draw) -> Build:
    """Tokens from 1e-2 to 60: scores up to several thousand."""
    made = arguments(draw, (2,), [2, 3, 9, 4, 15, 7], d_model=8, num_heads=2)
    made["in_features"] *= np.array([1.0, 60.0, 0.01, 10.0, 1.0, 60.0])[:, None]
    return made
