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

Heads = tuple[Array, Array, Array]
"""Queries, keys and values, each (..., heads, seq, d_k)."""

Rotate = Callable[[Heads], Heads]


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
    h*d_k .. (h+1)*d_k - 1, d_k = d_model / num_heads. `rotate`, when given, is applied to queries,
    keys and values (..., heads, seq, d_k). Vaswani et al. 2017, section 3.2.2; course eq. 12-14.
    """
    weights = (q_proj_weight, k_proj_weight, v_proj_weight)
    heads = projected_heads(in_features, weights, num_heads)
    if rotate is not None:
        heads = rotate(heads)
    return output_projection(join_heads(attended_heads(heads)), o_proj_weight)


@piece
def projected_heads(x: Array, weights: tuple[Array, Array, Array], num_heads: int) -> Heads:
    """Queries, keys and values of the input, split into heads."""
    q, k, v = (split_heads(input_projection(x, weight), num_heads) for weight in weights)
    return q, k, v


@piece
def input_projection(x: Array, weight: Array) -> Array:
    """`x W^T` for the weight of queries, keys or values."""
    return linear(d_in=weight.shape[1], d_out=weight.shape[0], weights=weight, in_features=x)


@piece
def attended_heads(heads: Heads) -> Array:
    """Causal attention of every head by itself."""
    q, k, v = heads
    return scaled_dot_product_attention(Q=q, K=k, V=v, mask=causal_mask(q.shape[-2]))


@piece
def output_projection(joined: Array, weight: Array) -> Array:
    """`h W_O^T` for the joined results of the heads."""
    return linear(d_in=weight.shape[1], d_out=weight.shape[0], weights=weight, in_features=joined)


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
