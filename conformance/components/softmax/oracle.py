"""Softmax along one axis, exactly as defined."""

from __future__ import annotations

import math

from conformance.definitions import piece
from conformance.numerics import array as m
from conformance.numerics.array import Array


@piece
def softmax(*, in_features: Array, dim: int) -> Array:
    """`exp(x_i) / sum_j exp(x_j)` along axis `dim`, for every slice by itself.

    The largest entry is subtracted first, so that nothing overflows; an entry of minus infinity
    gets probability 0. Open are: subtracting the logarithm of the sum instead of dividing by the
    sum, powers of two, whether the shift takes part in the derivative (it cancels), and whether
    16-bit input is widened first (sums always are). Course 3.5.4, eq. 10.
    """
    return m.cast(exponential_shares(widened_scores(in_features), dim), in_features.format)


@piece
def widened_scores(in_features: Array) -> Array:
    """The format in which exponentials are taken: as given, or float32 at least."""
    return in_features if in_features.arithmetic.choose(2) else m.upcast(in_features)


@piece
def exponential_shares(x: Array, dim: int) -> Array:
    """The share of every entry's exponential in the sum along axis `dim`."""
    arithmetic = x.arithmetic
    form = arithmetic.choose(3)
    moved = x - m.maximum(x, dim, through=arithmetic.choose(2) == 1)
    if form == 1:
        return m.exp(x - m.log_sum_exp(x, dim))
    powers = m.exp2(moved * math.log2(math.e)) if form == 2 else m.exp(moved)
    powers = m.upcast(powers)
    return powers / m.total(powers, dim)
