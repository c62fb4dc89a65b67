"""The functions that definitions are written with, on the arrays of `tape`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from conformance.numerics.dtypes import FLOAT32, Format, round_to
from conformance.numerics.tape import (
    Array,
    Operand,
    Pullback,
    add,
    broadcast_to,
    cast,
    constant,
    detach,
    divide,
    fresh,
    gradients,
    matmul,
    multiply,
    negative,
    node,
    reshape,
    swap,
    take,
    total,
    unbroadcast,
)

__all__ = [
    "Array",
    "Operand",
    "add",
    "broadcast_to",
    "cast",
    "constant",
    "cos",
    "detach",
    "divide",
    "exp",
    "exp2",
    "fresh",
    "gradients",
    "log",
    "log_sum_exp",
    "logistic",
    "matmul",
    "maximum",
    "mean",
    "multiply",
    "negative",
    "power",
    "reshape",
    "rounded",
    "sin",
    "sqrt",
    "square",
    "stack",
    "swap",
    "take",
    "tanh",
    "total",
    "upcast",
    "where",
]


def _unary(x: Array, function: Any, slope: Callable[[Array, Array], Array]) -> Array:
    """Apply a function elementwise; `slope(x, y)` is its derivative, times the cotangent."""
    with np.errstate(over="ignore", under="ignore"):
        value = _apply(function, x.value)
    result = node(
        value, [(x, lambda g: g * slope(detach(x), detach(result)))], x.format, rounded=True
    )
    return result


def _apply(function: Any, value: Any) -> Any:
    """A NumPy function, or its mpmath namesake where the numbers are mpmath's."""
    if value.dtype != object:
        return function(value)
    import mpmath

    elementwise = np.frompyfunc(getattr(mpmath, function.__name__), 1, 1)
    return np.asarray(elementwise(value), dtype=object)


def exp(x: Array) -> Array:
    """`e^x`."""
    return _unary(x, np.exp, lambda _, y: y)


def exp2(x: Array) -> Array:
    """`2^x`, as `e^(x ln 2)` with one rounding."""
    with np.errstate(over="ignore", under="ignore"):
        value = _apply(np.exp, x.value * _ln2(x.value))
    result = node(
        value,
        [(x, lambda g: g * (detach(result) * constant(_ln2(x.value), x)))],
        x.format,
        rounded=True,
    )
    return result


def _ln2(like: Any) -> Any:
    if like.dtype != object:
        return np.log(2.0)
    import mpmath

    return mpmath.log(2)


def power(base: float, x: Array) -> Array:
    """`base^x` for a positive number, with one rounding."""
    number = constant(base, x).value
    with np.errstate(over="ignore", under="ignore"):
        value = number**x.value
    slope = _apply(np.log, number)
    result = node(
        value,
        [(x, lambda g: g * (detach(result) * constant(slope, x)))],
        x.format,
        rounded=True,
    )
    return result


def log(x: Array) -> Array:
    """Natural logarithm."""
    return _unary(x, np.log, lambda v, _: 1.0 / v)


def sqrt(x: Array) -> Array:
    """Square root."""
    return _unary(x, np.sqrt, lambda _, y: 0.5 / y)


def sin(x: Array) -> Array:
    """Sine of radians."""
    return _unary(x, np.sin, lambda v, _: cos(v))


def cos(x: Array) -> Array:
    """Cosine of radians."""
    return _unary(x, np.cos, lambda v, _: -sin(v))


def tanh(x: Array) -> Array:
    """Hyperbolic tangent."""
    return _unary(x, np.tanh, lambda _, y: 1.0 - y * y)


def logistic(x: Array) -> Array:
    """`1 / (1 + e^-x)` with one rounding.

    Differentiated as kernels do it, by `y (1 - y)`, which cancels where y is near 1.
    """
    with np.errstate(under="ignore"):
        e = _apply(np.exp, -np.abs(x.value))
        value = np.where(x.value < 0, e / (1 + e), 1 / (1 + e))
    result = node(
        value,
        [(x, lambda g: g * (detach(result) * (1.0 - detach(result))))],
        x.format,
        rounded=True,
    )
    return result


def square(x: Array) -> Array:
    """`x * x`."""
    return multiply(x, x)


def mean(x: Array, axis: int = -1) -> Array:
    """Mean along one axis, kept with length 1."""
    return total(x, axis) / float(x.shape[axis])


def maximum(x: Array, axis: int = -1, through: bool = False) -> Array:
    """Largest entry along one axis, kept with length 1.

    Differentiated only with `through`: the derivative goes to the first of the largest entries.
    """
    value = x.value.max(axis=axis, keepdims=True)
    if not through:
        return Array(value, x.format, x.arithmetic)

    def back(g: Array) -> Array:
        moved = np.zeros(x.shape, dtype=x.value.dtype)
        place = np.expand_dims(x.value.argmax(axis=axis), axis)
        np.put_along_axis(moved, place, g.value, axis=axis)
        return Array(moved, g.format, g.arithmetic)

    return Array(value, x.format, x.arithmetic, [(x, back)])


def log_sum_exp(x: Array, axis: int = -1) -> Array:
    """`log(sum(exp(x)))` along one axis, kept with length 1.

    Differentiated as kernels do it, by the weights `exp(x - result)`: they add up to 1 only as
    well as the result is rounded, which shows where |x| is large.
    """
    still = detach(x)
    largest = maximum(still, axis)
    logarithm = log(total(upcast(exp(still - largest)), axis))
    rounded = cast(upcast(largest) + logarithm, x.format)
    result = Array(
        rounded.value, x.format, x.arithmetic, [(x, lambda g: g * exp(still - detach(result)))]
    )
    return result


def stack(arrays: Sequence[Array], axis: int = -1) -> Array:
    """Join along a new axis."""

    def part(number: int) -> Pullback:
        return lambda g: Array(np.take(g.value, number, axis=axis), g.format, g.arithmetic)

    return node(
        np.stack([a.value for a in arrays], axis=axis),
        [(a, part(i)) for i, a in enumerate(arrays)],
        arrays[0].format,
        rounded=False,
    )


def where(condition: np.ndarray, x: Array, other: Operand) -> Array:
    """`x` where the condition holds, `other` elsewhere; only chosen entries get a gradient."""
    otherwise = x.like(other)
    shape = np.broadcast_shapes(condition.shape, x.shape, otherwise.shape)

    def chosen(keep: np.ndarray, operand: Array) -> Pullback:
        def back(g: Array) -> Array:
            zero = np.zeros((), dtype=g.value.dtype)
            kept = Array(np.where(keep, g.value, zero), g.format, g.arithmetic)
            return unbroadcast(kept, operand.shape)

        return back

    return node(
        np.broadcast_to(np.where(condition, x.value, otherwise.value), shape),
        [(x, chosen(condition, x)), (otherwise, chosen(~condition, otherwise))],
        x.format,
        rounded=False,
    )


def upcast(x: Array) -> Array:
    """At least float32: 16-bit formats become float32, the wider ones stay."""
    return cast(x, FLOAT32) if x.format.is_half else x


def rounded(x: Array, fmt: Format) -> Array:
    """`x` rounded to `fmt` whatever the arithmetic, as by a mistaken conversion there and back."""
    return node(round_to(x.value, fmt), [(x, lambda g: g)], x.format, rounded=False)
