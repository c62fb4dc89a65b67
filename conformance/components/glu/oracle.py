"""The gated linear unit, exactly as defined."""

from __future__ import annotations

from conformance.components.linear.oracle import linear
from conformance.components.silu.oracle import logistic
from conformance.definitions import piece
from conformance.numerics.array import Array


@piece
def glu(
    *, d_model: int, d_ff: int, w1_weight: Array, w2_weight: Array, in_features: Array
) -> Array:
    """`sigmoid(x W1^T) * (x W2^T)`.

    `in_features` (..., d_model), both weights (d_ff, d_model); the result is (..., d_ff). Dauphin
    et al. 2017, eq. 1; course 3.5.2, eq. 6.
    """

    def project(weight: Array) -> Array:
        return linear(d_in=d_model, d_out=d_ff, weights=weight, in_features=in_features)

    return logistic(project(w1_weight)) * project(w2_weight)
