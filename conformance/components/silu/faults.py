"""What people write instead of SiLU."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from conformance.components.silu.oracle import logistic, silu
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.numerics.dtypes import FLOAT32
from conformance.numerics.tape import node

MISTAKES = Mistakes("silu")
fault = MISTAKES.fault


def of(function: Callable[[Array], Array]) -> Callable[..., Array]:
    """`function(input)` with the keyword of the component."""
    return lambda *, in_features: function(in_features)


def right(x: Array) -> Array:
    """SiLU itself."""
    return silu(in_features=x)


def magnitude(x: Array) -> Array:
    """`|x|`."""
    return m.where(x.value < 0, -x, x)


def relu(x: Array) -> Array:
    """`x` where it is positive, 0 elsewhere."""
    return m.where(x.value > 0, x, 0.0)


def clamped(x: Array, low: float, high: float) -> Array:
    """`x` with everything below `low` and above `high` set to the bound."""
    return m.where(x.value < low, x.like(low), m.where(x.value > high, x.like(high), x))


def row_softmax(x: Array) -> Array:
    """Softmax over the last axis; a single number is a row of its own."""
    if not x.ndim:
        return x.like(1.0)
    weights = m.exp(x - m.maximum(x))
    return weights / m.total(weights)


def overflowing(x: Array) -> Array:
    """`x`, infinite beyond the largest number of its format, as is then the slope behind it."""
    factor = np.where(np.abs(x.value) > x.format.largest, np.inf, 1.0)
    return node(x.value * factor, [(x, lambda g: g * factor)], x.format, rounded=False)


def growth(x: Array) -> Array:
    """`e^x`, with overflow."""
    return overflowing(m.exp(x))


def one_over(x: Array) -> Array:
    """The logistic function as `1 / (1 + e^-x)`: the exponential overflows far below zero."""
    return 1.0 / (1.0 + growth(-x))


def erf(x: Array) -> Array:
    """The error function."""
    slope = m.exp(-m.square(m.detach(x))) * (2.0 / math.sqrt(math.pi))
    value = np.vectorize(math.erf, otypes=[float])(x.value)
    return node(value, [(x, lambda g: g * slope)], x.format, rounded=True)


def cumulative_normal(x: Array) -> Array:
    """How much of the normal distribution lies below `x`, as libraries write it.

    Far below zero it is a difference of nearly equal numbers, which its tolerance must know.
    """
    return 0.5 * (1.0 + erf(x / math.sqrt(2.0)))


def softplus(x: Array) -> Array:
    """`log(1 + e^x)`, without overflow and without losing small results."""
    small = m.exp(-magnitude(x))
    return m.where(x.value < -18.0, m.exp(-relu(-x)), relu(x) + m.log(1.0 + small))


fault("silu-sigmoid-only")(of(logistic))
fault("silu-gelu")(of(lambda x: x * cumulative_normal(x)))
fault("silu-gelu-by-sigmoid")(of(lambda x: x * logistic(1.702 * x)))
fault("silu-hardswish")(of(lambda x: x * clamped(x + 3.0, 0.0, 6.0) / 6.0))
fault("silu-mish")(of(lambda x: x * m.tanh(softplus(x))))
fault("silu-relu")(of(relu))
fault("silu-tanh-gate")(of(lambda x: x * m.tanh(x)))
fault("silu-softsign-gate")(of(lambda x: x * (0.5 + 0.5 * x / (1.0 + magnitude(x)))))
fault("silu-softmax-gate")(of(lambda x: x * row_softmax(x)))
fault("silu-mirrored-gate")(of(lambda x: x * logistic(-x)))
fault("silu-sign-lost-in-exponent")(of(lambda x: x / (1.0 + m.exp(-magnitude(x)))))

fault("silu-zero-for-negatives")(of(lambda x: m.where(x.value < 0, x.like(0.0), right(x))))
fault("silu-identity-above-six")(of(lambda x: m.where(x.value > 6.0, x, right(x))))
fault("silu-clamped-argument")(of(lambda x: x * logistic(clamped(x, -10.0, 10.0))))
fault("silu-clamped-output")(of(lambda x: clamped(right(x), -math.inf, 20.0)))

fault("silu-overflow-for-positives")(of(lambda x: overflowing(x * growth(x)) / (1.0 + growth(x))))
fault("silu-gradient-nan-for-large-negatives")(of(lambda x: x / (1.0 + growth(-x))))


@fault("silu-gradient-nan-through-where")
@of
def gradient_nan_through_where(x: Array) -> Array:
    positive = x / (1.0 + growth(-x))
    negative = overflowing(x * growth(x)) / (1.0 + growth(x))
    return m.where(x.value >= 0, positive, negative)


@fault("silu-beta-from-input")
@of
def beta_from_input(x: Array) -> Array:
    beta = m.mean(magnitude(x)) if x.ndim else magnitude(x)
    return x * logistic(x * beta)


@fault("silu-backward-misses-product-rule")
@of
def gate_detached(x: Array) -> Array:
    return x * m.detach(logistic(x))


fault("silu-backward-only-gate")(of(lambda x: m.detach(x) * logistic(x)))
fault("silu-no-grad")(of(lambda x: m.detach(right(x))))


@fault("silu-float64-through-float32")
@of
def float64_through_float32(x: Array) -> Array:
    return m.rounded(right(m.rounded(x, FLOAT32)), FLOAT32)


@fault("silu-drops-size-one-axes")
@of
def drops_size_one_axes(x: Array) -> Array:
    return m.reshape(right(x), tuple(length for length in x.shape if length != 1))


fault("silu-element-loop-over-rows")(of(refusing(right, lambda x: not x.ndim or not len(x.value))))
