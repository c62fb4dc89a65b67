"""Root mean square normalisation, exactly as defined."""

from __future__ import annotations

from conformance.definitions import piece
from conformance.numerics import array as m
from conformance.numerics.array import Array


@piece
def rmsnorm(*, d_model: int, eps: float, weights: Array, in_features: Array) -> Array:
    """`x / sqrt(mean(x^2) + eps) * g` along the last axis.

    `in_features` (..., d_model), `weights` (d_model,). Statistics are taken in float32 or better;
    the result has the dtype of `in_features`, whether it is cast before or after the gain is open.
    Zhang and Sennrich 2019, eq. 4; eps as in Touvron et al. 2023.
    """
    x = m.upcast(in_features)
    mean_square = m.mean(m.square(x))
    if x.arithmetic.choose(2):
        normalised = x * (1.0 / m.sqrt(mean_square + eps))
    else:
        normalised = x / m.sqrt(mean_square + eps)
    if x.arithmetic.choose(2):
        normalised = m.cast(normalised, in_features.format)
    return m.cast(normalised * weights, in_features.format)
