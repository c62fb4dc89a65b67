"""Scaled dot-product attention, exactly as defined."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.components.softmax.oracle import softmax
from conformance.numerics import array as m
from conformance.numerics.array import Array


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
    d_k = q.shape[-1]
    form = q.arithmetic.choose(4)
    if form == 0:
        return (q @ m.swap(k)) / float(np.sqrt(d_k))
    if form == 1:
        return (q * d_k**-0.5) @ m.swap(k)
    if form == 2:
        return q @ m.swap(k * d_k**-0.5)
    return (q * d_k**-0.25) @ m.swap(k * d_k**-0.25)
