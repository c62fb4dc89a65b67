"""Faults of softmax along one axis."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import softmax_by
from ..parts import softmax, wide
from ..witnesses import draw
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "softmax", "softmax", softmax_by)
LARGE = {"x": ((1000.0, 999.0, 998.0), (0.0, 1.0, 2.0))}
FAR_APART = {"x": ((1000.0, 999.0, 998.0), (-1000.0, -999.0, -998.0))}


def shifted(x: Tensor, dim: int, shift: Tensor) -> Tensor:
    """exp(x - shift) / sum."""
    e = torch.exp(x - shift)
    return e / e.sum(dim, keepdim=True)


fault("no-shift", at=LARGE)(lambda x, dim: shifted(x, dim, torch.zeros(())))

fault("global-maximum", at=FAR_APART)(lambda x, dim: shifted(x, dim, x.max()))

fault("mean-subtracted", at={"x": ((1000.0, 0.0, 0.0, 0.0),)})(
    lambda x, dim: shifted(x, dim, x.mean(dim, keepdim=True))
)

fault("minimum-subtracted", at={"x": ((2000.0, 0.0, 1.0),)})(
    lambda x, dim: shifted(x, dim, x.amin(dim, keepdim=True))
)

fault("largest-magnitude-subtracted", at={"x": ((-1000.0, -999.0, -998.0),)})(
    lambda x, dim: shifted(x, dim, x.abs().amax(dim, keepdim=True))
)

fault("only-positive-maximum", at={"x": ((-1000.0, -999.0, -998.0),)})(
    lambda x, dim: shifted(x, dim, x.amax(dim, keepdim=True).clamp(min=0))
)

fault("scores-clamped", at=LARGE)(lambda x, dim: softmax(x.clamp(-30, 30), dim))

fault("log-sum-exp-without-shift", at=LARGE)(
    lambda x, dim: torch.exp(x - torch.log(torch.exp(x).sum(dim, keepdim=True)))
)

fault("axis-ignored", at={"dim": 1})(lambda x, dim: softmax(x, -1))

fault("axis-counted-from-zero")(lambda x, dim: softmax(x, 1))

fault("reshaped-to-rows", at={"dim": 1})(
    lambda x, dim: softmax(x.reshape(-1, x.shape[dim]), -1).reshape(x.shape)
)

fault("axis-not-moved-back", at={"dim": 0})(lambda x, dim: softmax(x.movedim(dim, -1), -1))

fault("axis-not-moved-back-cube", at={"x": draw(3, 3, 3), "dim": 0})(
    lambda x, dim: softmax(x.movedim(dim, -1), -1)
)

fault("maximum-restored-at-end", at={"dim": 1})(
    lambda x, dim: shifted(x, dim, x.amax(dim)[..., None])
)

fault("sum-restored-at-end", at={"x": draw(3, 3, 3), "dim": 0})(
    lambda x, dim: torch.exp(x) / torch.exp(x).sum(dim)[..., None]
)

fault("negative-axis-refused", at={"dim": -2})(
    lambda x, dim: softmax(x, list(range(x.ndim)).index(dim))
)

fault("three-axes-only", at={"x": (1.0, 2.0, 3.0)})(
    lambda x, dim: softmax(torch.einsum("bst->bst", x), dim)
)

fault("not-normalised")(lambda x, dim: torch.exp(x - x.amax(dim, keepdim=True)))

fault("normalised-over-everything")(lambda x, dim: softmax(x.reshape(-1), 0).reshape(x.shape))

fault("logarithm-left")(lambda x, dim: F.log_softmax(x, dim))

fault("base-two")(lambda x, dim: softmax(x * 0.6931471805599453, dim))

fault("share-of-sum")(lambda x, dim: x / x.sum(dim, keepdim=True))

fault("sigmoid")(lambda x, dim: torch.sigmoid(x))

fault("softmin")(lambda x, dim: softmax(-x, dim))

fault("one-hot")(lambda x, dim: (x == x.amax(dim, keepdim=True)).to(x.dtype))

fault("one-added-to-sum")(lambda x, dim: torch.exp(x) / (1 + torch.exp(x).sum(dim, keepdim=True)))

fault("scaled-by-root-size")(lambda x, dim: softmax(x / x.shape[dim] ** 0.5, dim))

fault("zeros-are-masked", at={"x": ((0.0, 1.0, 2.0), (0.0, -1.0, 0.5))})(
    lambda x, dim: softmax(x.masked_fill(x == 0, -torch.inf), dim)
)

fault("ties-to-first", at={"x": ((2.0, 2.0, 1.0),)})(
    lambda x, dim: softmax(
        x.masked_fill(
            (x == x.amax(dim, keepdim=True)) & ((x == x.amax(dim, keepdim=True)).cumsum(dim) > 1),
            -torch.inf,
        ),
        dim,
    )
)


@fault("low-precision-sum", at={"x": torch.zeros(1, 1024), "dtype": torch.bfloat16})
def low_precision_sum(x: Tensor, dim: int) -> Tensor:
    e = torch.exp(x - x.amax(dim, keepdim=True))
    total = torch.zeros_like(e.narrow(dim, 0, 1))
    for i in range(x.shape[dim]):
        total = total + e.narrow(dim, i, 1)
    return e / total


fault("half-inside", at={"x": ((20.003, 20.0, 10.0),)})(
    lambda x, dim: softmax(x.half(), dim).to(x.dtype)
)

fault("float32-result", at={"dtype": torch.bfloat16})(lambda x, dim: softmax(x.float(), dim))


@fault("input-overwritten")
def input_overwritten(x: Tensor, dim: int) -> Tensor:
    x -= x.amax(dim, keepdim=True)
    return softmax(x, dim)


def reused_buffer() -> Any:
    """Softmax into one buffer per shape."""
    buffers: dict[torch.Size, Tensor] = {}

    def f(x: Tensor, dim: int) -> Tensor:
        buffer = buffers.setdefault(x.shape, torch.empty_like(x, requires_grad=False))
        return buffer.detach().copy_(softmax(x, dim))

    return f


fault("output-buffer-reused", at=[{}, {"x": draw(2, 3, 4, seed=9)}])(reused_buffer())

fault("contiguous-only")(lambda x, dim: softmax(x.view(-1, x.shape[-1]).view(x.shape), dim))

fault("drops-size-one-axes", at={"x": draw(3, 1)})(lambda x, dim: softmax(x, dim).squeeze())

fault("sum-detached")(
    lambda x, dim: torch.exp(wide(x) - torch.logsumexp(wide(x), dim, keepdim=True).detach())
)


class DiagonalOnly(torch.autograd.Function):
    """The right value with the diagonal of the Jacobian alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        p = softmax(x, dim)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:
        (p,) = ctx.saved_tensors
        return dy * p * (1 - p), None


fault("backward-diagonal-only")(DiagonalOnly.apply)


class Consuming(DiagonalOnly):
    """The right derivative, computed in the memory of the saved probabilities."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        p = softmax(x, dim)
        ctx.p, ctx.dim = p.clone(), dim
        return p

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:
        inner = (dy * ctx.p).sum(ctx.dim, keepdim=True)
        return ctx.p.mul_(dy - inner).clone(), None


fault("backward-consumes-saved-tensor", note="the second backward pass is wrong")(Consuming.apply)

fault("gradient-nan-when-far-apart", at={"x": ((100.0, 0.0, 1.0),)})(
    lambda x, dim: (
        1 / torch.exp(x.movedim(dim, -1).unsqueeze(-2) - x.movedim(dim, -1).unsqueeze(-1)).sum(-1)
    ).movedim(-1, dim)
)
