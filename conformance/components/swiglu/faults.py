"""What people write instead of the SwiGLU network."""

from __future__ import annotations

from typing import Any

from conformance.components.silu.oracle import silu
from conformance.components.swiglu.oracle import (
    projected,
    swiglu,
    swiglu_gate,
    swiglu_output,
    swiglu_weights,
)
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array

MISTAKES = Mistakes("swiglu")
fault = MISTAKES.fault
Weights = tuple[Array, Array, Array]

fault("swiglu-gate-and-value-swapped", "swiglu_weights")(lambda w1, w2, w3: (w3, w2, w1))
fault("swiglu-first-weight-twice", "swiglu_weights")(lambda w1, w2, w3: (w1, w2, w1))
fault("swiglu-third-weight-twice", "swiglu_weights")(lambda w1, w2, w3: (w3, w2, w3))


@fault("swiglu-weights-not-transposed", "swiglu_weights")
def weights_not_transposed(w1: Array, w2: Array, w3: Array) -> Weights:
    return m.swap(w1), w2, m.swap(w3)


def narrowed(w1: Array, w2: Array, w3: Array, width: int) -> Weights:
    """The first `width` hidden features alone; all of them when there are no more."""
    return w1[:width], w2[:, :width], w3[:width]


@fault("swiglu-width-recomputed", "swiglu_weights")
def width_recomputed(w1: Array, w2: Array, w3: Array) -> Weights:
    return narrowed(w1, w2, w3, round(8 / 3 * w1.shape[1] / 8) * 8)


@fault("swiglu-width-four-times-model", "swiglu_weights")
def width_four_times_model(w1: Array, w2: Array, w3: Array) -> Weights:
    return narrowed(w1, w2, w3, 4 * w1.shape[1])


@fault("swiglu-hidden-remainder-dropped", "swiglu_weights")
def hidden_remainder_dropped(w1: Array, w2: Array, w3: Array) -> Weights:
    return narrowed(w1, w2, w3, w1.shape[0] // 4 * 4)


def activated(x: Array) -> Array:
    """SiLU."""
    return silu(in_features=x)


fault("swiglu-no-activation", "swiglu_gate")(projected)
fault("swiglu-gate-detached", "swiglu_gate")(lambda x, weight: m.detach(swiglu_gate(x, weight)))
fault("swiglu-activation-on-both", "swiglu_value")(
    lambda x, weight: activated(projected(x, weight))
)

fault("swiglu-no-gate", "swiglu_product")(lambda gate, value: gate)
fault("swiglu-sum-for-product", "swiglu_product")(lambda gate, value: gate + value)

MISTAKES.combined(
    "swiglu-activation-of-product",
    swiglu_gate=projected,
    swiglu_product=lambda gate, value: activated(gate * value),
)
MISTAKES.combined(
    "swiglu-activation-at-end",
    swiglu_gate=projected,
    swiglu_output=lambda hidden, weight: activated(projected(hidden, weight)),
)


@fault("swiglu-hidden-normalised", "swiglu_product")
def hidden_normalised(gate: Array, value: Array) -> Array:
    hidden = gate * value
    squares = m.total(m.square(hidden))
    return hidden / m.sqrt(m.where(squares.value > 1e-24, squares, 1e-24))


@fault("swiglu-activation-zero-for-negatives", "silu")
def activation_zero_for_negatives(*, in_features: Array) -> Array:
    return m.where(in_features.value < -1.0, in_features.like(0.0), activated(in_features))


@fault("swiglu-output-weight-reinterpreted", "swiglu_output")
def output_weight_reinterpreted(hidden: Array, weight: Array) -> Array:
    return swiglu_output(hidden, m.reshape(m.swap(weight), weight.shape))


@fault("swiglu-output-weight-copied", "swiglu_output")
def output_weight_copied(hidden: Array, weight: Array) -> Array:
    return swiglu_output(hidden, m.detach(weight))


@fault("swiglu-residual-inside")
def residual_inside(*, in_features: Array, **more: Any) -> Array:
    return in_features + swiglu(in_features=in_features, **more)


@fault("swiglu-drops-size-one-axes")
def drops_size_one_axes(**arguments: Any) -> Array:
    y = swiglu(**arguments)
    return m.reshape(y, tuple(length for length in y.shape if length != 1))


fault("swiglu-three-axes-only")(refusing(swiglu, lambda *, in_features, **_: in_features.ndim != 3))

fault("swiglu-width-rounded-up", "swiglu_weights")(
    refusing(swiglu_weights, lambda w1, w2, w3: w1.shape[0] % 64 != 0)
)
