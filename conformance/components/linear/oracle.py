"""The linear map, exactly as defined."""

from __future__ import annotations

from conformance.definitions import piece
from conformance.numerics import array as m
from conformance.numerics.array import Array


@piece
def linear(*, d_in: int, d_out: int, weights: Array, in_features: Array) -> Array:
    """`x W^T` for row vectors, without a bias.

    `in_features` (..., d_in), `weights` (d_out, d_in); the result is (..., d_out). Course 3.3.1,
    eq. 1-3.
    """
    if in_features.ndim == 1:  # a bare vector: a matrix of one row
        return m.reshape(m.reshape(in_features, (1, d_in)) @ linear_matrix(weights), (d_out,))
    return in_features @ linear_matrix(weights)


@piece
def linear_matrix(weights: Array) -> Array:
    """What rows of features are multiplied by: (d_out, d_in) -> (d_in, d_out)."""
    return m.swap(weights)
