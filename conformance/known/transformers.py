"""Hugging Face `transformers` under the names of the contract: Llama modules and logits warpers.

Llama there rotates feature i together with i + d_k/2, the contract rotates neighbours. Both are the
same rotation after the features of each head have been reordered: evens first, then odds. So for
rope the features are reordered on the way in and back on the way out; for attention the rows of the
query and key projections are, and nothing needs to be undone, because scores do not depend on the
order of features. Modules are built on the meta device and called with the given weights.
"""

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.generation.logits_process import TemperatureLogitsWarper, TopPLogitsWarper
from transformers.models.llama import modeling_llama as llama

COMPONENTS = [
    "rmsnorm",
    "swiglu",
    "rope",
    "scaled_dot_product_attention",
    "multihead_self_attention_with_rope",
    "transformer_block",
    "transformer_lm",
    "next_token",
]

#: A weight's name in `weights` of a block -> its name in LlamaDecoderLayer.
BLOCK_NAMES = {
    "ln1.weight": "input_layernorm.weight",
    "attn.q_proj.weight": "self_attn.q_proj.weight",
    "attn.k_proj.weight": "self_attn.k_proj.weight",
    "attn.v_proj.weight": "self_attn.v_proj.weight",
    "attn.output_proj.weight": "self_attn.o_proj.weight",
    "ln2.weight": "post_attention_layernorm.weight",
    "ffn.w1.weight": "mlp.gate_proj.weight",
    "ffn.w2.weight": "mlp.down_proj.weight",
    "ffn.w3.weight": "mlp.up_proj.weight",
}
MODEL_NAMES = {
    "token_embeddings.weight": "model.embed_tokens.weight",
    "ln_final.weight": "model.norm.weight",
    "lm_head.weight": "lm_head.weight",
}


def run_rmsnorm(d_model: int, eps: float, weights: Tensor, in_features: Tensor) -> Tensor:
    norm = _on_meta(llama.LlamaRMSNorm, d_model, eps)
    result: Tensor = _call(norm, {"weight": weights}, in_features)
    return result


def run_swiglu(
    d_model: int,
    d_ff: int,
    w1_weight: Tensor,
    w2_weight: Tensor,
    w3_weight: Tensor,
    in_features: Tensor,
) -> Tensor:
    # The config insists on attention heads of even width; the network has none.
    config = LlamaConfig(
        hidden_size=d_model, intermediate_size=d_ff, num_attention_heads=1, head_dim=2
    )
    mlp = _on_meta(llama.LlamaMLP, config)
    weights = {
        "gate_proj.weight": w1_weight,
        "down_proj.weight": w2_weight,
        "up_proj.weight": w3_weight,
    }
    result: Tensor = _call(mlp, weights, in_features)
    return result


def run_rope(
    d_k: int, theta: float, max_seq_len: int, in_query_or_key: Tensor, token_positions: Tensor
) -> Tensor:
    rotary = _rotary(_config(d_k, 1, max_seq_len, theta), in_query_or_key.device)
    cos, sin = rotary(in_query_or_key, token_positions)
    order = _evens_then_odds(d_k, in_query_or_key.device)
    reordered = in_query_or_key[..., order]
    rotated, _ = llama.apply_rotary_pos_emb(reordered, reordered, cos, sin, unsqueeze_dim=0)
    result: Tensor = rotated[..., order.argsort()].reshape(in_query_or_key.shape)
    return result


def run_scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The eager attention of the Llama module; takes (batch, heads, seq, d) and adds its mask."""
    leading = Q.shape[:-2]
    q, k, v = (t.reshape(math.prod(leading), 1, *t.shape[-2:]) for t in (Q, K, V))
    if mask is not None:
        everywhere = mask.expand(*leading, *mask.shape[-2:])
        unseen = ~everywhere.reshape(math.prod(leading), 1, *mask.shape[-2:])
        lowest = torch.finfo(Q.dtype).min
        mask = torch.zeros(unseen.shape, dtype=Q.dtype, device=Q.device).masked_fill(unseen, lowest)
    module: Any = SimpleNamespace(num_key_value_groups=1, training=False)
    scaling = Q.shape[-1] ** -0.5
    output, _ = llama.eager_attention_forward(module, q, k, v, mask, scaling)
    result: Tensor = output.reshape(*leading, Q.shape[-2], V.shape[-1])
    return result


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
    config = _config(d_model, num_heads, max_seq_len, theta)
    attention = _on_meta(llama.LlamaAttention, config, layer_idx=0)
    weights = {
        "q_proj.weight": _reorder_heads(q_proj_weight, num_heads),
        "k_proj.weight": _reorder_heads(k_proj_weight, num_heads),
        "v_proj.weight": v_proj_weight,
        "o_proj.weight": o_proj_weight,
    }
    x, angles = _batched(config, in_features, token_positions)
    output, _ = _call(attention, weights, x, position_embeddings=angles)
    result: Tensor = output.reshape(in_features.shape)
    return result


def run_transformer_block(
    d_model: int,
    num_heads: int,
    d_ff: int,
    max_seq_len: int,
    theta: float,
    weights: Mapping[str, Tensor],
    in_features: Tensor,
) -> Tensor:
    config = _config(d_model, num_heads, max_seq_len, theta, intermediate_size=d_ff)
    layer = _on_meta(llama.LlamaDecoderLayer, config, layer_idx=0)
    x, angles = _batched(config, in_features)
    output = _call(layer, _block_weights(weights, num_heads), x, position_embeddings=angles)
    result: Tensor = output.reshape(in_features.shape)
    return result


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
    config = _config(
        d_model,
        num_heads,
        context_length,
        rope_theta,
        intermediate_size=d_ff,
        vocab_size=vocab_size,
        num_hidden_layers=num_layers,
    )
    model = _on_meta(LlamaForCausalLM, config)
    renamed = {theirs: weights[ours] for ours, theirs in MODEL_NAMES.items()}
    for i in range(num_layers):
        prefix = f"layers.{i}."
        block = {k.removeprefix(prefix): w for k, w in weights.items() if k.startswith(prefix)}
        layer = _block_weights(block, num_heads)
        renamed |= {f"model.layers.{i}.{name}": weight for name, weight in layer.items()}
    for name, table in _rotary(config, in_indices.device).named_buffers():
        renamed[f"model.rotary_emb.{name}"] = table
    length = in_indices.shape[-1]
    ids = in_indices.reshape(math.prod(in_indices.shape[:-1]), length)
    logits: Tensor = _call(model, renamed, ids, use_cache=False).logits
    return logits.reshape(*in_indices.shape, vocab_size)


def run_next_token(logits: Tensor, temperature: float = 1.0, top_p: float | None = None) -> Tensor:
    """As `generate` does it: in float32, greedy for temperature 0, else the warpers and softmax."""
    *leading, _, vocab = logits.shape
    scores = logits[..., -1, :].reshape(math.prod(leading), vocab).to(torch.float32)
    if temperature == 0:
        probabilities = F.one_hot(scores.argmax(dim=-1), vocab)
    else:
        no_ids: Any = None  # neither warper looks at the tokens so far
        scores = TemperatureLogitsWarper(float(temperature))(no_ids, scores)
        if top_p is not None:
            scores = TopPLogitsWarper(top_p)(no_ids, scores)
        probabilities = F.softmax(scores, dim=-1)
    return probabilities.to(logits.dtype).reshape(*leading, vocab)


def _on_meta(make: Callable[..., nn.Module], *args: Any, **options: Any) -> nn.Module:
    with torch.device("meta"):
        return make(*args, **options)


def _call(module: nn.Module, weights: Mapping[str, Tensor], *inputs: Tensor, **options: Any) -> Any:
    return functional_call(module.eval(), dict(weights), inputs, options)


def _config(
    d_model: int, num_heads: int, max_seq_len: int, theta: float, **others: Any
) -> LlamaConfig:
    others["attn_implementation"] = "sdpa"  # it knows by itself that Llama is causal
    return LlamaConfig(
        hidden_size=d_model,
        num_attention_heads=num_heads,
        max_position_embeddings=max_seq_len,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
        rms_norm_eps=1e-5,  # the config's own default is 1e-6
        **others,
    )


def _rotary(config: LlamaConfig, device: torch.device) -> llama.LlamaRotaryEmbedding:
    return llama.LlamaRotaryEmbedding(config).to(device)


def _batched(
    config: LlamaConfig, x: Tensor, positions: Tensor | None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """x (..., T, D) as (batch, T, D), and the (cos, sin) of its positions, (batch, T, d_k) each."""
    *leading, length, width = x.shape
    if positions is None:
        positions = torch.arange(length, device=x.device)
    positions = positions.expand(*leading, length).reshape(math.prod(leading), length)
    cos, sin = _rotary(config, x.device)(x, positions)
    return x.reshape(math.prod(leading), length, width), (cos, sin)


def _block_weights(weights: Mapping[str, Tensor], num_heads: int) -> dict[str, Tensor]:
    renamed = {theirs: weights[ours] for ours, theirs in BLOCK_NAMES.items()}
    for name in ("self_attn.q_proj.weight", "self_attn.k_proj.weight"):
        renamed[name] = _reorder_heads(renamed[name], num_heads)
    return renamed


def _reorder_heads(weight: Tensor, num_heads: int) -> Tensor:
    """Rows of each head of a projection (d_model, d_model): evens first, then odds."""
    heads = weight.reshape(num_heads, -1, weight.shape[-1])  # (H, d_k, D)
    return heads[:, _evens_then_odds(heads.shape[1], weight.device)].reshape(weight.shape)


def _evens_then_odds(d_k: int, device: torch.device) -> Tensor:
    return torch.arange(d_k, device=device).reshape(-1, 2).T.flatten()
