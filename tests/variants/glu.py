"""GLU, sigmoid(x W1^T) * (x W2^T), written in different ways."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..adapting import glu_by
from ..parts import wide
from .catalogue import COPIES, COURSES, NUMERICS, PRACTICE, TEXTBOOK, TORCH, Entry, registrar

ENTRIES: list[Entry] = []
variant = registrar(ENTRIES, "glu", "glu", glu_by)


@variant("textbook", "Gate times value by matmul.", TEXTBOOK)
def textbook(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    return torch.sigmoid(x @ w1.T) * (x @ w2.T)


@variant("functional", "F.glu of one fused projection, value first.", TORCH)
def functional(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    return F.glu(F.linear(x, torch.cat((w2, w1))), dim=-1)


@variant("einsum", "Both projections in one einsum over stacked weights.", PRACTICE)
def einsum(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    both = torch.einsum("...d,nfd->...nf", x, torch.stack((w1, w2)))
    gate, value = both.unbind(dim=-2)
    return gate.sigmoid() * value


@variant("stable-division", "The sigmoid as a quotient whose exponent is never positive.", NUMERICS)
def stable_division(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    a, b = wide(x @ w1.T), wide(x @ w2.T)
    e = torch.exp(-a.abs())
    return (torch.where(a >= 0, torch.ones_like(e), e) / (1 + e) * b).to(x.dtype)


@variant("float32-inside", "Everything widened, rounded once.", PRACTICE)
def rounded_once(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    y = wide(x)
    return (torch.sigmoid(y @ wide(w1).T) * (y @ wide(w2).T)).to(x.dtype)


@variant("column-chunks", "Hidden features in chunks, concatenated.", PRACTICE)
def column_chunks(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    pairs = zip(w1.split(3), w2.split(3), strict=True)
    return torch.cat([torch.sigmoid(x @ a.T) * (x @ b.T) for a, b in pairs], dim=-1)


@variant("module", "Two float32 nn.Linear filled by .data.copy_.", COURSES, "must-only", COPIES)
def module(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    gate = nn.Linear(w1.shape[1], w1.shape[0], bias=False)
    value = nn.Linear(w2.shape[1], w2.shape[0], bias=False)
    gate.weight.data.copy_(w1)
    value.weight.data.copy_(w2)
    return torch.sigmoid(gate(x)) * value(x)
