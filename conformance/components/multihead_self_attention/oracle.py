"""Causal multi-head self-attention, exactly as defined."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.components.linear.oracle import linear
from conformance.components.scaled_dot_product_attention.oracle import (
    scaled_dot_product_attention,
)
from conformance.definitions import piece
from conformance.numerics import array as m
from conformance.numerics.array import Array

Rotate = Callable[[Array], Array]


@piece
def multihead_self_attention(
    *,
    d_model: int,
    num_heads: int,
    q_proj_weight: Array,
    k_proj_weight: Array,
    v_proj_weight: Array,
    o_proj_weight: Array,
    in_features: Array,
    rotate: Rotate | None = None,
) -> Array:
    """Attention in `num_heads` subspaces, joined again and projected; token i sees tokens j <= i.

    `in_features` (..., seq, d_model), each weight (d_model, d_model) with head h in rows
    h*d_k .. (h+1)*d_k - 1, d_k = d_model / num_heads. `rotate`, when given, is applied to queries
    and keys (..., heads, seq, d_k). Vaswani et al. 2017, section 3.2.2; course eq. 12-14.
    """

    def project(weight: Array) -> Array:
        projected = linear(d_in=d_model, d_out=d_model, weights=weight, in_features=in_features)
        return split_heads(projected, num_heads)

    q, k, v = project(q_proj_weight), project(k_proj_weight), project(v_proj_weight)
    if rotate is not None:
        q, k = rotate(q), rotate(k)
    visible = causal_mask(in_features.shape[-2])
    joined = join_heads(scaled_dot_product_attention(Q=q, K=k, V=v, mask=visible))
    return linear(d_in=d_model, d_out=d_model, weights=o_proj_weight, in_features=joined)


@piece
def causal_mask(length: int) -> np.ndarray:
    """(length, length), True where token i (row) sees token j (column): j <= i."""
    return np.tril(np.ones((length, length), dtype=bool))


@piece
def split_heads(x: Array, num_heads: int) -> Array:
    """(..., seq, d_model) to (..., heads, seq, d_k): heads are contiguous blocks of features."""
    *leading, length, d_model = x.shape
    blocks = m.reshape(x, (*leading, length, num_heads, d_model // num_heads))
    return m.swap(blocks, -3, -2)


@piece
def join_heads(x: Array) -> Array:
    """(..., heads, seq, d_k) to (..., seq, d_model)."""
    *leading, num_heads, length, d_k = x.shape
    return m.reshape(m.swap(x, -3, -2), (*leading, length, num_heads * d_k))
