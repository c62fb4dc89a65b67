"""The reference implementation under the names of the contract (`conformance/adapters.py`).

Modules are built on the meta device, which costs neither memory nor random numbers, and then called
with the given weights in place of parameters. The weights themselves take part in the computation,
not copies of them, so that gradients reach the tensors that were passed in.
"""

from collections.abc import Mapping
from functools import reduce

import torch
from torch import Tensor, nn
from torch.func import functional_call

from . import activations, attention, positions, sampling
from .activations import SwiGLU
from .attention import MultiheadSelfAttention
from .block import TransformerBlock
from .embedding import Embedding
from .linear import Linear
from .model import TransformerLM
from .norm import RMSNorm
from .positions import RotaryPositionalEmbedding, SinusoidalEncoding


def _call(
    module: nn.Module,
    weights: Mapping[str, Tensor],
    *inputs: Tensor | None,
    rope: RotaryPositionalEmbedding | None = None,
) -> Tensor:
    """`module(*inputs)`, computed with `weights` and, in every layer, with the tables of `rope`.

    KeyError when names are missing or unknown, ValueError when a shape is not the module's.
    """
    expected = module.state_dict()
    if expected.keys() != weights.keys():
        raise KeyError(f"weights differ in {sorted(expected.keys() ^ weights.keys())}")
    for name, weight in weights.items():
        if weight.shape != expected[name].shape:
            shapes = f"{tuple(weight.shape)}, not {tuple(expected[name].shape)}"
            raise ValueError(f"weight {name} has shape {shapes}")
    # "layers.0.attn.rope.cos" is the table `cos`
    tables = {name: getattr(rope, name.rpartition(".")[2]) for name, _ in module.named_buffers()}
    output: Tensor = functional_call(module, {**weights, **tables}, inputs)
    return output


def _call_in_common_dtype(
    module: nn.Module,
    weights: Mapping[str, Tensor],
    x: Tensor,
    *rest: Tensor | None,
    rope: RotaryPositionalEmbedding | None = None,
) -> Tensor:
    """`_call` where `x` and the weights may differ in precision: the widest computes, x's returns.

    A matrix product takes operands of one dtype only. Nothing is converted when they agree already.
    """
    dtype = reduce(torch.promote_types, (w.dtype for w in weights.values()), x.dtype)
    converted = {name: weight.to(dtype) for name, weight in weights.items()}
    return _call(module, converted, x.to(dtype), *rest, rope=rope).to(x.dtype)


def run_linear(d_in: int, d_out: int, weights: Tensor, in_features: Tensor) -> Tensor:
    linear = Linear(d_in, d_out, device="meta")
    return _call_in_common_dtype(linear, {"weight": weights}, in_features)


def run_embedding(vocab_size: int, d_model: int, weights: Tensor, token_ids: Tensor) -> Tensor:
    embedding = Embedding(vocab_size, d_model, device="meta")
    return _call(embedding, {"weight": weights}, token_ids)


def run_rmsnorm(d_model: int, eps: float, weights: Tensor, in_features: Tensor) -> Tensor:
    norm = RMSNorm(d_model, eps, device="meta")
    return _call(norm, {"weight": weights}, in_features)


def run_silu(in_features: Tensor) -> Tensor:
    return activations.silu(in_features)


def run_glu(
    d_model: int, d_ff: int, w1_weight: Tensor, w2_weight: Tensor, in_features: Tensor
) -> Tensor:
    return activations.glu(in_features, w1_weight, w2_weight)


def run_swiglu(
    d_model: int,
    d_ff: int,
    w1_weight: Tensor,
    w2_weight: Tensor,
    w3_weight: Tensor,
    in_features: Tensor,
) -> Tensor:
    swiglu = SwiGLU(d_model, d_ff, device="meta")
    weights = {"w1.weight": w1_weight, "w2.weight": w2_weight, "w3.weight": w3_weight}
    return _call_in_common_dtype(swiglu, weights, in_features)


def run_softmax(in_features: Tensor, dim: int) -> Tensor:
    return activations.softmax(in_features, dim)


def run_sinusoidal(d_model: int, max_seq_len: int, token_positions: Tensor) -> Tensor:
    encoding = SinusoidalEncoding(d_model, max_seq_len, device=token_positions.device)
    table_rows: Tensor = encoding(token_positions)
    return table_rows


def run_rotation_matrix(angles: Tensor) -> Tensor:
    return positions.rotation_matrix(angles)


def run_rope(
    d_k: int, theta: float, max_seq_len: int, in_query_or_key: Tensor, token_positions: Tensor
) -> Tensor:
    rope = RotaryPositionalEmbedding(theta, d_k, max_seq_len, device=in_query_or_key.device)
    rotated: Tensor = rope(in_query_or_key, token_positions)
    return rotated


def run_scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None
) -> Tensor:
    return attention.scaled_dot_product_attention(Q, K, V, mask)


def run_multihead_self_attention(
    d_model: int,
    num_heads: int,
    q_proj_weight: Tensor,
    k_proj_weight: Tensor,
    v_proj_weight: Tensor,
    o_proj_weight: Tensor,
    in_features: Tensor,
) -> Tensor:
    module = MultiheadSelfAttention(d_model, num_heads, device="meta")
    weights = _attention_weights(q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return _call_in_common_dtype(module, weights, in_features)


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
    module = MultiheadSelfAttention(d_model, num_heads, max_seq_len, theta, device="meta")
    rope = _rope(d_model, num_heads, max_seq_len, theta, in_features.device)
    weights = _attention_weights(q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return _call_in_common_dtype(module, weights, in_features, token_positions, rope=rope)


def _attention_weights(q: Tensor, k: Tensor, v: Tensor, o: Tensor) -> dict[str, Tensor]:
    return {
        "q_proj.weight": q,
        "k_proj.weight": k,
        "v_proj.weight": v,
        "output_proj.weight": o,
    }


def _rope(
    d_model: int, num_heads: int, max_seq_len: int, theta: float, device: torch.device
) -> RotaryPositionalEmbedding:
    return RotaryPositionalEmbedding(theta, d_model // num_heads, max_seq_len, device)


def run_transformer_block(
    d_model: int,
    num_heads: int,
    d_ff: int,
    max_seq_len: int,
    theta: float,
    weights: Mapping[str, Tensor],
    in_features: Tensor,
) -> Tensor:
    block = TransformerBlock(d_model, num_heads, d_ff, max_seq_len, theta, device="meta")
    rope = _rope(d_model, num_heads, max_seq_len, theta, in_features.device)
    return _call_in_common_dtype(block, weights, in_features, rope=rope)


def run_transformer_lm(
    vocab_size: int,
    context_length: int,
    d_model: int,
    num_layers: int,
    num_heads: int,
    d_ff: int,
    rope_theta: float,
    weights: Mapping[str, Tensor],
    in_indices: Tensor,
) -> Tensor:
    model = TransformerLM(
        vocab_size,
        context_length,
        d_model,
        num_layers,
        num_heads,
        d_ff,
        rope_theta,
        device="meta",
    )
    rope = _rope(d_model, num_heads, context_length, rope_theta, in_indices.device)
    return _call(model, weights, in_indices, rope=rope)


def run_next_token(logits: Tensor, temperature: float = 1.0, top_p: float | None = None) -> Tensor:
    return sampling.next_token_probabilities(logits, temperature, top_p)
