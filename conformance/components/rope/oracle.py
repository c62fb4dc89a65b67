"""Rotary position embedding, exactly as defined."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.definitions import piece
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.numerics.dtypes import FLOAT32, wider


@piece
def rope(
    *, d_k: int, theta: float, max_seq_len: int, in_query_or_key: Array, token_positions: Any
) -> Array:
    """The features (2i, 2i+1) of each row, turned by `position * theta^(-2i/d_k)` radians.

    `in_query_or_key` (..., seq, d_k); `token_positions` integers (seq,), or any shape that
    broadcasts against (..., seq), each below `max_seq_len`, which changes nothing else. Su et al.
    2021, eq. 14-16 and section 3.4.2.

    Angles, cosines and sines are formed in float32 at least. Whether 16-bit rows are multiplied by
    them in float32, or in their own format by rounded cosines and sines, is open.
    """
    x = in_query_or_key
    rows = row_positions(token_positions, x.shape[:-1], max_seq_len)
    positions = m.constant(rows, x, wider(x.format, FLOAT32))
    cosine, sine = cosine_and_sine(position_angles(positions, d_k, theta))
    if x.format.is_half and x.arithmetic.choose(2):
        cosine, sine = m.cast(cosine, x.format), m.cast(sine, x.format)
    turned = turned_pairs(*feature_pairs(x), cosine, sine)
    return m.cast(joined_pairs(*turned), x.format)


@piece
def row_positions(token_positions: Any, shape: tuple[int, ...], max_seq_len: int) -> Any:
    """The position of each row: integers that broadcast against `shape`, that of the rows."""
    return np.asarray(token_positions)


@piece
def position_angles(positions: Array, width: int, base: float) -> Array:
    """Radians by which each pair of features is turned: (...) -> (..., width/2)."""
    rows = m.reshape(positions, (*positions.shape, 1))
    return rows * inverse_frequencies(positions, width, base)


@piece
def inverse_frequencies(like: Array, width: int, base: float) -> Array:
    """`base^(-2i/width)` for i below width/2, in the three ways in which it is commonly written."""
    exponents = pair_exponents(like, width)
    form = like.arithmetic.choose(3)
    if form == 0:
        return m.power(base, -exponents)
    if form == 1:
        return 1.0 / m.power(base, exponents)
    return m.exp(-exponents * m.log(m.constant(base, like)))


@piece
def pair_exponents(like: Array, width: int) -> Array:
    """`2i/width` for i below width/2."""
    return m.constant(np.arange(0, width, 2), like) / width


@piece
def cosine_and_sine(angles: Array) -> tuple[Array, Array]:
    """Both coordinates of the point at each angle of the unit circle."""
    return m.cos(angles), m.sin(angles)


@piece
def feature_pairs(x: Array) -> tuple[Array, Array]:
    """First and second features of all pairs: (..., 2n) -> (..., n) twice."""
    return x[..., 0::2], x[..., 1::2]


@piece
def turned_pairs(first: Array, second: Array, cosine: Array, sine: Array) -> tuple[Array, Array]:
    """Each pair, turned in its plane: (..., n) twice."""
    return first * cosine - second * sine, first * sine + second * cosine


@piece
def joined_pairs(first: Array, second: Array) -> Array:
    """Pairs as neighbouring features: (..., n) twice -> (..., 2n)."""
    return m.reshape(m.stack((first, second)), (*first.shape[:-1], 2 * first.shape[-1]))
