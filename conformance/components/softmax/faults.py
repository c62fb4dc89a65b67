"""What people write instead of the definition of softmax.

Mistakes about the formula replace `exponential_shares`, mistakes about the axis and the shape the
whole component, so that one of each can be combined. Where a mistake shows only by overflow, what
overflows is rounded to the format of the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.softmax.oracle import exponential_shares, softmax, widened_scores
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import axes_other_than, refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.numerics.dtypes import FORMATS, Format
from conformance.numerics.tape import node

MISTAKES = Mistakes("softmax")
fault = MISTAKES.fault
FLOAT16 = FORMATS["float16"]

Shares = Callable[[Array, int], Array]


def along(by: Shares) -> Callable[..., Array]:
    """The component computed by a function of scores and axis."""

    def whole(*, in_features: Array, dim: int) -> Array:
        return by(in_features, dim)

    return whole


def right(x: Array, dim: int) -> Array:
    """The component itself."""
    return softmax(in_features=x, dim=dim)


def unwidened(identifier: str, shares: Shares) -> None:
    """A fault of the formula, computed in the format of the input, however low."""
    MISTAKES.combined(identifier, widened_scores=lambda x: x, exponential_shares=shares)


def magnitude(x: Array) -> Array:
    """`|x|`."""
    return m.where(x.value < 0, -x, x)


def through(x: Array, fmt: Format) -> Array:
    """`x` converted to a format and back, its gradient too."""
    value = m.rounded(x, fmt).value
    return node(value, [(x, lambda g: m.rounded(g, fmt))], x.format, rounded=False)


def largest(x: Array, dim: int) -> Any:
    """Which entries are as large as the largest of their slice."""
    return x.value == m.maximum(x, dim).value


def shared_maximum(x: Array, dim: int) -> Array:
    """The maximum along an axis, its derivative shared among equal ones."""
    equal = largest(x, dim)
    share = m.constant(equal / equal.sum(axis=dim, keepdims=True), x)
    return node(m.maximum(x, dim).value, [(x, lambda g: g * share)], x.format, rounded=False)


def power(x: Array) -> Array:
    """`exp(x)`, infinite or zero where its format ends, in the derivative too."""
    limited = m.rounded(m.exp(m.detach(x)), x.format)
    return node(limited.value, [(x, lambda g: g * limited)], x.format, rounded=False)


def low_total(x: Array, dim: int) -> Array:
    """A sum that overflows where the format of its terms ends."""
    return m.rounded(m.total(x, dim), x.format)


def shifted(by: Shares) -> Shares:
    """Exponentials over their sum, after a shift that is by(scores, axis)."""

    def shares(x: Array, dim: int) -> Array:
        powers = power(x - by(x, dim))
        return powers / low_total(powers, dim)

    return shares


def largest_of_all(x: Array, dim: int) -> Array:
    """One maximum for the whole tensor, its derivative shared among equal ones."""
    equal = x.value == x.value.max()
    return node(
        x.value.max(),
        [(x, lambda g: m.where(equal, g / float(equal.sum()), 0.0))],
        x.format,
        rounded=False,
    )


unwidened("softmax-no-shift", shifted(lambda x, dim: m.constant(0.0, x)))

unwidened("softmax-global-maximum", shifted(largest_of_all))

unwidened("softmax-mean-subtracted", shifted(m.mean))

unwidened("softmax-minimum-subtracted", shifted(lambda x, dim: -m.maximum(-x, dim)))

unwidened(
    "softmax-largest-magnitude-subtracted", shifted(lambda x, dim: m.maximum(magnitude(x), dim))
)


@shifted
def only_positive_maximum(x: Array, dim: int) -> Array:
    """The maximum, or 0 where that is larger."""
    largest = m.maximum(x, dim)
    return m.where(largest.value > 0, largest, 0.0)


unwidened("softmax-only-positive-maximum", only_positive_maximum)


def clamped(x: Array, bound: float) -> Array:
    """`x` between `-bound` and `bound`."""
    return m.where(np.abs(x.value) <= bound, x, np.sign(x.value) * bound)


fault("softmax-scores-clamped", "exponential_shares")(
    lambda x, dim: exponential_shares(clamped(x, 30.0), dim)
)

unwidened(
    "softmax-log-sum-exp-without-shift",
    lambda x, dim: power(x - m.log(low_total(power(x), dim))),
)

fault("softmax-axis-ignored")(along(lambda x, dim: right(x, -1)))

fault("softmax-axis-counted-from-zero")(along(lambda x, dim: right(x, 1)))

fault("softmax-reshaped-to-rows")(
    along(lambda x, dim: m.reshape(right(m.reshape(x, (-1, x.shape[dim])), -1), x.shape))
)


def to_end(x: Array, dim: int) -> Array:
    """The same numbers with axis `dim` moved behind the others."""
    for axis in range(dim % x.ndim, x.ndim - 1):
        x = m.swap(x, axis, axis + 1)
    return x


def without_axis(x: Array, dim: int) -> tuple[int, ...]:
    """The shape of `x` but for axis `dim`."""
    return tuple(n for axis, n in enumerate(x.shape) if axis != dim % x.ndim)


fault("softmax-axis-not-moved-back")(along(lambda x, dim: right(to_end(x, dim), -1)))


def sum_restored_at_end(x: Array, dim: int) -> Array:
    """Exponentials over their sum, whose axis is put back behind the others."""
    powers = power(x)
    sums = m.reshape(low_total(powers, dim), (*without_axis(x, dim), 1))
    return m.rounded(powers / sums, x.format)


unwidened("softmax-sum-restored-at-end", sum_restored_at_end)

unwidened(
    "softmax-maximum-restored-at-end",
    shifted(lambda x, dim: m.reshape(m.maximum(x, dim), (*without_axis(x, dim), 1))),
)

fault("softmax-negative-axis-refused", "exponential_shares")(
    refusing(exponential_shares, lambda x, dim: dim < 0)
)

fault("softmax-three-axes-only", "widened_scores")(refusing(widened_scores, axes_other_than(3)))

fault("softmax-not-normalised", "exponential_shares")(
    lambda x, dim: m.exp(x - shared_maximum(x, dim))
)

fault("softmax-normalised-over-everything", "exponential_shares")(
    lambda x, dim: m.reshape(exponential_shares(m.reshape(x, (-1,)), 0), x.shape)
)


@fault("softmax-logarithm-left", "exponential_shares")
def logarithm_left(x: Array, dim: int) -> Array:
    """`x - log(sum(exp(x)))`, shifted."""
    moved = x - m.maximum(x, dim)
    return moved - m.log(m.total(m.exp(moved), dim))


fault("softmax-base-two", "exponential_shares")(
    lambda x, dim: exponential_shares(x * math.log(2.0), dim)
)

fault("softmax-share-of-sum", "exponential_shares")(lambda x, dim: x / m.total(x, dim))

fault("softmax-sigmoid", "exponential_shares")(lambda x, dim: m.logistic(x))

fault("softmax-softmin", "exponential_shares")(lambda x, dim: exponential_shares(-x, dim))

fault("softmax-one-hot", "exponential_shares")(
    lambda x, dim: m.constant(np.where(largest(x, dim), 1.0, 0.0), x)
)


def one_added_to_sum(x: Array, dim: int) -> Array:
    """`exp(x) / (1 + sum(exp(x)))`."""
    powers = power(x)
    return powers / (1.0 + low_total(powers, dim))


unwidened("softmax-one-added-to-sum", one_added_to_sum)

fault("softmax-scaled-by-root-size", "exponential_shares")(
    lambda x, dim: exponential_shares(x / float(x.shape[dim]) ** 0.5, dim)
)

fault("softmax-zeros-are-masked", "exponential_shares")(
    lambda x, dim: exponential_shares(m.where(x.value != 0, x, -np.inf), dim)
)


@fault("softmax-ties-to-first", "exponential_shares")
def ties_to_first(x: Array, dim: int) -> Array:
    """All maxima but the first are left out."""
    maxima = largest(x, dim)
    later = maxima & (maxima.cumsum(axis=dim) > 1)
    return exponential_shares(m.where(~later, x, -np.inf), dim)


def low_precision_sum(x: Array, dim: int) -> Array:
    """Exponentials over a sum to which they are added one by one; differentiated as it is."""
    powers = power(x - m.maximum(x, dim))
    exact = m.total(powers, dim)
    added = np.add.accumulate(powers.value.astype(x.format.numpy), axis=dim)
    last = np.take(added.astype(np.float64), [-1], axis=dim)
    return powers / node(last, [(exact, lambda g: g)], x.format, rounded=False)


unwidened("softmax-low-precision-sum", low_precision_sum)

fault("softmax-half-inside", "exponential_shares")(
    lambda x, dim: through(exponential_shares(through(x, FLOAT16), dim), FLOAT16)
)

fault("softmax-drops-size-one-axes")(
    along(lambda x, dim: m.reshape(right(x, dim), tuple(n for n in x.shape if n != 1)))
)


@fault("softmax-sum-detached", "exponential_shares")
def sum_detached(x: Array, dim: int) -> Array:
    """The right value; the derivative knows the numerator only."""
    powers = m.exp(x - m.maximum(x, dim))
    return powers / m.detach(m.total(powers, dim))


@fault("softmax-backward-diagonal-only", "exponential_shares")
def backward_diagonal_only(x: Array, dim: int) -> Array:
    """The right value with the diagonal of the Jacobian alone."""
    p = exponential_shares(m.detach(x), dim)
    return node(p.value, [(x, lambda g: g * (p * (1.0 - p)))], p.format, rounded=False)


@fault("softmax-gradient-nan-when-far-apart", "exponential_shares")
def gradient_nan_when_far_apart(x: Array, dim: int) -> Array:
    """`1 / sum_j exp(x_j - x_i)`."""
    rows = m.swap(x, dim, -1)
    count = rows.shape[-1]
    others = m.reshape(rows, (*rows.shape[:-1], 1, count))
    own = m.reshape(rows, (*rows.shape, 1))
    sums = m.reshape(m.total(power(others - own)), rows.shape)
    return m.swap(1.0 / sums, dim, -1)
