"""SiLU, x * sigmoid(x), written in different ways, without overflow in value or gradient."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..adapting import silu_by
from ..parts import wide
from .catalogue import COURSES, NUMERICS, PRACTICE, TEXTBOOK, TORCH, Entry, registrar

ENTRIES: list[Entry] = []
variant = registrar(ENTRIES, "silu", "silu", silu_by)


@variant("sigmoid", "x * torch.sigmoid(x).", TEXTBOOK)
def with_sigmoid(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


@variant("functional", "F.silu.", TORCH)
def functional(x: Tensor) -> Tensor:
    return F.silu(x)


@variant("module", "An nn.Module without parameters around x.sigmoid().", COURSES)
def module(x: Tensor) -> Tensor:
    class SiLU(nn.Module):
        def forward(self, t: Tensor) -> Tensor:
            return t.sigmoid().mul(t)

    return SiLU()(x)


@variant(
    "stable-division", "x / (1 + exp(-x)) in the form whose exponent is never positive.", NUMERICS
)
def stable_division(x: Tensor) -> Tensor:
    y = wide(x)
    e = torch.exp(-y.abs())
    return (torch.where(y >= 0, y, y * e) / (1 + e)).to(x.dtype)


@variant("safe-where", "Two branches, each fed only arguments that it can take.", NUMERICS)
def safe_where(x: Tensor) -> Tensor:
    y = wide(x)
    positive = y > 0
    above = y.clamp(min=0)
    below = y.clamp(max=0)
    right = above / (1 + torch.exp(-above))
    left = below * torch.exp(below) / (1 + torch.exp(below))
    return torch.where(positive, right, left).to(x.dtype)


@variant("expit", "x * torch.special.expit(x), in float64.", NUMERICS)
def expit(x: Tensor) -> Tensor:
    y = x.double()
    return (y * torch.special.expit(y)).to(x.dtype)


@variant("float32-inside", "Half precision through float32, rounded once.", PRACTICE)
def rounded_once(x: Tensor) -> Tensor:
    y = wide(x)
    return (y * y.sigmoid()).to(x.dtype)


@variant("softmax-of-two", "The sigmoid as the first of softmax([x, 0]).", TEXTBOOK)
def softmax_of_two(x: Tensor) -> Tensor:
    y = wide(x)
    gate = torch.softmax(torch.stack((y, torch.zeros_like(y)), dim=-1), dim=-1)[..., 0]
    return (y * gate).to(x.dtype)


class OwnBackward(torch.autograd.Function):
    """x s with the derivative s + x s (1 - s)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return dy * (s + x * s * torch.sigmoid(-x))


@variant("own-backward", "A custom autograd function with the derivative by hand.", PRACTICE)
def own_backward(x: Tensor) -> Tensor:
    return OwnBackward.apply(x)


@variant("vmap", "A scalar function, vectorised by torch.vmap.", PRACTICE)
def mapped(x: Tensor) -> Tensor:
    return torch.vmap(lambda t: t * torch.sigmoid(t))(x.reshape(-1)).reshape(x.shape)


@variant(
    "tanh",
    "x/2 * (1 + tanh(x/2)).",
    TEXTBOOK,
    "open",
    "1 + tanh cancels for negative x: the error is |x| roundoffs, the value far smaller",
)
def with_tanh(x: Tensor) -> Tensor:
    y = wide(x)
    return (0.5 * y * (1 + torch.tanh(0.5 * y))).to(x.dtype)


@variant(
    "logsigmoid",
    "x * exp(logsigmoid(x)).",
    NUMERICS,
    "open",
    "the exponent's rounding makes a relative error of |x| roundoffs for negative x",
)
def with_logsigmoid(x: Tensor) -> Tensor:
    y = wide(x)
    return (y * torch.exp(F.logsigmoid(y))).to(x.dtype)
