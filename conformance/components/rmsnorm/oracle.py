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
    x = widened_features(in_features)
    normalised = normalised_rows(x, eps)
    if x.arithmetic.choose(2):
        normalised = m.cast(normalised, in_features.format)
    return m.cast(with_gain(normalised, weights), in_features.format)


@piece
def widened_features(in_features: Array) -> Array:
    """The format in which statistics are taken: float32 or better."""
    return m.upcast(in_features)


@piece
def normalised_rows(x: Array, eps: float) -> Array:
    """`x` over its root mean square: divided by it, or multiplied by its reciprocal."""
    root = root_mean_square(x, eps)
    return x * (1.0 / root) if x.arithmetic.choose(2) else x / root


@piece
def root_mean_square(x: Array, eps: float) -> Array:
    """`sqrt(mean(x^2) + eps)`: (..., d) -> (..., 1)."""
    return m.sqrt(mean_square(x) + eps)


@piece
def mean_square(x: Array) -> Array:
    """`mean(x^2)`: (..., d) -> (..., 1)."""
    return m.mean(m.square(x))


@piece
def with_gain(normalised: Array, gain: Array) -> Array:
    """Every feature times its own gain: (..., d) and (d,) -> (..., d)."""
    return normalised * gain
