"""The SwiGLU feed-forward network, exactly as defined."""

from __future__ import annotations

from conformance.components.linear.oracle import linear
from conformance.components.silu.oracle import silu
from conformance.definitions import piece
from conformance.numerics.array import Array


@piece
def swiglu(
    *,
    d_model: int,
    d_ff: int,
    w1_weight: Array,
    w2_weight: Array,
    w3_weight: Array,
    in_features: Array,
) -> Array:
    """`W2 (SiLU(W1 x) * W3 x)`.

    `in_features` (..., d_model), W1 and W3 (d_ff, d_model), W2 (d_model, d_ff); the result is
    (..., d_model). Shazeer 2020, eq. 6; course 3.5.2, eq. 7.
    """

    def project(weight: Array) -> Array:
        return linear(d_in=d_model, d_out=d_ff, weights=weight, in_features=in_features)

    hidden = silu(in_features=project(w1_weight)) * project(w3_weight)
    return linear(d_in=d_ff, d_out=d_model, weights=w2_weight, in_features=hidden)
