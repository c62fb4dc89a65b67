"""The linear map."""

import math

import torch
from torch import Tensor, nn


class Linear(nn.Module):
    """y = x W^T, without bias (CS336 assignment 1, eq. 1-3).

    Arguments read (in, out), as data flows; the matrix is stored (out, in), so that each of its
    rows holds the weights of one output.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        # Variance 2 / (in + out) is the compromise between keeping the size of activations on the
        # way forward (1 / in) and of gradients on the way back (1 / out): Glorot and Bengio 2010.
        std = math.sqrt(2 / (in_features + out_features))
        weight = torch.empty(out_features, in_features, device=device, dtype=dtype)
        self.weight = nn.Parameter(
            nn.init.trunc_normal_(weight, mean=0, std=std, a=-3 * std, b=3 * std)
        )

    def forward(self, x: Tensor) -> Tensor:  # (B, in)
        return x @ self.weight.T  # (B, out)
