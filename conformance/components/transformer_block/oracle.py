"""A pre-norm transformer block, exactly as defined."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.components.multihead_self_attention_with_rope.oracle import (
    multihead_self_attention_with_rope,
)
from conformance.components.rmsnorm.oracle import rmsnorm
from conformance.components.swiglu.oracle import swiglu
from conformance.definitions import piece
from conformance.numerics.array import Array

EPS = 1e-5
"""The eps of every norm of the model (course 3.5.1)."""


@piece
def transformer_block(
    *,
    d_model: int,
    num_heads: int,
    d_ff: int,
    max_seq_len: int,
    theta: float,
    weights: Mapping[str, Array],
    in_features: Array,
) -> Array:
    """`z = x + attention(norm1(x))`, `y = z + ffn(norm2(z))`.

    `in_features` (..., seq, d_model); tokens stand at positions 0 .. seq-1. Xiong et al. 2020;
    course 3.6, eq. 15.
    """

    def norm(x: Array, gain: Array) -> Array:
        return rmsnorm(d_model=d_model, eps=EPS, weights=gain, in_features=x)

    attended = in_features + multihead_self_attention_with_rope(
        d_model=d_model,
        num_heads=num_heads,
        max_seq_len=max_seq_len,
        theta=theta,
        q_proj_weight=weights["attn.q_proj.weight"],
        k_proj_weight=weights["attn.k_proj.weight"],
        v_proj_weight=weights["attn.v_proj.weight"],
        o_proj_weight=weights["attn.output_proj.weight"],
        in_features=norm(in_features, weights["ln1.weight"]),
    )
    return attended + swiglu(
        d_model=d_model,
        d_ff=d_ff,
        w1_weight=weights["ffn.w1.weight"],
        w2_weight=weights["ffn.w2.weight"],
        w3_weight=weights["ffn.w3.weight"],
        in_features=norm(attended, weights["ln2.weight"]),
    )
