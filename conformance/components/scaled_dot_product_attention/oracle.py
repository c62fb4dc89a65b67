"""Scaled dot-product attention, exactly as defined."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from conformance.components.softmax.oracle import softmax
from conformance.definitions import piece
from conformance.numerics import array as m
from conformance.numerics.array import Array


@piece
def scaled_dot_product_attention(*, Q: Array, K: Array, V: Array, mask: Any = None) -> Array:
    """`softmax(Q K^T / sqrt(d_k)) V`, hidden keys left out of the softmax.

    `Q` (..., queries, d_k), `K` (..., keys, d_k), `V` (..., keys, d_v), `mask` bool, broadcast to
    (..., queries, keys), True where the query sees the key; the result is (..., queries, d_v).
    Vaswani et al. 2017, section 3.2.1, eq. 1.
    """
    scores = attention_scores(Q, K, score_divisor(Q, K, V))
    seen = seen_keys(None if mask is None else np.asarray(mask), scores.shape)
    return weighted_values(attention_weights(scores, seen), V)


@piece
def score_divisor(q: Array, k: Array, v: Array) -> float:
    """The number that scores are divided by: the root of the width of queries and keys."""
    return math.sqrt(q.shape[-1])


@piece
def attention_scores(q: Array, k: Array, divisor: float) -> Array:
    """`q k^T / divisor`; the factor may be put on either operand, on both, or on the product."""
    form = q.arithmetic.choose(4)
    if form == 0:
        return (q @ m.swap(k)) / divisor
    if form == 1:
        return (q * (1.0 / divisor)) @ m.swap(k)
    if form == 2:
        return q @ m.swap(k * (1.0 / divisor))
    half = 1.0 / math.sqrt(divisor)
    return (q * half) @ m.swap(k * half)


@piece
def seen_keys(mask: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray | None:
    """Which keys which queries see, for scores of that shape; None when they see all."""
    return mask


@piece
def attention_weights(scores: Array, seen: np.ndarray | None) -> Array:
    """(..., queries, keys): the softmax over the keys that are seen, 0 for the others."""
    return softmax_over_keys(scores if seen is None else without_hidden(scores, seen))


@piece
def without_hidden(scores: Array, seen: np.ndarray) -> Array:
    """Scores whose exponentials are 0 where the key is hidden."""
    return m.where(seen, scores, -np.inf)


@piece
def softmax_over_keys(scores: Array) -> Array:
    """The softmax along the last axis."""
    return softmax(in_features=scores, dim=-1)


@piece
def weighted_values(weights: Array, v: Array) -> Array:
    """For each query the sum of all values times their weights."""
    return m.cast(weights, v.format) @ v
