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

    gate, value = glu_weights(w1_weight, w2_weight)
    return glu_product(glu_gate(in_features, gate), glu_value(in_features, value))


@piece
def glu_weights(w1: Array, w2: Array) -> tuple[Array, Array]:
    """The weights of the gate and of the value."""
    return w1, w2


@piece
def glu_gate(x: Array, weight: Array) -> Array:
    """How much of each hidden feature passes, between 0 and 1."""
    return logistic(projected(x, weight))


@piece
def glu_value(x: Array, weight: Array) -> Array:
    """What the gate lets through."""
    return projected(x, weight)


@piece
def glu_product(gate: Array, value: Array) -> Array:
    """Gate and value together, feature by feature."""
    return gate * value


def projected(x: Array, weight: Array) -> Array:
    """`x W^T`, the sizes taken from the weight."""
    d_out, d_in = weight.shape
    return linear(d_in=d_in, d_out=d_out, weights=weight, in_features=x)
