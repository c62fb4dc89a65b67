"""Softmax, SiLU and the gated units built on it."""

import torch
from torch import Tensor, nn

from .linear import Linear
from .precision import at_least_float32


def softmax(x: Tensor, dim: int) -> Tensor:
    """exp(x_i) / sum_j exp(x_j) along `dim` (CS336 assignment 1, eq. 10).

    A common shift cancels, so the largest entry is moved to 0: no exponential can overflow, and the
    sum is at least 1. A slice that holds nothing but -inf has no maximum to subtract and gives NaN.
    """
    if x.numel() == 0:
        return x.clone()  # nothing to sum to 1, and no maximum either
    wide = at_least_float32(x)
    shift = wide.amax(dim, keepdim=True).detach()  # it cancels, so no gradient flows through it
    exponentials = torch.exp(wide - shift)
    return (exponentials / exponentials.sum(dim, keepdim=True)).to(x.dtype)


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x) (Hendrycks and Gimpel 2016; Elfwing et al. 2017).

    Written as x / (1 + exp(-x)) the exponential would overflow for large negative x and turn the
    gradient into 0 * inf.
    """
    wide = at_least_float32(x)
    return (wide * torch.sigmoid(wide)).to(x.dtype)


def glu(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    """sigmoid(x W1^T) * (x W2^T), the gated linear unit (Dauphin et al. 2017, eq. 1).

    W1 makes the gate and W2 the values that pass through it; both are (d_ff, D).
    """
    return torch.sigmoid(x @ w1.T) * (x @ w2.T)  # (B, d_ff)


class SwiGLU(nn.Module):
    """W2(SiLU(W1 x) * W3 x), the feed-forward network (Shazeer 2020, eq. 6)."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.w1 = Linear(d_model, d_ff, device, dtype)  # gate
        self.w2 = Linear(d_ff, d_model, device, dtype)  # back to the model's width
        self.w3 = Linear(d_model, d_ff, device, dtype)  # values

    def forward(self, x: Tensor) -> Tensor:  # (B, D)
        hidden = silu(self.w1(x)) * self.w3(x)  # (B, d_ff)
        y: Tensor = self.w2(hidden)
        return y  # (B, D)
