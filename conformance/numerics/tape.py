"""Float64 arrays that know their working format and how to differentiate themselves.

The definitions of all components are written with this class, so that one text serves for the
exact value, for the derivative, and for every perturbed or honestly rounded evaluation
(`arithmetic`). Derivatives are taken in reverse mode: every operation remembers how a change of its
result is passed on to its operands. They share no code with torch and are tested against central
differences.

Formats follow type promotion: an operation of a float32 and a bfloat16 array rounds to float32;
`cast` and `upcast` change the format where a definition says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Union

import numpy as np

from conformance.numerics.arithmetic import Arithmetic
from conformance.numerics.dtypes import FloatArray, Format, wider

Operand = Union["Array", float, int, FloatArray]
Pullback = Callable[["Array"], "Array"]
_ages = itertools.count()


class Array:
    """A value, its format, the arithmetic it is computed in, and how to differentiate it.

    `value` holds float64 numbers (`Any` dtype is allowed so that 50-digit numbers can be put
    through the same definitions when the golden vectors are confirmed).
    """

    __array_priority__ = 100  # NumPy must leave `ndarray * Array` to this class
    __slots__ = ("_age", "_parents", "arithmetic", "format", "needs_gradient", "value")

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
        return Array(plain(other, self.value), self.format, self.arithmetic)


def plain(value: Any, like: Any) -> Any:
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
    return Array(plain(value, like.value), fmt or like.format, like.arithmetic)


def fresh(value: Any, fmt: Format, arithmetic: Arithmetic) -> Array:
    """A constant where no array is at hand, as in a definition that takes integers only."""
    return Array(plain(value, np.empty(0, dtype=arithmetic.numbers)), fmt, arithmetic)


def node(
    value: Any, parents: Sequence[tuple[Array, Pullback]], fmt: Format, rounded: bool
) -> Array:
    """Result of an operation: rounded to its format where asked, with how to differentiate it."""
    arithmetic = parents[0][0].arithmetic
    if rounded and not arithmetic.exact:
        value = arithmetic.round(value, fmt)
    return Array(value, fmt, arithmetic, parents)


def unbroadcast(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum a gradient over the axes along which the operand was broadcast."""
    while gradient.ndim > len(shape):
        gradient = reshape(total(gradient, axis=0), gradient.shape[1:])
    for axis, length in enumerate(shape):
        if length == 1 and gradient.shape[axis] != 1:
            gradient = total(gradient, axis=axis)
    return gradient


def add(left: Array, right: Operand) -> Array:
    """`left + right`, broadcast."""
    other = left.like(right)
    return node(
        left.value + other.value,
        [
            (left, lambda g: unbroadcast(g, left.shape)),
            (other, lambda g: unbroadcast(g, other.shape)),
        ],
        wider(left.format, other.format),
        rounded=True,
    )


def negative(x: Array) -> Array:
    """`-x`, exact in every format."""
    return node(-x.value, [(x, negative)], x.format, rounded=False)


def multiply(left: Array, right: Operand) -> Array:
    """`left * right`, broadcast."""
    other = left.like(right)
    return node(
        left.value * other.value,
        [
            (left, lambda g: unbroadcast(g * detach(other), left.shape)),
            (other, lambda g: unbroadcast(g * detach(left), other.shape)),
        ],
        wider(left.format, other.format),
        rounded=True,
    )


def divide(left: Array, right: Operand) -> Array:
    """`left / right`, broadcast."""
    other = left.like(right)
    result = node(
        left.value / other.value,
        [
            (left, lambda g: unbroadcast(g / detach(other), left.shape)),
            (other, lambda g: unbroadcast(-(g * detach(result)) / detach(other), other.shape)),
        ],
        wider(left.format, other.format),
        rounded=True,
    )
    return result


def detach(x: Array) -> Array:
    """The same value, not differentiated through."""
    return Array(x.value, x.format, x.arithmetic)


def total(x: Array, axis: int = -1) -> Array:
    """Sum along one axis, kept with length 1."""
    value = (
        x.value.sum(axis=axis, keepdims=True)
        if x.arithmetic.exact
        else (x.arithmetic.sum(x.value, axis, x.format))
    )
    return Array(value, x.format, x.arithmetic, [(x, lambda g: broadcast_to(g, x.shape))])


def matmul(left: Array, right: Array) -> Array:
    """Matrix product over the last two axes, the leading axes broadcast."""
    fmt = wider(left.format, right.format)
    value = left.arithmetic.matmul(left.value, right.value, fmt)

    def to_left(g: Array) -> Array:
        return unbroadcast(matmul(g, swap(detach(right))), left.shape)

    def to_right(g: Array) -> Array:
        if right.ndim == 2 and left.ndim > 2:  # one long sum over all rows, as kernels do it
            rows = reshape(detach(left), (-1, left.shape[-1]))
            return matmul(swap(rows), reshape(g, (-1, g.shape[-1])))
        return unbroadcast(matmul(swap(detach(left)), g), right.shape)

    return Array(value, fmt, left.arithmetic, [(left, to_left), (right, to_right)])


def reshape(x: Array, shape: tuple[int, ...]) -> Array:
    """The same numbers in other axes."""
    return node(
        x.value.reshape(shape), [(x, lambda g: reshape(g, x.shape))], x.format, rounded=False
    )


def swap(x: Array, first: int = -2, second: int = -1) -> Array:
    """Exchange two axes; the last two unless told otherwise."""
    return node(
        np.swapaxes(x.value, first, second),
        [(x, lambda g: swap(g, first, second))],
        x.format,
        rounded=False,
    )


def broadcast_to(x: Array, shape: tuple[int, ...]) -> Array:
    """Repeat along axes of length 1."""
    return node(
        np.broadcast_to(x.value, shape),
        [(x, lambda g: unbroadcast(g, x.shape))],
        x.format,
        rounded=False,
    )


def take(x: Array, index: Any) -> Array:
    """`x[index]`: slices, and rows by an integer array (embedding lookup)."""

    def back(g: Array) -> Array:
        value = np.zeros(x.shape, dtype=x.value.dtype)
        np.add.at(value, index, g.value)
        return _rounded_scatter(value, g, index, x)

    return node(x.value[index], [(x, back)], x.format, rounded=False)


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


def cast(x: Array, fmt: Format) -> Array:
    """Round to another format; the gradient is rounded back to the format of `x`."""
    if fmt is x.format:
        return x
    narrower = fmt.unit > x.format.unit
    return node(x.value, [(x, lambda g: cast(g, x.format))], fmt, rounded=narrower)


def gradients(output: Array, cotangent: FloatArray, wrt: Sequence[Array]) -> list[Any]:
    """Derivative of `sum(output * cotangent)` with respect to each array of `wrt`.

    Returns one array of numbers per entry, in its shape; zeros where the output does not depend
    on it.
    """
    seed = Array(plain(cotangent, output.value), output.format, output.arithmetic)
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
