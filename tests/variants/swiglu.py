"""SwiGLU, W2 (silu(W1 x) * W3 x), written in different ways."""

import einops
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..adapting import swiglu_by
from ..parts import wide
from .catalogue import (
    COPIES,
    COURSES,
    LIBRARIES,
    NUMERICS,
    PRACTICE,
    TEXTBOOK,
    TORCH,
    Entry,
    registrar,
)

ENTRIES: list[Entry] = []
variant = registrar(ENTRIES, "swiglu", "swiglu", swiglu_by)


@variant("textbook", "Three matmuls, SiLU as x * sigmoid(x).", TEXTBOOK)
def textbook(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    a = x @ w1.T
    return (a * torch.sigmoid(a) * (x @ w3.T)) @ w2.T


@variant("functional", "F.linear and F.silu.", TORCH)
def functional(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    return F.linear(F.silu(F.linear(x, w1)) * F.linear(x, w3), w2)


@variant("fused", "One projection for gate and value, then chunk.", LIBRARIES)
def fused(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    gate, value = F.linear(x, torch.cat((w1, w3))).chunk(2, dim=-1)
    return F.linear(F.silu(gate) * value, w2)


@variant("einsum", "einops.einsum throughout.", COURSES)
def einsum(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    a = einops.einsum(x, w1, "... d, f d -> ... f")
    b = einops.einsum(x, w3, "... d, f d -> ... f")
    return einops.einsum(a * a.sigmoid() * b, w2, "... f, d f -> ... d")


@variant("flattened", "All tokens as rows of one matrix.", PRACTICE)
def flattened(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    rows = x.reshape(-1, x.shape[-1])
    return (F.silu(rows.mm(w1.t())) * rows.mm(w3.t())).mm(w2.t()).reshape(x.shape)


@variant(
    "hidden-chunks", "Hidden features in chunks, partial results added up in reverse.", NUMERICS
)
def hidden_chunks(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    y = wide(x)
    parts = list(zip(w1.split(4), w2.split(4, dim=1), w3.split(4), strict=True))
    total = torch.zeros_like(y)
    for a, b, c in reversed(parts):
        total = total + (F.silu(y @ wide(a).T) * (y @ wide(c).T)) @ wide(b).T
    return total.to(x.dtype)


@variant("gate-last", "Multiplies by the sigmoid last.", PRACTICE)
def gate_last(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    a, b = x @ w1.T, x @ w3.T
    return (a * b * torch.sigmoid(a)) @ w2.T


@variant("vmap", "One token at a time, vectorised by torch.vmap.", PRACTICE)
def mapped(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    rows = torch.vmap(lambda t: w2 @ (F.silu(w1 @ t) * (w3 @ t)))(x.reshape(-1, x.shape[-1]))
    return rows.reshape(x.shape)


class SwiGLU(nn.Module):
    """The usual course module: three float32 linear layers."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(d_model, d_ff, bias=False)
        self.w2 = nn.Linear(d_ff, d_model, bias=False)
        self.w3 = nn.Linear(d_model, d_ff, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.w1(x)
        return self.w2(gate * torch.sigmoid(gate) * self.w3(x))


@variant("module", "A float32 module filled by load_state_dict.", COURSES, "must-only", COPIES)
def module(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    layer = SwiGLU(w1.shape[1], w1.shape[0])
    layer.load_state_dict({"w1.weight": w1, "w2.weight": w2, "w3.weight": w3})
    return layer(x)
