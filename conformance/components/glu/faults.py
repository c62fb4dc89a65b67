"""What people write instead of the gated linear unit."""

from __future__ import annotations

from typing import Any

from conformance.components.glu.oracle import glu, projected
from conformance.components.silu.faults import clamped, one_over, relu, row_softmax
from conformance.components.silu.oracle import logistic, silu
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array

MISTAKES = Mistakes("glu")
fault = MISTAKES.fault

fault("glu-gate-and-value-swapped", "glu_weights")(lambda w1, w2: (w2, w1))
fault("glu-first-weight-twice", "glu_weights")(lambda w1, w2: (w1, w1))
fault("glu-second-weight-twice", "glu_weights")(lambda w1, w2: (w2, w2))


@fault("glu-weights-reinterpreted", "glu_weights")
def weights_reinterpreted(w1: Array, w2: Array) -> tuple[Array, Array]:
    return m.reshape(m.swap(w1), w1.shape), m.reshape(m.swap(w2), w2.shape)


@fault("glu-width-recomputed", "glu_weights")
def width_recomputed(w1: Array, w2: Array) -> tuple[Array, Array]:
    width = int(8 / 3 * w1.shape[1])
    return w1[:width], w2[:width]


fault("glu-silu-gate", "logistic")(lambda x: silu(in_features=x))
fault("glu-no-activation", "logistic")(lambda x: x)
fault("glu-tanh-gate", "logistic")(m.tanh)
fault("glu-relu-gate", "logistic")(relu)
fault("glu-softmax-gate", "logistic")(row_softmax)
fault("glu-closed-gate", "logistic")(lambda x: logistic(-x))
fault("glu-clamped-gate", "logistic")(lambda x: logistic(clamped(x, -5.0, 5.0)))
fault("glu-gradient-nan-for-large-negatives", "logistic")(one_over)
fault("glu-gate-detached", "glu_gate")(lambda x, weight: m.detach(logistic(projected(x, weight))))

fault("glu-sigmoid-on-both", "glu_value")(lambda x, weight: logistic(projected(x, weight)))
fault("glu-sigmoid-of-input", "glu_gate")(lambda x, weight: projected(logistic(x), weight))
fault("glu-sum-for-product", "glu_product")(lambda gate, value: gate + value)

MISTAKES.combined(
    "glu-sigmoid-of-product",
    glu_gate=projected,
    glu_product=lambda gate, value: logistic(gate * value),
)


@fault("glu-drops-size-one-axes")
def drops_size_one_axes(**arguments: Any) -> Array:
    y = glu(**arguments)
    return m.reshape(y, tuple(length for length in y.shape if length != 1))


fault("glu-three-axes-only")(refusing(glu, lambda *, in_features, **_: in_features.ndim != 3))
