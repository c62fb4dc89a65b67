"""Root mean square normalisation."""

import torch
from torch import Tensor, nn

from .precision import at_least_float32


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * g (Zhang and Sennrich 2019, eq. 4).

    `eps` stands inside the root: it bounds the gain of rows near zero by 1 / sqrt(eps).
    """

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-5,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:  # (B, D)
        wide = at_least_float32(x)  # squares overflow float16 from 256 on
        rms = torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps)  # (B, 1)
        return (wide / rms * self.weight).to(x.dtype)  # (B, D)
