"""Faults of RMSNorm, x / sqrt(mean(x^2) + eps) * g: what it computes."""

import torch
from torch import Tensor

from ..adapting import rmsnorm_by
from ..parts import rmsnorm, wide
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "rmsnorm", "rmsnorm", rmsnorm_by)
SMALL = {"scale": 1e-2, "eps": 1e-3}
TINY = {"scale": 1e-4, "eps": 1e-7}


def mean_square(x: Tensor) -> Tensor:
    """(..., d) -> (..., 1), at least in float32."""
    return wide(x).square().mean(-1, keepdim=True)


def divided(x: Tensor, g: Tensor, rms: Tensor) -> Tensor:
    """x / rms * g in x's dtype."""
    return (wide(x) / rms * g).to(x.dtype)


fault("eps-outside-root", at=SMALL)(lambda x, g, eps: divided(x, g, mean_square(x).sqrt() + eps))

fault("eps-ignored", at=SMALL)(lambda x, g, eps: divided(x, g, mean_square(x).sqrt()))

fault("eps-always-1e-5", at=SMALL)(lambda x, g, eps: rmsnorm(x, g, 1e-5))

fault("eps-always-1e-6", at=SMALL)(lambda x, g, eps: rmsnorm(x, g, 1e-6))

fault("eps-always-1e-8", at=SMALL)(lambda x, g, eps: rmsnorm(x, g, 1e-8))

fault("eps-squared", at=SMALL)(lambda x, g, eps: rmsnorm(x, g, eps**2))

fault("eps-as-lower-bound", at={"scale": 3e-2, "eps": 1e-3})(
    lambda x, g, eps: divided(x, g, mean_square(x).clamp(min=eps).sqrt())
)

fault("eps-added-to-result", at={"eps": 1e-2})(
    lambda x, g, eps: divided(x, g, mean_square(x).sqrt()) + eps
)

fault("eps-inside-mean", at=SMALL)(lambda x, g, eps: rmsnorm(x, g, eps / x.shape[-1]))

fault("eps-lost-in-half", at={"scale": 1e-4, "eps": 1e-8, "dtype": torch.float16})(
    lambda x, g, eps: divided(x, g, (mean_square(x).to(x.dtype) + eps).sqrt())
)

fault("normalised-twice", at=SMALL)(
    lambda x, g, eps: rmsnorm(rmsnorm(x, torch.ones_like(g), eps), g, eps)
)

fault("gain-ignored")(lambda x, g, eps: rmsnorm(x, torch.ones_like(g), eps))

fault("gain-added")(lambda x, g, eps: rmsnorm(x, torch.ones_like(g), eps) + g)

fault("gain-plus-one")(lambda x, g, eps: rmsnorm(x, 1 + g, eps))

fault("gain-before-statistics")(lambda x, g, eps: rmsnorm(x * g, torch.ones_like(g), eps))

fault("gain-first-element")(lambda x, g, eps: rmsnorm(x, g[:1], eps))

fault("gain-normalised", at={"weights": torch.linspace(1, 3, 8)})(
    lambda x, g, eps: rmsnorm(x, g / g.mean(), eps)
)

fault("gain-absolute", at={"weights": torch.linspace(-1, 1, 8)})(
    lambda x, g, eps: rmsnorm(x, g.abs(), eps)
)

fault("gain-along-sequence", at={"lead": (2, 8), "d": 8})(
    lambda x, g, eps: rmsnorm(x, torch.ones_like(g), eps) * g[:, None]
)

fault("layer-norm")(lambda x, g, eps: rmsnorm(x - x.mean(-1, keepdim=True), g, eps))

fault("variance-for-mean-square")(
    lambda x, g, eps: divided(x, g, (wide(x).var(-1, unbiased=False, keepdim=True) + eps).sqrt())
)

fault("unbiased-mean")(
    lambda x, g, eps: divided(x, g, (mean_square(x) * x.shape[-1] / (x.shape[-1] - 1) + eps).sqrt())
)

fault("sum-for-mean")(lambda x, g, eps: divided(x, g, (mean_square(x) * x.shape[-1] + eps).sqrt()))

fault("mean-magnitude")(lambda x, g, eps: divided(x, g, wide(x).abs().mean(-1, keepdim=True) + eps))

fault("root-missing")(lambda x, g, eps: divided(x, g, mean_square(x) + eps))

fault("first-half-statistics")(
    lambda x, g, eps: divided(x, g, (mean_square(x[..., : x.shape[-1] // 2]) + eps).sqrt())
)

fault("largest-magnitude")(
    lambda x, g, eps: divided(x, g, wide(x).abs().amax(-1, keepdim=True) + eps)
)

fault("statistics-along-sequence")(
    lambda x, g, eps: divided(x, g, (wide(x).square().mean(-2, keepdim=True) + eps).sqrt())
)

fault("statistics-over-sample")(
    lambda x, g, eps: divided(x, g, (wide(x).square().mean((-2, -1), keepdim=True) + eps).sqrt())
)

fault("statistics-over-everything")(
    lambda x, g, eps: divided(x, g, (wide(x).square().mean() + eps).sqrt())
)

fault("statistics-over-batch")(
    lambda x, g, eps: divided(x, g, (mean_square(x).mean(0, keepdim=True) + eps).sqrt())
)

fault("axis-two-always", at={"lead": (2, 3, 4)})(
    lambda x, g, eps: divided(x, g, (wide(x).square().mean(2, keepdim=True) + eps).sqrt())
)
