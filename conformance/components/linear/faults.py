"""What people write instead of the linear map."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.linear.oracle import linear, linear_matrix
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import axes_other_than, refusing
from conformance.numerics import array as m
from conformance.numerics.arithmetic import Honest
from conformance.numerics.array import Array
from conformance.numerics.dtypes import wider
from conformance.numerics.tape import node

MISTAKES = Mistakes("linear")
fault = MISTAKES.fault


def output(change: Callable[[Array], Array]) -> Callable[..., Array]:
    """The map with `change(result)` as its answer."""
    return lambda **arguments: change(linear(**arguments))


def of(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """`function(input, weights)` with the keywords of the component."""
    return lambda *, d_in, d_out, weights, in_features: function(in_features, weights)


def right(x: Array, w: Array) -> Array:
    """The map itself."""
    d_out, d_in = w.shape
    return linear(d_in=d_in, d_out=d_out, weights=w, in_features=x)


def valued(value: Array, slope: Array) -> Array:
    """The numbers of `value` with the derivative of `slope`."""
    return node(value.value, [(slope, lambda g: g)], value.format, rounded=False)


def squeezed(x: Array) -> Array:
    """`x` without its axes of length 1."""
    return m.reshape(x, tuple(length for length in x.shape if length != 1))


fault("linear-weight-not-transposed", "linear_matrix")(lambda weights: weights)


@fault("linear-weight-reinterpreted", "linear_matrix")
def weight_reinterpreted(weights: Array) -> Array:
    return m.reshape(weights, weights.shape[::-1])


fault("linear-weights-copied", "linear_matrix")(lambda weights: linear_matrix(m.detach(weights)))

fault("linear-bias-added")(output(lambda y: y + 0.009))
fault("linear-activation-inside")(output(lambda y: m.where(y.value > 0, y, 0.0)))
fault("linear-stays-flat")(output(lambda y: m.reshape(y, (-1, y.shape[-1]))))
fault("linear-drops-size-one-axes")(output(squeezed))
fault("linear-no-grad")(output(m.detach))

fault("linear-output-scaled")(of(lambda x, w: right(x, w) / math.sqrt(w.shape[1])))
fault("linear-input-detached")(of(lambda x, w: right(m.detach(x), w)))


@fault("linear-diagonal-only")
@of
def diagonal_only(x: Array, w: Array) -> Array:
    places = np.arange(max(w.shape))  # those of a weight that is not square do not exist
    return x * w[places, places]


@fault("linear-sums-over-batch")
@output
def sums_over_batch(y: Array) -> Array:
    _, *others, d_out = y.shape  # a single row has no batch to leave out
    return m.reshape(m.total(y, axis=0), (*others, d_out))


@fault("linear-low-precision-sum")
def low_precision_sum(*, weights: Array, in_features: Array, **sizes: Any) -> Array:
    exact = linear(weights=weights, in_features=in_features, **sizes)
    if not exact.format.is_half:
        return exact
    rows = in_features.value[None] if in_features.ndim == 1 else in_features.value
    matrix = linear_matrix(weights).value
    loop = Honest("running", wide_accumulator=False)
    total = loop.matmul(rows, matrix, wider(in_features.format, weights.format))
    return valued(m.constant(total.reshape(exact.shape), exact), exact)


@fault("linear-backward-wrong-orientation")
@of
def backward_wrong_orientation(x: Array, w: Array) -> Array:
    reinterpreted = m.swap(m.reshape(m.detach(w), w.shape[::-1]))
    return valued(right(x, w), right(x, reinterpreted))


fault("linear-three-axes-only")(of(refusing(right, axes_other_than(3))))
fault("linear-two-axes-only")(of(refusing(right, axes_other_than(2))))
