"""Scaled dot-product attention, and many heads of it."""

import math

import torch
from torch import Tensor, nn

from .activations import softmax
from .linear import Linear
from .positions import RotaryPositionalEmbedding
from .precision import at_least_float32


def scaled_dot_product_attention(
    q: Tensor,  # (B, T_q, d_k)
    k: Tensor,  # (B, T_k, d_k)
    v: Tensor,  # (B, T_k, d_v)
    mask: Tensor | None = None,  # (T_q, T_k) or with leading axes; True: the query sees the key
) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V (Vaswani et al. 2017, eq. 1).

    The dot product of two random rows grows like sqrt(d_k); dividing by it keeps softmax from
    saturating. A score of -inf makes a weight of exactly 0. A query that sees no key at all has no
    weights that could sum to 1: its row is 0 / 0, NaN, and so is the gradient of its values.
    """
    d_k = q.shape[-1]
    scores = at_least_float32(q) @ at_least_float32(k).mT / math.sqrt(d_k)  # (B, T_q, T_k)
    if mask is not None:
        scores = torch.where(mask, scores, -math.inf)
    weights = softmax(scores, dim=-1)  # (B, T_q, T_k), rows sum to 1
    return weights.to(v.dtype) @ v  # (B, T_q, d_v)


def causal_mask(length: int, device: torch.device | str | None = None) -> Tensor:
    """(T, T), True where j <= i: token i sees itself and what came before."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


class MultiheadSelfAttention(nn.Module):
    """Causal self-attention in `num_heads` subspaces (Vaswani et al. 2017, section 3.2.2).

    head_h = attention(x W_Q,h^T, x W_K,h^T, x W_V,h^T),  y = concat(head_1 .. head_H) W_O^T

    The H projections of d_k = d_model / H outputs are stored one below the other in one matrix, so
    head h owns rows h*d_k .. (h+1)*d_k - 1. With `theta`, queries and keys are rotated by their
    positions, the same in every head; values are not. Without it, positions play no role.

    Raises ValueError when d_model is no multiple of num_heads, when `theta` comes without
    `max_seq_len`, and in `forward` when the sequence is longer than `max_seq_len`.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        max_seq_len: int | None = None,
        theta: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model {d_model} cannot be divided among {num_heads} heads")
        self.num_heads = num_heads
        self.max_seq_len = max_seq_len
        self.q_proj = Linear(d_model, d_model, device, dtype)
        self.k_proj = Linear(d_model, d_model, device, dtype)
        self.v_proj = Linear(d_model, d_model, device, dtype)
        self.output_proj = Linear(d_model, d_model, device, dtype)
        self.rope: RotaryPositionalEmbedding | None = None
        if theta is not None:
            if max_seq_len is None:
                raise ValueError("with theta, max_seq_len is needed: the size of rope's tables")
            d_k = d_model // num_heads
            self.rope = RotaryPositionalEmbedding(theta, d_k, max_seq_len, device)

    def forward(self, x: Tensor, token_positions: Tensor | None = None) -> Tensor:
        """x (B, T, D) -> (B, T, D); token_positions (T,) or (B, T), 0 .. T-1 when not given."""
        length = x.shape[-2]
        if self.max_seq_len is not None and length > self.max_seq_len:
            raise ValueError(f"{length} tokens, more than max_seq_len {self.max_seq_len}")
        q = self.split_heads(self.q_proj(x))  # (B, H, T, d_k)
        k = self.split_heads(self.k_proj(x))
        v = self.split_heads(self.v_proj(x))
        if self.rope is not None:
            if token_positions is None:
                token_positions = torch.arange(length, device=x.device)  # (T)
            positions = token_positions.unsqueeze(-2)  # (B, 1, T): one for all heads
            q, k = self.rope(q, positions), self.rope(k, positions)
        heads = scaled_dot_product_attention(q, k, v, causal_mask(length, x.device))
        joined = heads.transpose(-3, -2).flatten(-2)  # (B, T, H, d_k) -> (B, T, D)
        y: Tensor = self.output_proj(joined)
        return y

    def split_heads(self, x: Tensor) -> Tensor:  # (B, T, D)
        d_k = x.shape[-1] // self.num_heads
        heads = x.reshape(*x.shape[:-1], self.num_heads, d_k)  # (B, T, H, d_k)
        return heads.transpose(-3, -2)  # (B, H, T, d_k)
