"""One layer of the model."""

import torch
from torch import Tensor, nn

from .activations import SwiGLU
from .attention import MultiheadSelfAttention
from .norm import RMSNorm


class TransformerBlock(nn.Module):
    """z = x + attention(norm(x)),  y = z + ffn(norm(z))  (CS336 assignment 1, eq. 15).

    Pre-norm (Xiong et al. 2020): each sublayer sees normalised input, but the sum x + ... is never
    normalised, so the gradient reaches the first layer through an unbroken chain of identities.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        max_seq_len: int,
        theta: float,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.ln1 = RMSNorm(d_model, device=device, dtype=dtype)
        self.attn = MultiheadSelfAttention(d_model, num_heads, max_seq_len, theta, device, dtype)
        self.ln2 = RMSNorm(d_model, device=device, dtype=dtype)
        self.ffn = SwiGLU(d_model, d_ff, device, dtype)

    def forward(self, x: Tensor, token_positions: Tensor | None = None) -> Tensor:  # (B, T, D)
        z = x + self.attn(self.ln1(x), token_positions)
        y: Tensor = z + self.ffn(self.ln2(z))
        return y
