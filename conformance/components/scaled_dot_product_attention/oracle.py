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
    scores = _scores(Q, K)
    if mask is not None:
        scores = m.where(np.asarray(mask), scores, -np.inf)
    weights = softmax(in_features=scores, dim=-1)
    return m.cast(weights, V.format) @ V


def _scores(q: Array, k: Array) -> Array:
    """`Q K^T / sqrt(d_k)`; the factor may be put on either operand, on both, or on the product."""
    root = math.sqrt(q.shape[-1])
    form = q.arithmetic.choose(4)
    if form == 0:
        return (q @ m.swap(k)) / root
    if form == 1:
        return (q * (1.0 / root)) @ m.swap(k)
    if form == 2:
        return q @ m.swap(k * (1.0 / root))
    half = 1.0 / math.sqrt(root)
    return (q * half) @ m.swap(k * half)
