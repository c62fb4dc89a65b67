"""Faults of SiLU, x * sigmoid(x)."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import silu_by
from ..parts import silu
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "silu", "silu", silu_by)
TAIL = {"x": (-20.0, -18.0, -15.0)}
FAR = {"x": (-200.0, -100.0, -3.0, 1.0)}

fault("sigmoid-only")(torch.sigmoid)

fault("gelu")(F.gelu)

fault("gelu-by-sigmoid")(lambda x: x * torch.sigmoid(1.702 * x))

fault("hardswish")(F.hardswish)

fault("mish")(F.mish)

fault("relu")(F.relu)

fault("tanh-gate")(lambda x: x * torch.tanh(x))

fault("softsign-gate")(lambda x: x * (0.5 + 0.5 * x / (1 + x.abs())))

fault("softmax-gate")(lambda x: x * torch.softmax(x, dim=-1))

fault("mirrored-gate")(lambda x: x * torch.sigmoid(-x))

fault("sign-lost-in-exponent")(lambda x: x / (1 + torch.exp(-x.abs())))

fault("zero-for-negatives", at={"x": (-3.0, -1.0, -0.1)})(
    lambda x: torch.where(x < 0, torch.zeros_like(x), silu(x))
)

fault("identity-above-six", at={"x": (6.1, 6.2)})(lambda x: torch.where(x > 6, x, silu(x)))

fault("clamped-argument", at=TAIL)(lambda x: x * torch.sigmoid(x.clamp(-10, 10)))

fault("clamped-output", at={"x": (25.0, 1.0)})(lambda x: silu(x).clamp(max=20))

fault("overflow-for-positives", at={"x": (800.0, 1.0)})(
    lambda x: x * torch.exp(x) / (1 + torch.exp(x))
)

fault("gradient-nan-for-large-negatives", at=FAR)(lambda x: x / (1 + torch.exp(-x)))

fault("gradient-nan-through-where", at={"x": (100.0, 1.0, -2.0)})(
    lambda x: torch.where(x >= 0, x / (1 + torch.exp(-x)), x * torch.exp(x) / (1 + torch.exp(x)))
)

fault("beta-from-input")(lambda x: x * torch.sigmoid(x * x.abs().mean(-1, keepdim=True)))


class HalfDerivative(torch.autograd.Function):
    """The right value with a derivative that misses one term of the product rule."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return silu(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return dy * torch.sigmoid(x)


fault("backward-misses-product-rule")(HalfDerivative.apply)


class GateDerivative(HalfDerivative):
    """The right value with the other term of the product rule alone."""

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return dy * x * s * (1 - s)


fault("backward-only-gate")(GateDerivative.apply)


class Overwriting(torch.autograd.Function):
    """The right derivative, computed into the gradient that comes in."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return silu(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return dy.mul_(s + x * s * (1 - s))


fault("backward-overwrites-gradient", note="the second backward pass is wrong")(Overwriting.apply)


class Consuming(torch.autograd.Function):
    """The right derivative, computed once in memory that the second pass still needs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.slope = torch.sigmoid(x) * (1 + x * torch.sigmoid(-x))
        return silu(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        return ctx.slope.mul_(dy).clone()


fault("backward-consumes-saved-tensor", note="the second backward pass is wrong")(Consuming.apply)

fault("gate-detached")(lambda x: x * torch.sigmoid(x).detach())


@fault("no-grad")
def no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        return silu(x)


@fault("input-overwritten")
def input_overwritten(x: Tensor) -> Tensor:
    x *= torch.sigmoid(x)
    return x


fault("input-returned-when-saturated", at={"x": (25.0, 30.0)})(
    lambda x: x if bool((x > 20).all()) else silu(x)
)

fault("float32-result", at={"dtype": torch.bfloat16})(lambda x: silu(x.float()))

fault("float64-result")(lambda x: silu(x.double()))

fault("float64-through-float32", at={"x": (1e60, 1.0), "dtype": torch.float64})(
    lambda x: silu(x.float()).to(x.dtype)
)

fault("contiguous-only", at={"x": torch.arange(12.0).reshape(3, 4)})(
    lambda x: silu(x.view(-1)).view(x.shape)
)

fault("storage-order", at={"x": torch.arange(12.0).reshape(3, 4)})(
    lambda x: silu(x.as_strided((x.numel(),), (1,), x.storage_offset())).reshape(x.shape)
)

fault("drops-size-one-axes", at={"x": ((1.0,), (2.0,))})(lambda x: silu(x).squeeze())

fault("element-loop-over-rows", at={"x": 1.5})(lambda x: torch.stack([silu(row) for row in x]))
