"""A pre-norm transformer block, exactly as defined."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.components.multihead_self_attention_with_rope.oracle import (
    multihead_self_attention_with_rope,
)
from conformance.components.rmsnorm.oracle import rmsnorm
from conformance.components.swiglu.oracle import swiglu
from conformance.definitions import piece
from conformance.numerics.array import Array

EPS = 1e-5
"""The eps of every norm of the model (course 3.5.1)."""

Map = Callable[[Array], Array]
"""A norm or a sublayer, weights included: (..., seq, d_model) to the same shape."""


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
    q, k, v, o = projection_weights(weights)
    w1, w2, w3 = feed_forward_weights(weights)
    first, second = norm_gains(weights)

    def attend(x: Array) -> Array:
        return multihead_self_attention_with_rope(
            d_model=d_model,
            num_heads=num_heads,
            max_seq_len=max_seq_len,
            theta=theta,
            q_proj_weight=q,
            k_proj_weight=k,
            v_proj_weight=v,
            o_proj_weight=o,
            in_features=x,
        )

    def feed(x: Array) -> Array:
        return swiglu(
            d_model=d_model, d_ff=d_ff, w1_weight=w1, w2_weight=w2, w3_weight=w3, in_features=x
        )

    return block_wiring(
        in_features,
        lambda x: sublayer_norm(x, first),
        attend,
        lambda x: sublayer_norm(x, second),
        feed,
    )


@piece
def block_wiring(x: Array, norm1: Map, attend: Map, norm2: Map, feed: Map) -> Array:
    """The two sublayers one after the other, each with the norm that belongs to it."""
    return feed_forward_stage(attention_stage(x, norm1, attend), norm2, feed)


@piece
def attention_stage(x: Array, norm: Map, attend: Map) -> Array:
    """The stream and what attention makes of its normalised form."""
    return x + attend(norm(x))


@piece
def feed_forward_stage(x: Array, norm: Map, feed: Map) -> Array:
    """The stream and what the feed-forward network makes of its normalised form."""
    return x + feed(norm(x))


@piece
def sublayer_norm(x: Array, gain: Array) -> Array:
    """The norm before a sublayer."""
    return rmsnorm(d_model=x.shape[-1], eps=EPS, weights=gain, in_features=x)


@piece
def norm_gains(weights: Mapping[str, Array]) -> tuple[Array, Array]:
    """The gains of the norms before attention and before the feed-forward network."""
    return weights["ln1.weight"], weights["ln2.weight"]


@piece
def projection_weights(weights: Mapping[str, Array]) -> tuple[Array, Array, Array, Array]:
    """The weights of queries, keys, values and of the output."""
    return (
        weights["attn.q_proj.weight"],
        weights["attn.k_proj.weight"],
        weights["attn.v_proj.weight"],
        weights["attn.output_proj.weight"],
    )


@piece
def feed_forward_weights(weights: Mapping[str, Array]) -> tuple[Array, Array, Array]:
    """W1, W2 and W3 of the feed-forward network."""
    return weights["ffn.w1.weight"], weights["ffn.w2.weight"], weights["ffn.w3.weight"]
