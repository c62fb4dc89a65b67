"""Token embeddings."""

import torch
from torch import Tensor, nn


class Embedding(nn.Module):
    """Row `t` of the table stands for token `t`: a one-hot row vector times the table."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        weight = torch.empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
        self.weight = nn.Parameter(nn.init.trunc_normal_(weight, mean=0, std=1, a=-3, b=3))

    def forward(self, token_ids: Tensor) -> Tensor:  # (B, T) integers
        return self.weight[token_ids]  # (B, T, D)
