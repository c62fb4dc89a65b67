"""Turns short functions and sets of pieces into functions with the adapters' signatures.

`linear_by(f)` is `run_linear` computed by `f(x, w)`, and so on: a corpus states only what is
particular about an entry. Parameters have the contract's names because candidates are called by
keyword.
"""

from collections.abc import Callable, Mapping

from torch import Tensor

from .parts import (
    Attention,
    Block,
    Function,
    Model,
    Weights,
    attention,
    block,
    embedding,
    glu,
    language_model,
    linear,
    next_token,
    rmsnorm,
    rope,
    rotation,
    self_attention,
    silu,
    sinusoidal,
    softmax,
    swiglu,
)

Adapter = Callable[..., Tensor]


def linear_by(f: Function) -> Adapter:
    """f(x, w)."""

    def run_linear(d_in: int, d_out: int, weights: Tensor, in_features: Tensor) -> Tensor:
        return f(in_features, weights)

    return run_linear


def embedding_by(f: Function) -> Adapter:
    """f(w, ids)."""

    def run_embedding(vocab_size: int, d_model: int, weights: Tensor, token_ids: Tensor) -> Tensor:
        return f(weights, token_ids)

    return run_embedding


def rmsnorm_by(f: Function) -> Adapter:
    """f(x, g, eps)."""

    def run_rmsnorm(d_model: int, eps: float, weights: Tensor, in_features: Tensor) -> Tensor:
        return f(in_features, weights, eps)

    return run_rmsnorm


def silu_by(f: Function) -> Adapter:
    """f(x)."""

    def run_silu(in_features: Tensor) -> Tensor:
        return f(in_features)

    return run_silu


def softmax_by(f: Function) -> Adapter:
    """f(x, dim)."""

    def run_softmax(in_features: Tensor, dim: int) -> Tensor:
        return f(in_features, dim)

    return run_softmax


def glu_by(f: Function) -> Adapter:
    """f(x, w1, w2)."""

    def run_glu(
        d_model: int, d_ff: int, w1_weight: Tensor, w2_weight: Tensor, in_features: Tensor
    ) -> Tensor:
        return f(in_features, w1_weight, w2_weight)

    return run_glu


def swiglu_by(f: Function) -> Adapter:
    """f(x, w1, w2, w3)."""

    def run_swiglu(
        d_model: int,
        d_ff: int,
        w1_weight: Tensor,
        w2_weight: Tensor,
        w3_weight: Tensor,
        in_features: Tensor,
    ) -> Tensor:
        return f(in_features, w1_weight, w2_weight, w3_weight)

    return run_swiglu


def sinusoidal_by(f: Function) -> Adapter:
    """f(d_model, positions, max_seq_len)."""

    def run_sinusoidal(d_model: int, max_seq_len: int, token_positions: Tensor) -> Tensor:
        return f(d_model, token_positions, max_seq_len)

    return run_sinusoidal


def rotation_by(f: Function) -> Adapter:
    """f(angles)."""

    def run_rotation_matrix(angles: Tensor) -> Tensor:
        return f(angles)

    return run_rotation_matrix


def rope_by(f: Function) -> Adapter:
    """f(x, positions, theta, max_seq_len)."""

    def run_rope(
        d_k: int,
        theta: float,
        max_seq_len: int,
        in_query_or_key: Tensor,
        token_positions: Tensor,
    ) -> Tensor:
        return f(in_query_or_key, token_positions, theta, max_seq_len)

    return run_rope


def attention_by(f: Function) -> Adapter:
    """f(q, k, v, mask)."""

    def run_scaled_dot_product_attention(
        Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        return f(Q, K, V, mask)

    return run_scaled_dot_product_attention


def mha_by(f: Function | Attention) -> Adapter:
    """f(x, (wq, wk, wv, wo), heads), or the pieces of attention."""
    if isinstance(f, Attention):
        pieces = f
        return mha_by(lambda x, w, heads: self_attention(x, w, heads, pieces))

    def run_multihead_self_attention(
        d_model: int,
        num_heads: int,
        q_proj_weight: Tensor,
        k_proj_weight: Tensor,
        v_proj_weight: Tensor,
        o_proj_weight: Tensor,
        in_features: Tensor,
    ) -> Tensor:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
        return f(in_features, weights, num_heads)

    return run_multihead_self_attention


def mha_rope_by(f: Function | Attention) -> Adapter:
    """f(x, (wq, wk, wv, wo), heads, positions, theta, max_seq_len), or the pieces."""
    if isinstance(f, Attention):
        pieces = f
        return mha_rope_by(lambda x, w, heads, *more: self_attention(x, w, heads, pieces, *more))

    def run_multihead_self_attention_with_rope(
        d_model: int,
        num_heads: int,
        max_seq_len: int,
        theta: float,
        q_proj_weight: Tensor,
        k_proj_weight: Tensor,
        v_proj_weight: Tensor,
        o_proj_weight: Tensor,
        in_features: Tensor,
        token_positions: Tensor | None = None,
    ) -> Tensor:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
        return f(in_features, weights, num_heads, token_positions, theta, max_seq_len)

    return run_multihead_self_attention_with_rope


def block_by(f: Function | Block) -> Adapter:
    """f(x, weights, heads, theta, max_seq_len), or the pieces of a block."""
    if isinstance(f, Block):
        pieces = f
        return block_by(lambda x, w, heads, theta, limit: block(x, w, heads, theta, limit, pieces))

    def run_transformer_block(
        d_model: int,
        num_heads: int,
        d_ff: int,
        max_seq_len: int,
        theta: float,
        weights: Weights,
        in_features: Tensor,
    ) -> Tensor:
        return f(in_features, weights, num_heads, theta, max_seq_len)

    return run_transformer_block


def lm_by(f: Function | Model) -> Adapter:
    """f(ids, weights, layers, heads, theta, context_length), or the pieces of the model."""
    if isinstance(f, Model):
        pieces = f
        return lm_by(lambda *arguments: language_model(*arguments, pieces))

    def run_transformer_lm(
        vocab_size: int,
        context_length: int,
        d_model: int,
        num_layers: int,
        num_heads: int,
        d_ff: int,
        rope_theta: float,
        weights: Weights,
        in_indices: Tensor,
    ) -> Tensor:
        return f(in_indices, weights, num_layers, num_heads, rope_theta, context_length)

    return run_transformer_lm


def next_token_by(f: Function) -> Adapter:
    """f(logits, temperature, top_p)."""

    def run_next_token(
        logits: Tensor, temperature: float = 1.0, top_p: float | None = None
    ) -> Tensor:
        return f(logits, temperature, top_p)

    return run_next_token


# The plain implementation of every component, in the order of the contract.
CORRECT: Mapping[str, Adapter] = {
    "linear": linear_by(linear),
    "embedding": embedding_by(embedding),
    "rmsnorm": rmsnorm_by(rmsnorm),
    "silu": silu_by(silu),
    "glu": glu_by(glu),
    "swiglu": swiglu_by(swiglu),
    "softmax": softmax_by(softmax),
    "sinusoidal": sinusoidal_by(lambda d, positions, limit: sinusoidal(d, positions)),
    "rotation": rotation_by(rotation),
    "rope": rope_by(rope),
    "scaled_dot_product_attention": attention_by(attention),
    "multihead_self_attention": mha_by(Attention()),
    "multihead_self_attention_with_rope": mha_rope_by(Attention()),
    "transformer_block": block_by(Block()),
    "transformer_lm": lm_by(Model()),
    "next_token": next_token_by(next_token),
}
