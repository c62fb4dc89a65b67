"""Causal multi-head self-attention with rotary positions, exactly as defined."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.components.multihead_self_attention.oracle import Heads, multihead_self_attention
from conformance.components.rope.oracle import rope
from conformance.definitions import piece
from conformance.numerics.array import Array


@piece
def multihead_self_attention_with_rope(
    *,
    d_model: int,
    num_heads: int,
    max_seq_len: int,
    theta: float,
    q_proj_weight: Array,
    k_proj_weight: Array,
    v_proj_weight: Array,
    o_proj_weight: Array,
    in_features: Array,
    token_positions: Any = None,
) -> Array:
    """Multi-head self-attention whose queries and keys are rotated within each head.

    `in_features` (..., seq, d_model), `token_positions` integers (seq,) or (batch, seq), 0 .. seq-1
    when not given. The mask follows the order of the sequence, not the positions. Su et al. 2021,
    eq. 14-16; course 3.5.5.
    """
    per_head = positions_of_heads(token_positions, in_features.shape[-2])

    def rotate(heads: Heads) -> Heads:
        return rotated_heads(heads, per_head, theta, max_seq_len)

    return multihead_self_attention(
        d_model=d_model,
        num_heads=num_heads,
        q_proj_weight=q_proj_weight,
        k_proj_weight=k_proj_weight,
        v_proj_weight=v_proj_weight,
        o_proj_weight=o_proj_weight,
        in_features=in_features,
        rotate=rotate,
    )


@piece
def positions_of_heads(token_positions: Any, length: int) -> np.ndarray:
    """Positions that broadcast against (..., heads, seq): the same for all heads."""
    if token_positions is None:
        return np.arange(length)
    positions = np.asarray(token_positions)
    return positions[..., None, :] if positions.ndim > 1 else positions


@piece
def rotated_heads(heads: Heads, positions: np.ndarray, theta: float, max_seq_len: int) -> Heads:
    """Queries and keys turned by the positions, values as they are."""
    q, k, v = heads
    return (
        rotated_rows(q, positions, theta, max_seq_len),
        rotated_rows(k, positions, theta, max_seq_len),
        v,
    )


@piece
def rotated_rows(x: Array, positions: np.ndarray, theta: float, max_seq_len: int) -> Array:
    """Each row (..., heads, seq, d_k) turned by its position."""
    return rope(
        d_k=x.shape[-1],
        theta=theta,
        max_seq_len=max_seq_len,
        in_query_or_key=x,
        token_positions=positions,
    )
