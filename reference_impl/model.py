"""The language model."""

import torch
from torch import Tensor, nn

from .block import TransformerBlock
from .embedding import Embedding
from .linear import Linear
from .norm import RMSNorm


class TransformerLM(nn.Module):
    """Token ids in, for every position the logits of the token that follows it.

    Radford et al. 2018, 2019, with the pre-norm blocks, RMSNorm, SwiGLU and rotary embedding of
    Touvron et al. 2023. The logits at position t depend on tokens 0 .. t only, so one pass over a
    sequence trains T predictions at once.
    """

    def __init__(
        self,
        vocab_size: int,
        context_length: int,
        d_model: int,
        num_layers: int,
        num_heads: int,
        d_ff: int,
        rope_theta: float,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.token_embeddings = Embedding(vocab_size, d_model, device, dtype)
        self.layers = nn.ModuleList(
            TransformerBlock(d_model, num_heads, d_ff, context_length, rope_theta, device, dtype)
            for _ in range(num_layers)
        )
        self.ln_final = RMSNorm(d_model, device=device, dtype=dtype)
        self.lm_head = Linear(d_model, vocab_size, device, dtype)

    def forward(self, token_ids: Tensor) -> Tensor:  # (B, T) integers
        """Logits (B, T, vocab_size); ValueError when T is larger than context_length."""
        length = token_ids.shape[-1]
        if length > self.context_length:
            raise ValueError(f"{length} tokens, more than the context of {self.context_length}")
        x = self.token_embeddings(token_ids)  # (B, T, D)
        for layer in self.layers:
            x = layer(x)
        # The residual stream was never normalised on its way up, so it is once before the head.
        logits: Tensor = self.lm_head(self.ln_final(x))  # (B, T, vocab_size)
        return logits
