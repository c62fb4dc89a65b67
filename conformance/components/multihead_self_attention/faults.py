"""What people write instead of the definition of multi-head self-attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from conformance.components.multihead_self_attention.oracle import (
    Heads,
    attended_heads,
    causal_mask,
    input_projection,
    join_heads,
    multihead_self_attention,
    output_projection,
    projected_heads,
    split_heads,
)
from conformance.components.rope.oracle import rope
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array

MISTAKES = Mistakes("multihead_self_attention")
fault = MISTAKES.fault
Weights = tuple[Array, Array, Array]

# --- the mask -----------------------------------------------------------------------------------


def everything(length: int) -> np.ndarray:
    """(length, length), all True."""
    return np.ones((length, length), dtype=bool)


fault("mha-not-causal", "causal_mask")(everything)

fault("mha-sees-next-token", "causal_mask")(lambda length: np.tril(everything(length), 1))


@fault("mha-cannot-see-itself", "causal_mask")
def cannot_see_itself(length: int) -> np.ndarray:
    earlier = np.tril(everything(length), -1)
    earlier[:1, :1] = True
    return earlier


fault("mha-sees-the-future-only", "causal_mask")(lambda length: causal_mask(length).T)

fault("mha-short-sequences-not-masked", "causal_mask")(
    lambda length: causal_mask(length) if length > 8 else everything(length)
)

fault("mha-window-of-three", "causal_mask")(
    lambda length: causal_mask(length) & ~np.tril(everything(length), -3)
)

fault("mha-mask-of-fixed-size", "causal_mask")(refusing(causal_mask, lambda length: length > 4))

# --- the heads ----------------------------------------------------------------------------------


def split_interleaved(x: Array, num_heads: int) -> Array:
    """Head h gets the features h, h + num_heads, h + 2 num_heads, ..."""
    features = m.reshape(x, (*x.shape[:-1], x.shape[-1] // num_heads, num_heads))
    return m.swap(m.swap(features, -1, -2), -2, -3)


def join_interleaved(x: Array) -> Array:
    """Undoes `split_interleaved`."""
    features = m.swap(m.swap(x, -2, -3), -1, -2)
    return m.reshape(features, (*features.shape[:-2], features.shape[-2] * features.shape[-1]))


MISTAKES.combined(
    "mha-heads-interleaved", split_heads=split_interleaved, join_heads=join_interleaved
)


@fault("mha-merged-without-transpose", "join_heads")
def merged_without_transpose(x: Array) -> Array:
    *leading, num_heads, length, d_k = x.shape
    return m.reshape(x, (*leading, length, num_heads * d_k))


@fault("mha-split-without-transpose", "split_heads")
def split_without_transpose(x: Array, num_heads: int) -> Array:
    *leading, length, d_model = x.shape
    return m.reshape(x, (*leading, num_heads, length, d_model // num_heads))


@fault("mha-head-count-and-width-swapped", "split_heads")
def head_count_and_width_swapped(x: Array, num_heads: int) -> Array:
    return split_heads(x, x.shape[-1] // num_heads)


fault("mha-single-head", "split_heads")(lambda x, num_heads: split_heads(x, 1))

fault("mha-heads-reversed", "join_heads")(lambda x: join_heads(x[..., ::-1, :, :]))


@fault("mha-one-key-value-head", "attended_heads")
def one_key_value_head(heads: Heads) -> Array:
    q, k, v = heads
    return attended_heads((q, k[..., :1, :, :], v[..., :1, :, :]))


@fault("mha-attends-between-heads", "attended_heads")
def attends_between_heads(heads: Heads) -> Array:
    q, k, v = (m.swap(x, -3, -2) for x in heads)
    return m.swap(attended_heads((q, k, v)), -3, -2)


def samples(q: Array) -> int:
    """The length of the first axis of the input whose queries are (..., heads, seq, d_k)."""
    return q.shape[0] if q.ndim > 3 else q.shape[-2]


fault("mha-mask-per-sample-not-per-head", "attended_heads")(
    refusing(attended_heads, lambda heads: samples(heads[0]) not in (1, heads[0].shape[-3]))
)

fault("mha-scale-from-model-width", "score_divisor")(
    lambda q, k, v: math.sqrt(q.shape[-1] * q.shape[-3])
)

# --- the projections ----------------------------------------------------------------------------


@fault("mha-queries-and-keys-swapped", "projected_heads")
def queries_and_keys_swapped(x: Array, weights: Weights, num_heads: int) -> Heads:
    q, k, v = weights
    return projected_heads(x, (k, q, v), num_heads)


@fault("mha-keys-and-values-swapped", "projected_heads")
def keys_and_values_swapped(x: Array, weights: Weights, num_heads: int) -> Heads:
    q, k, v = weights
    return projected_heads(x, (q, v, k), num_heads)


@fault("mha-values-not-projected", "projected_heads")
def values_not_projected(x: Array, weights: Weights, num_heads: int) -> Heads:
    q, k, _ = projected_heads(x, weights, num_heads)
    return q, k, split_heads(x, num_heads)


@fault("mha-input-normalised", "projected_heads")
def input_normalised(x: Array, weights: Weights, num_heads: int) -> Heads:
    root = m.sqrt(m.mean(m.square(m.upcast(x))) + 1e-5)
    return projected_heads(m.cast(m.upcast(x) / root, x.format), weights, num_heads)


fault("mha-three-axes-only", "projected_heads")(
    refusing(projected_heads, lambda x, weights, num_heads: x.ndim != 3)
)

fault("mha-batch-of-one-only", "projected_heads")(
    lambda x, weights, num_heads: projected_heads(
        m.reshape(x, (1, *x.shape[-2:])), weights, num_heads
    )
)

fault("mha-input-detached", "projected_heads")(
    lambda x, weights, num_heads: projected_heads(m.detach(x), weights, num_heads)
)

fault("mha-projections-transposed", "input_projection")(
    lambda x, weight: input_projection(x, m.swap(weight))
)

fault("mha-output-projection-missing", "output_projection")(lambda joined, weight: joined)

fault("mha-output-projection-transposed", "output_projection")(
    lambda joined, weight: output_projection(joined, m.swap(weight))
)

fault("mha-output-weight-copied", "output_projection")(
    lambda joined, weight: output_projection(joined, m.detach(weight))
)

# --- the whole ----------------------------------------------------------------------------------


@fault("mha-residual-inside")
def residual_inside(*, in_features: Array, **others: Any) -> Array:
    return in_features + multihead_self_attention(in_features=in_features, **others)


@fault("mha-single-token-shortcut")
def single_token_shortcut(*, in_features: Array, **others: Any) -> Array:
    if in_features.shape[-2] == 1:
        return in_features
    return multihead_self_attention(in_features=in_features, **others)


@fault("mha-drops-size-one-axes")
def drops_size_one_axes(**arguments: Any) -> Array:
    result = multihead_self_attention(**arguments)
    return m.reshape(result, tuple(length for length in result.shape if length != 1))


@fault("mha-batch-as-one-sequence")
def batch_as_one_sequence(*, in_features: Array, **others: Any) -> Array:
    tokens = m.reshape(in_features, (-1, in_features.shape[-1]))
    return m.reshape(multihead_self_attention(in_features=tokens, **others), in_features.shape)


@fault("mha-rotated")
def rotated(*, in_features: Array, rotate: Any = None, **others: Any) -> Array:
    length = in_features.shape[-2]

    def turned(x: Array) -> Array:
        return rope(
            d_k=x.shape[-1],
            theta=10000.0,
            max_seq_len=length,
            in_query_or_key=x,
            token_positions=np.arange(length),
        )

    def rotate_anyway(heads: Heads) -> Heads:
        q, k, v = heads
        return turned(q), turned(k), v

    return multihead_self_attention(in_features=in_features, rotate=rotate_anyway, **others)
