"""SiLU and the logistic function, exactly as defined."""

from __future__ import annotations

import numpy as np

from conformance.definitions import piece
from conformance.numerics import array as m
from conformance.numerics.arithmetic import Perturbed
from conformance.numerics.array import Array


@piece
def silu(*, in_features: Array) -> Array:
    """`x * sigmoid(x)` of every entry, in one of the usual ways to write it (see `logistic`).

    Hendrycks and Gimpel 2016; Elfwing et al. 2017.
    """
    x = in_features
    return x * _logistic(x, x.arithmetic.choose(4))


@piece
def logistic(x: Array) -> Array:
    """`1 / (1 + e^-x)` of every entry.

    The usual ways to write it differ in how they round, the derivative included: by exponentials,
    as 1 less the value at -x, with a library's function, by the hyperbolic tangent. The second and
    the last are off by a roundoff of 1 where the result is near 0, which is honest. They take
    every other turn, so that no entry gets a narrow tolerance by luck.
    """
    return _logistic(x, x.arithmetic.choose(4))


def _logistic(x: Array, form: int) -> Array:
    if form == 2:
        return m.logistic(x)
    if form == 0:
        return _stable_logistic(x)
    by_difference = 1.0 - m.logistic(-x) if form == 1 else 0.5 * (1.0 + m.tanh(0.5 * x))
    if isinstance(x.arithmetic, Perturbed):
        return m.where(_rounds_to_one(x), _stable_logistic(x), by_difference)
    return by_difference


def _rounds_to_one(x: Array) -> np.ndarray:
    """Where 1 / (1 + e^-|x|) is rounded to 1: then 1 less it is exactly 0, and not a roundoff.

    A random perturbation of that 1 would excuse any error of a roundoff times x.
    """
    return np.asarray(np.abs(x.value) > -np.log(x.format.unit / 2))


def _stable_logistic(x: Array) -> Array:
    """The exponent is never positive, so nothing overflows, in the value or in the derivative."""
    below = x.value < 0
    e = m.exp(m.where(below, x, -x))
    return m.where(below, e, 1.0) / (1.0 + e)
