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
    arithmetic = in_features.arithmetic
    x = in_features if arithmetic.choose(2) else m.upcast(in_features)
    form = arithmetic.choose(3)
    moved = x - m.maximum(x, dim, through=arithmetic.choose(2) == 1)
    if form == 1:
        probabilities = m.exp(x - m.log_sum_exp(x, dim))
    else:
        powers = m.exp2(moved * math.log2(math.e)) if form == 2 else m.exp(moved)
        powers = m.upcast(powers)
        probabilities = powers / m.total(powers, dim)
    return m.cast(probabilities, in_features.format)
