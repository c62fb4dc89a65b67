"""What people write instead of the definition of scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from conformance.components.scaled_dot_product_attention.faults_mask import MISTAKES
from conformance.components.scaled_dot_product_attention.oracle import (
    attention_scores,
    scaled_dot_product_attention,
    score_divisor,
    seen_keys,
    softmax_over_keys,
    weighted_values,
    without_hidden,
)
from conformance.components.softmax.oracle import softmax
from conformance.diagnosis.refusal import axes_other_than, refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.numerics.dtypes import FLOAT32, FORMATS

fault = MISTAKES.fault
BLOCK = 4

# --- the scale ----------------------------------------------------------------------------------

fault("attention-no-scale", "score_divisor")(lambda q, k, v: 1.0)

fault("attention-scale-not-rooted", "score_divisor")(lambda q, k, v: float(q.shape[-1]))

fault("attention-scale-multiplied", "score_divisor")(lambda q, k, v: 1 / math.sqrt(q.shape[-1]))

fault("attention-scale-from-values", "score_divisor")(lambda q, k, v: math.sqrt(v.shape[-1]))

fault("attention-scale-from-length", "score_divisor")(lambda q, k, v: math.sqrt(k.shape[-2]))

fault("attention-scale-always-8", "score_divisor")(lambda q, k, v: 8.0)

fault("attention-scale-root-truncated", "score_divisor")(
    lambda q, k, v: float(math.isqrt(q.shape[-1]))
)

# --- the scores ---------------------------------------------------------------------------------

fault("attention-queries-and-keys-swapped", "attention_scores")(
    lambda q, k, divisor: attention_scores(k, q, divisor)
)


def to_length_one(x: Array) -> Array:
    """Rows divided by their length, or by 1e-12 where they are shorter."""
    length = m.sqrt(m.total(m.square(x)))
    return x / m.where(length.value > 1e-12, length, 1e-12)


fault("attention-cosine-scores", "attention_scores")(
    lambda q, k, divisor: attention_scores(to_length_one(q), to_length_one(k), divisor)
)

fault("attention-four-axes-only", "attention_scores")(
    refusing(attention_scores, axes_other_than(4))
)

fault("attention-three-axes-only", "attention_scores")(
    refusing(attention_scores, axes_other_than(3))
)

fault("attention-transposes-axes-one-and-two", "attention_scores")(
    lambda q, k, divisor: (q @ m.swap(k, 1, 2)) / divisor
)

fault("attention-equal-lengths-assumed", "attention_scores")(
    lambda q, k, divisor: attention_scores(q, m.reshape(k, (*q.shape[:-1], -1)), divisor)
)

# --- the softmax --------------------------------------------------------------------------------

fault("attention-softmax-over-queries", "softmax_over_keys")(
    lambda scores: softmax(in_features=scores, dim=-2)
)

fault("attention-softmax-axis-one", "softmax_over_keys")(
    lambda scores: softmax(in_features=scores, dim=1)
)

fault("attention-no-softmax", "softmax_over_keys")(lambda scores: scores)


@fault("attention-scores-clamped", "softmax_over_keys")
def scores_clamped(scores: Array) -> Array:
    inside = np.abs(scores.value) <= 50
    return softmax_over_keys(m.where(inside, scores, np.clip(scores.value, -50, 50)))


fault("attention-scores-in-bfloat16", "softmax_over_keys")(
    lambda scores: softmax_over_keys(m.rounded(scores, FORMATS["bfloat16"]))
)

fault("attention-weights-detached", "softmax_over_keys")(
    lambda scores: m.detach(softmax_over_keys(scores))
)

# --- the values ---------------------------------------------------------------------------------

fault("attention-weights-answered", "weighted_values")(lambda weights, v: m.cast(weights, v.format))

fault("attention-softmax-in-float32-left", "weighted_values")(
    refusing(weighted_values, lambda weights, v: v.format is not FLOAT32)
)

fault("attention-values-detached", "weighted_values")(
    lambda weights, v: weighted_values(weights, m.detach(v))
)

# --- the whole ----------------------------------------------------------------------------------


@fault("attention-keys-and-values-swapped")
def keys_and_values_swapped(*, Q: Array, K: Array, V: Array, mask: Any = None) -> Array:
    return scaled_dot_product_attention(Q=Q, K=V, V=K, mask=mask)


@fault("attention-keys-as-values")
def keys_as_values(*, Q: Array, K: Array, V: Array, mask: Any = None) -> Array:
    return scaled_dot_product_attention(Q=Q, K=K, V=K, mask=mask)


@fault("attention-residual-inside")
def residual_inside(*, Q: Array, K: Array, V: Array, mask: Any = None) -> Array:
    return Q + scaled_dot_product_attention(Q=Q, K=K, V=V, mask=mask)


@fault("attention-output-shaped-like-queries")
def output_shaped_like_queries(*, Q: Array, K: Array, V: Array, mask: Any = None) -> Array:
    return m.reshape(scaled_dot_product_attention(Q=Q, K=K, V=V, mask=mask), Q.shape)


@fault("attention-drops-size-one-axes")
def drops_size_one_axes(*, Q: Array, K: Array, V: Array, mask: Any = None) -> Array:
    result = scaled_dot_product_attention(Q=Q, K=K, V=V, mask=mask)
    return m.reshape(result, tuple(length for length in result.shape if length != 1))


@fault("attention-key-remainder-dropped")
def key_remainder_dropped(*, Q: Array, K: Array, V: Array, mask: Any = None) -> Array:
    keys = K.shape[-2]
    kept = slice(max(keys // BLOCK * BLOCK, min(keys, BLOCK)))
    seen = None if mask is None else np.asarray(mask)[..., kept]
    return scaled_dot_product_attention(Q=Q, K=K[..., kept, :], V=V[..., kept, :], mask=seen)


@fault("attention-online-without-rescaling")
def online_without_rescaling(*, Q: Array, K: Array, V: Array, mask: Any = None) -> Array:
    """The maximum of all blocks so far is right for the block at hand and wrong for the others."""
    divisor = score_divisor(Q, K, V)
    shape = (*np.broadcast_shapes(Q.shape[:-2], K.shape[:-2]), Q.shape[-2], K.shape[-2])
    seen = seen_keys(None if mask is None else np.asarray(mask), shape)
    top: Array | None = None
    total: Array | float = 0.0
    result: Array | float = 0.0
    for start in range(0, K.shape[-2], BLOCK):
        block = slice(start, start + BLOCK)
        scores = attention_scores(Q, K[..., block, :], divisor)
        if seen is not None:
            scores = without_hidden(scores, np.broadcast_to(seen, shape)[..., block])
        highest = m.maximum(scores, through=True)
        top = highest if top is None else m.where(top.value > highest.value, top, highest)
        powers = m.exp(scores - top)
        total = m.total(powers) + total
        result = weighted_values(powers, V[..., block, :]) + result
    return m.cast(Q.like(result) / total, V.format)
