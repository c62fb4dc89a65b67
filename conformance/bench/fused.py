"""torch's fused operators under the names of the contract: what a candidate is compared with.

Stand-alone: its text is executed in the candidate's process. Where torch has one operator for a
component it is that one; attention with positions, the block and the model are put together from
fused parts. torch has none for rope, sinusoidal, rotation and next_token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-5


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
    # F.glu halves its input into values and gate, in this order
    return F.glu(F.linear(in_features, torch.cat((w2_weight, w1_weight))), dim=-1)


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


def attention(
    num_heads: int, weights: Sequence[Tensor], x: Tensor, rotation: Tensor | None
) -> Tensor:
    """Causal attention with the four projections; queries and keys turned by `rotation`."""
    *leading, length, width = x.shape

    def heads(weight: Tensor) -> Tensor:
        split = F.linear(x, weight).reshape(*leading, length, num_heads, -1)
        return split.transpose(-2, -3)

    q, k, v = (heads(weight) for weight in weights[:3])
    if rotation is not None:
        q, k = turned(q, rotation), turned(k, rotation)
    joined = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return F.linear(joined.transpose(-2, -3).reshape(*leading, length, width), weights[3])


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
    return attention(num_heads, weights, in_features, None)


def unit_circle(theta: float, d_k: int, length: int, device: torch.device) -> Tensor:
    """e^(i angle) for each position and pair, (length, d_k/2)."""
    exponents = torch.arange(0, d_k, 2, device=device, dtype=torch.float32) / d_k
    places = torch.arange(length, device=device, dtype=torch.float32)
    angles = torch.outer(places, theta**-exponents)
    return torch.polar(torch.ones_like(angles), angles)


def turned(x: Tensor, rotation: Tensor) -> Tensor:
    """Each pair of neighbours as one complex number, times its rotation."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotation).flatten(-2).to(x.dtype)


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
    length = in_features.shape[-2]
    rotation = unit_circle(theta, d_model // num_heads, length, in_features.device)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return attention(num_heads, weights, in_features, rotation)


def block(num_heads: int, weights: Mapping[str, Tensor], x: Tensor, rotation: Tensor) -> Tensor:
    """One block with the rotation of its positions."""
    width = x.shape[-1]
    names = ("q_proj", "k_proj", "v_proj", "output_proj")
    projections = [weights[f"attn.{name}.weight"] for name in names]
    normed = F.rms_norm(x, (width,), weights["ln1.weight"], EPS)
    z = x + attention(num_heads, projections, normed, rotation)
    normed = F.rms_norm(z, (width,), weights["ln2.weight"], EPS)
    w1, w2, w3 = (weights[f"ffn.{name}.weight"] for name in ("w1", "w2", "w3"))
    return z + run_swiglu(width, w1.shape[0], w1, w2, w3, normed)


def run_transformer_block(
    d_model: int,
    num_heads: int,
    d_ff: int,
    max_seq_len: int,
    theta: float,
    weights: Mapping[str, Tensor],
    in_features: Tensor,
) -> Tensor:
    length = in_features.shape[-2]
    rotation = unit_circle(theta, d_model // num_heads, length, in_features.device)
    return block(num_heads, weights, in_features, rotation)


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
    x = F.embedding(in_indices, weights["token_embeddings.weight"])
    rotation = unit_circle(rope_theta, d_model // num_heads, in_indices.shape[-1], x.device)
    for number in range(num_layers):
        prefix = f"layers.{number}."
        own = {n[len(prefix) :]: w for n, w in weights.items() if n.startswith(prefix)}
        x = block(num_heads, own, x, rotation)
    x = F.rms_norm(x, (d_model,), weights["ln_final.weight"], EPS)
    return F.linear(x, weights["lm_head.weight"])
