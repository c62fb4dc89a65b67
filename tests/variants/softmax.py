"""Softmax along one axis, written in different ways; all take any axis, from either end."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import softmax_by
from ..parts import wide
from .catalogue import COURSES, NUMERICS, PRACTICE, TEXTBOOK, TORCH, Entry, registrar

ENTRIES: list[Entry] = []
variant = registrar(ENTRIES, "softmax", "softmax", softmax_by)


@variant("shifted", "exp(x - max) / sum, in the input's own dtype.", TEXTBOOK)
def shifted(x: Tensor, dim: int) -> Tensor:
    e = torch.exp(x - x.max(dim=dim, keepdim=True).values)
    return e / e.sum(dim=dim, keepdim=True)


@variant("shift-detached", "The maximum is taken out of the graph: the shift cancels.", PRACTICE)
def shift_detached(x: Tensor, dim: int) -> Tensor:
    y = wide(x)
    e = (y - y.detach().amax(dim, keepdim=True)).exp()
    return (e * e.sum(dim, keepdim=True).reciprocal()).to(x.dtype)


@variant("log-sum-exp", "exp(x - logsumexp(x)).", NUMERICS)
def log_sum_exp(x: Tensor, dim: int) -> Tensor:
    y = wide(x)
    return torch.exp(y - torch.logsumexp(y, dim=dim, keepdim=True)).to(x.dtype)


@variant("log-softmax", "exp of F.log_softmax.", TORCH)
def log_softmax(x: Tensor, dim: int) -> Tensor:
    return F.log_softmax(wide(x), dim=dim).exp().to(x.dtype)


@variant("functional", "F.softmax.", TORCH)
def functional(x: Tensor, dim: int) -> Tensor:
    return F.softmax(x, dim=dim)


@variant("negated-softmin", "F.softmin of the negated input.", TORCH)
def softmin(x: Tensor, dim: int) -> Tensor:
    return F.softmin(-x, dim=dim)


@variant("exp2", "Powers of two: exp2((x - max) log2(e)).", NUMERICS)
def powers_of_two(x: Tensor, dim: int) -> Tensor:
    y = wide(x)
    e = torch.exp2((y - y.amax(dim, keepdim=True)) * math.log2(math.e))
    return (e / e.sum(dim, keepdim=True)).to(x.dtype)


@variant("float64-inside", "Computes in float64 and rounds once.", NUMERICS)
def float64_inside(x: Tensor, dim: int) -> Tensor:
    e = torch.exp(x.double() - x.double().amax(dim, keepdim=True))
    return (e / e.sum(dim, keepdim=True)).to(x.dtype)


@variant("online", "Running maximum and rescaled running sum over chunks.", NUMERICS)
def online(x: Tensor, dim: int) -> Tensor:
    y = wide(x)
    top = torch.full_like(y.narrow(dim, 0, 1), -math.inf).detach()
    total = torch.zeros_like(top)
    for part in y.split(2, dim=dim):
        new = torch.maximum(top, part.detach().amax(dim, keepdim=True))
        # Before the first finite entry there is nothing to rescale, and inf - inf is not a number.
        shift = torch.where(new.isinf(), torch.zeros_like(new), new)
        total = total * torch.exp(top - shift) + torch.exp(part - shift).sum(dim, keepdim=True)
        top = new
    return (torch.exp(y - top) / total).to(x.dtype)


@variant("moved-axis", "Moves the axis to the end and back, works on flat rows.", PRACTICE)
def moved_axis(x: Tensor, dim: int) -> Tensor:
    y = wide(x).movedim(dim, -1)
    rows = y.reshape(-1, y.shape[-1])
    e = torch.exp(rows - rows.amax(1, keepdim=True))
    return (e / e.sum(1, keepdim=True)).reshape(y.shape).movedim(-1, dim).to(x.dtype)


@variant("unsqueezed", "Reductions without keepdim, put back with unsqueeze(dim).", COURSES)
def unsqueezed(x: Tensor, dim: int) -> Tensor:
    largest = torch.max(x, dim=dim)[0].unsqueeze(dim)
    e = torch.exp(x - largest)
    return torch.div(e, torch.sum(e, dim=dim).unsqueeze(dim))


class OwnBackward(torch.autograd.Function):
    """Softmax with the derivative p (dy - sum(dy p))."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        e = torch.exp(x - x.amax(dim, keepdim=True))
        p = e / e.sum(dim, keepdim=True)
        ctx.save_for_backward(p)
        ctx.dim = dim
        return p

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:
        (p,) = ctx.saved_tensors
        return p * (dy - (dy * p).sum(ctx.dim, keepdim=True)), None


@variant("own-backward", "A custom autograd function with the derivative by hand.", PRACTICE)
def own_backward(x: Tensor, dim: int) -> Tensor:
    return OwnBackward.apply(wide(x), dim).to(x.dtype)
