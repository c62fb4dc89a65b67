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

    gate, output, value = swiglu_weights(w1_weight, w2_weight, w3_weight)
    hidden = swiglu_product(swiglu_gate(in_features, gate), swiglu_value(in_features, value))
    return swiglu_output(hidden, output)


@piece
def swiglu_weights(w1: Array, w2: Array, w3: Array) -> tuple[Array, Array, Array]:
    """The weights of the gate, of the output and of the value."""
    return w1, w2, w3


@piece
def swiglu_gate(x: Array, weight: Array) -> Array:
    """What each hidden feature is multiplied by."""
    return silu(in_features=projected(x, weight))


@piece
def swiglu_value(x: Array, weight: Array) -> Array:
    """What the gate is applied to."""
    return projected(x, weight)


@piece
def swiglu_product(gate: Array, value: Array) -> Array:
    """The hidden features."""
    return gate * value


@piece
def swiglu_output(hidden: Array, weight: Array) -> Array:
    """The hidden features, mapped back to the width of the input."""
    return projected(hidden, weight)


def projected(x: Array, weight: Array) -> Array:
    """`x W^T`, the sizes taken from the weight."""
    d_out, d_in = weight.shape
    return linear(d_in=d_in, d_out=d_out, weights=weight, in_features=x)
