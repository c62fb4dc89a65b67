"""SiLU and the logistic function, exactly as defined."""

from __future__ import annotations

import math

from conformance.numerics import array as m
from conformance.numerics.array import Array


def silu(*, in_features: Array) -> Array:
    """`x * sigmoid(x)` of every entry.

    The usual ways to write it differ in how they round, the derivative included: with a logistic
    function of one's own or of a library, as `x / (1 + e^-x)`, and by the hyperbolic tangent,
    where the error is relative to x and not to the result. Hendrycks and Gimpel 2016; Elfwing et
    al. 2017.
    """
    x = in_features
    form = x.arithmetic.choose(4)
    if form == 1:
        return x / _one_plus_exp_of_minus(x)
    if form == 2:
        return 0.5 * x * (1.0 + m.tanh(0.5 * x))
    return x * (m.logistic(x) if form == 3 else _stable_logistic(x))


def logistic(x: Array) -> Array:
    """`1 / (1 + e^-x)` of every entry, in the same four ways."""
    form = x.arithmetic.choose(4)
    if form == 1:
        return 1.0 / _one_plus_exp_of_minus(x)
    if form == 2:
        return 0.5 * (1.0 + m.tanh(0.5 * x))
    return m.logistic(x) if form == 3 else _stable_logistic(x)


def _stable_logistic(x: Array) -> Array:
    """The exponent is never positive, so nothing overflows, in the value or in the derivative."""
    below = x.value < 0
    e = m.exp(m.where(below, x, -x))
    return m.where(below, e, 1.0) / (1.0 + e)


def _one_plus_exp_of_minus(x: Array) -> Array:
    """`1 + e^-x`, as far as the format reaches; beyond, its reciprocal is 0 to every digit."""
    limit = math.log(x.format.largest) - 1.0
    return 1.0 + m.exp(-m.where(x.value > -limit, x, -limit))
