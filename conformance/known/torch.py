"""PyTorch's own operators (`torch.nn.functional`) under the names of the contract.

Torch has no rotary embedding, no pre-norm block with RMSNorm and no sampling, so those components
are not declared. Weights take part in the computation as they are: gradients reach them.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

COMPONENTS = [
    "linear",
    "embedding",
    "rmsnorm",
    "silu",
    "glu",
    "swiglu",
    "softmax",
    "scaled_dot_product_attention",
    "multihead_self_attention",
]


def run_linear(d_in: int, d_out: int, weights: Tensor, in_features: Tensor) -> Tensor:
    return F.linear(in_features, weights)


def run_embedding(vocab_size: int, d_model: int, weights: Tensor, token_ids: Tensor) -> Tensor:
    return F.embedding(token_ids, weights)


def run_rmsnorm(d_model: int, eps: float, weights: Tensor, in_features: Tensor) -> Tensor:
    return F.rms_norm(in_features, (d_model,), weights, eps)


def run_silu(in_features: Tensor) -> Tensor:
    return F.silu(in_features)


def run_glu(
    d_model: int, d_ff: int, w1_weight: Tensor, w2_weight: Tensor, in_features: Tensor
) -> Tensor:
    # F.glu halves its input into values and gate, in this order.
    values_and_gate = F.linear(in_features, torch.cat((w2_weight, w1_weight)))
    return F.glu(values_and_gate, dim=-1)


def run_swiglu(
    d_model: int,
    d_ff: int,
    w1_weight: Tensor,
    w2_weight: Tensor,
    w3_weight: Tensor,
    in_features: Tensor,
) -> Tensor:
    gate = F.silu(F.linear(in_features, w1_weight))
    return F.linear(gate * F.linear(in_features, w3_weight), w2_weight)


def run_softmax(in_features: Tensor, dim: int) -> Tensor:
    return F.softmax(in_features, dim=dim)


def run_scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None
) -> Tensor:
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)


def run_multihead_self_attention(
    d_model: int,
    num_heads: int,
    q_proj_weight: Tensor,
    k_proj_weight: Tensor,
    v_proj_weight: Tensor,
    o_proj_weight: Tensor,
    in_features: Tensor,
) -> Tensor:
    """The function behind `nn.MultiheadAttention`, which takes (seq, batch, d_model)."""
    *leading, length, _ = in_features.shape
    x = in_features.reshape(math.prod(leading), length, d_model).transpose(0, 1)
    seen = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
    output, _ = F.multi_head_attention_forward(
        x,
        x,
        x,
        embed_dim_to_check=d_model,
        num_heads=num_heads,
        in_proj_weight=None,
        in_proj_bias=None,
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=o_proj_weight,
        out_proj_bias=None,
        training=False,
        need_weights=False,
        attn_mask=~seen,  # this function's masks are True where attention is forbidden
        is_causal=True,
        use_separate_proj_weight=True,
        q_proj_weight=q_proj_weight,
        k_proj_weight=k_proj_weight,
        v_proj_weight=v_proj_weight,
    )
    return output.transpose(0, 1).reshape(in_features.shape)
