"""Float64 arrays that know their working format and how to differentiate themselves.

The definitions of all components are written with this class, so that one text serves for the exact
value, for the derivative, and for every perturbed or honestly rounded evaluation (`arithmetic`).
Derivatives are taken in reverse mode: every operation remembers how a change of its result is passed
on to its operands. They share no code with torch and are tested against central differences.

Formats follow type promotion: an operation of a float32 and a bfloat16 array rounds to float32;
`cast` and `upcast` change the format where a definition says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Union

import numpy as np

from conformance.numerics.arithmetic import Arithmetic
from conformance.numerics.dtypes import FLOAT32, FloatArray, Format, wider

Operand = Union["Array", float, int, FloatArray]
Pullback = Callable[["Array"], "Array"]

_ages = itertools.count()


class Array:
    """A value, its format, the arithmetic it is computed in, and how to differentiate it.

    `value` holds float64 numbers (`Any` dtype is allowed so that 50-digit numbers can be put through
    the same definitions when the golden vectors are confirmed).
    """

    __array_priority__ = 100  # NumPy must leave `ndarray * Array` to this class
    __slots__ = ("value", "format", "arithmetic", "needs_gradient", "_parents", "_age")

    def __init__(
        self,
        value: Any,
        fmt: Format,
        arithmetic: Arithmetic,
        parents: Sequence[tuple[Array, Pullback]] = (),
        needs_gradient: bool = False,
    ) -> None:
        self.needs_gradient: bool
        self.value = value if isinstance(value, np.ndarray) else np.asarray(value)
        self.format = fmt
        self.arithmetic = arithmetic
        self._parents = tuple((p, pull) for p, pull in parents if p.needs_gradient)
        self.needs_gradient = needs_gradient or bool(self._parents)
        self._age = next(_ages)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(self.value.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return int(self.value.ndim)

    def __add__(self, other: Operand) -> Array:
        return add(self, other)

    def __sub__(self, other: Operand) -> Array:
        return add(self, negative(self.like(other)))

    def __mul__(self, other: Operand) -> Array:
        return multiply(self, other)

    def __truediv__(self, other: Operand) -> Array:
        return divide(self, other)

    def __radd__(self, other: Operand) -> Array:
        return add(self.like(other), self)

    def __rsub__(self, other: Operand) -> Array:
        return add(self.like(other), negative(self))

    def __rmul__(self, other: Operand) -> Array:
        return multiply(self.like(other), self)

    def __rtruediv__(self, other: Operand) -> Array:
        return divide(self.like(other), self)

    def __neg__(self) -> Array:
        return negative(self)

    def __matmul__(self, other: Array) -> Array:
        return matmul(self, other)

    def __getitem__(self, index: Any) -> Array:
        return take(self, index)

    def like(self, other: Operand) -> Array:
        """`other` as an array of this arithmetic; bare numbers take this array's format."""
        if isinstance(other, Array):
            return other
        return Array(_plain(other, self.value), self.format, self.arithmetic)


def _plain(value: Any, like: Any) -> Any:
    """A constant as an array of the same kind of numbers as `like`."""
    array = np.asarray(value)
    if array.dtype == like.dtype:
        return array
    return _multiprecision(array) if like.dtype == object else array.astype(like.dtype)


def _multiprecision(array: Any) -> Any:
    """Plain numbers as mpmath's, so that quotients of constants keep all digits too."""
    import mpmath

    return np.asarray(np.frompyfunc(mpmath.mpf, 1, 1)(array.astype(object)), dtype=object)


def constant(value: Any, like: Array, fmt: Format | None = None) -> Array:
    """A constant (positions, frequencies) in format `fmt`, with the arithmetic of `like`."""
    return Array(_plain(value, like.value), fmt or like.format, like.arithmetic)


def fresh(value: Any, fmt: Format, arithmetic: Arithmetic) -> Array:
    """A constant where no array is at hand, as in a definition that takes integers only."""
    return Array(_plain(value, np.empty(0, dtype=arithmetic.numbers)), fmt, arithmetic)


def _new(value: Any, parents: Sequence[tuple[Array, Pullback]], fmt: Format, rounded: bool) -> Array:
    arithmetic = parents[0][0].arithmetic
    if rounded and not arithmetic.exact:
        value = arithmetic.round(value, fmt)
    return Array(value, fmt, arithmetic, parents)


def _unbroadcast(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum a gradient over the axes along which the operand was broadcast."""
    while gradient.ndim > len(shape):
        gradient = reshape(total(gradient, axis=0), gradient.shape[1:])
    for axis, length in enumerate(shape):
        if length == 1 and gradient.shape[axis] != 1:
            gradient = total(gradient, axis=axis)
    return gradient


# ---------------------------------------------------------------- elementary operations


def add(left: Array, right: Operand) -> Array:
    """`left + right`, broadcast."""
    other = left.like(right)
    return _new(
        left.value + other.value,
        [
            (left, lambda g: _unbroadcast(g, left.shape)),
            (other, lambda g: _unbroadcast(g, other.shape)),
        ],
        wider(left.format, other.format),
        rounded=True,
    )


def negative(x: Array) -> Array:
    """`-x`, exact in every format."""
    return _new(-x.value, [(x, negative)], x.format, rounded=False)


def multiply(left: Array, right: Operand) -> Array:
    """`left * right`, broadcast."""
    other = left.like(right)
    return _new(
        left.value * other.value,
        [
            (left, lambda g: _unbroadcast(g * _detach(other), left.shape)),
            (other, lambda g: _unbroadcast(g * _detach(left), other.shape)),
        ],
        wider(left.format, other.format),
        rounded=True,
    )


def divide(left: Array, right: Operand) -> Array:
    """`left / right`, broadcast."""
    other = left.like(right)
    result = _new(
        left.value / other.value,
        [
            (left, lambda g: _unbroadcast(g / _detach(other), left.shape)),
            (other, lambda g: _unbroadcast(-(g * _detach(result)) / _detach(other), other.shape)),
        ],
        wider(left.format, other.format),
        rounded=True,
    )
    return result


def _detach(x: Array) -> Array:
    return Array(x.value, x.format, x.arithmetic)


def detach(x: Array) -> Array:
    """The same value, not differentiated through."""
    return _detach(x)


def _unary(x: Array, function: Any, slope: Callable[[Array, Array], Array]) -> Array:
    """Apply a function elementwise; `slope(x, y)` is its derivative, times the cotangent."""
    with np.errstate(over="ignore", under="ignore"):
        value = _apply(function, x.value)
    result = _new(
        value, [(x, lambda g: g * slope(_detach(x), _detach(result)))], x.format, rounded=True
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
    result = _new(
        value,
        [(x, lambda g: g * (_detach(result) * constant(_ln2(x.value), x)))],
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
    result = _new(
        value,
        [(x, lambda g: g * (_detach(result) * constant(slope, x)))],
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
    result = _new(
        value,
        [(x, lambda g: g * (_detach(result) * (1.0 - _detach(result))))],
        x.format,
        rounded=True,
    )
    return result


def square(x: Array) -> Array:
    """`x * x`."""
    return multiply(x, x)


# ---------------------------------------------------------------- sums and products


def total(x: Array, axis: int = -1) -> Array:
    """Sum along one axis, kept with length 1."""
    value = x.value.sum(axis=axis, keepdims=True) if x.arithmetic.exact else (
        x.arithmetic.sum(x.value, axis, x.format)
    )
    return Array(value, x.format, x.arithmetic, [(x, lambda g: broadcast_to(g, x.shape))])


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
    still = _detach(x)
    largest = maximum(still, axis)
    logarithm = log(total(upcast(exp(still - largest)), axis))
    rounded = cast(upcast(largest) + logarithm, x.format)
    result = Array(
        rounded.value, x.format, x.arithmetic, [(x, lambda g: g * exp(still - _detach(result)))]
    )
    return result


def matmul(left: Array, right: Array) -> Array:
    """Matrix product over the last two axes, the leading axes broadcast."""
    fmt = wider(left.format, right.format)
    value = left.arithmetic.matmul(left.value, right.value, fmt)

    def to_left(g: Array) -> Array:
        return _unbroadcast(matmul(g, swap(_detach(right))), left.shape)

    def to_right(g: Array) -> Array:
        if right.ndim == 2 and left.ndim > 2:  # one long sum over all rows, as kernels do it
            rows = reshape(_detach(left), (-1, left.shape[-1]))
            return matmul(swap(rows), reshape(g, (-1, g.shape[-1])))
        return _unbroadcast(matmul(swap(_detach(left)), g), right.shape)

    return Array(value, fmt, left.arithmetic, [(left, to_left), (right, to_right)])


# ---------------------------------------------------------------- moving numbers about


def reshape(x: Array, shape: tuple[int, ...]) -> Array:
    """The same numbers in other axes."""
    return _new(
        x.value.reshape(shape), [(x, lambda g: reshape(g, x.shape))], x.format, rounded=False
    )


def swap(x: Array, first: int = -2, second: int = -1) -> Array:
    """Exchange two axes; the last two unless told otherwise."""
    return _new(
        np.swapaxes(x.value, first, second),
        [(x, lambda g: swap(g, first, second))],
        x.format,
        rounded=False,
    )


def broadcast_to(x: Array, shape: tuple[int, ...]) -> Array:
    """Repeat along axes of length 1."""
    return _new(
        np.broadcast_to(x.value, shape),
        [(x, lambda g: _unbroadcast(g, x.shape))],
        x.format,
        rounded=False,
    )


def take(x: Array, index: Any) -> Array:
    """`x[index]`: slices, and rows by an integer array (embedding lookup)."""

    def back(g: Array) -> Array:
        value = np.zeros(x.shape, dtype=x.value.dtype)
        np.add.at(value, index, g.value)
        return _rounded_scatter(value, g, index, x)

    return _new(x.value[index], [(x, back)], x.format, rounded=False)


def _rounded_scatter(value: Any, g: Array, index: Any, x: Array) -> Array:
    """Gradient of `take`; entries that were taken several times are sums, hence rounded."""
    result = Array(value, x.format, x.arithmetic)
    repeated = isinstance(index, np.ndarray) and index.size > np.unique(index).size
    if not repeated or x.arithmetic.exact:
        return result
    ones = np.zeros(x.shape[0])
    np.add.at(ones, index, 1.0)
    for _ in range(int(np.ceil(np.sqrt(ones.max())))):
        result = Array(x.arithmetic.round(result.value, x.format), x.format, x.arithmetic)
    return result


def stack(arrays: Sequence[Array], axis: int = -1) -> Array:
    """Join along a new axis."""

    def part(number: int) -> Pullback:
        return lambda g: Array(np.take(g.value, number, axis=axis), g.format, g.arithmetic)

    return _new(
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
            return _unbroadcast(kept, operand.shape)

        return back

    return _new(
        np.broadcast_to(np.where(condition, x.value, otherwise.value), shape),
        [(x, chosen(condition, x)), (otherwise, chosen(~condition, otherwise))],
        x.format,
        rounded=False,
    )


# ---------------------------------------------------------------- formats


def cast(x: Array, fmt: Format) -> Array:
    """Round to another format; the gradient is rounded back to the format of `x`."""
    if fmt is x.format:
        return x
    narrower = fmt.unit > x.format.unit
    return _new(x.value, [(x, lambda g: cast(g, x.format))], fmt, rounded=narrower)


def upcast(x: Array) -> Array:
    """At least float32: 16-bit formats become float32, the wider ones stay."""
    return cast(x, FLOAT32) if x.format.is_half else x


# ---------------------------------------------------------------- derivative


def gradients(output: Array, cotangent: FloatArray, wrt: Sequence[Array]) -> list[Any]:
    """Derivative of `sum(output * cotangent)` with respect to each array of `wrt`.

    Returns one array of numbers per entry, in its shape; zeros where the output does not depend
    on it.
    """
    seed = Array(_plain(cotangent, output.value), output.format, output.arithmetic)
    pending: dict[int, tuple[Array, Array]] = {id(output): (output, seed)}
    found: dict[int, Any] = {}
    wanted = {id(w) for w in wrt}
    while pending:
        key = max(pending, key=lambda k: pending[k][0]._age)
        node, gradient = pending.pop(key)
        if key in wanted:
            found[key] = gradient.value
        for parent, pull in node._parents:
            passed = pull(gradient)
            known = pending.get(id(parent))
            pending[id(parent)] = (parent, passed if known is None else known[1] + passed)
    return [found.get(id(w), np.zeros(w.shape)) for w in wrt]
