"""Linear, x W^T, written in different ways; all accept a bare vector and any leading axes."""

import einops
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..adapting import linear_by
from ..parts import wide
from .catalogue import COPIES, COURSES, NUMERICS, PRACTICE, TEXTBOOK, TORCH, Entry, registrar

ENTRIES: list[Entry] = []
variant = registrar(ENTRIES, "linear", "linear", linear_by)


@variant("matmul", "x @ W.T.", TEXTBOOK)
def matmul(x: Tensor, w: Tensor) -> Tensor:
    return x @ w.T


@variant("functional", "F.linear without bias.", TORCH)
def functional(x: Tensor, w: Tensor) -> Tensor:
    return F.linear(x, w)


@variant("einsum", "torch.einsum over the shared axis, any leading axes.", PRACTICE)
def einsum(x: Tensor, w: Tensor) -> Tensor:
    return torch.einsum("...i,oi->...o", x, w)


@variant("einops", "einops.einsum with named axes.", COURSES)
def einops_einsum(x: Tensor, w: Tensor) -> Tensor:
    return einops.einsum(x, w, "... d_in, d_out d_in -> ... d_out")


@variant("column-vector", "W times x as a column, then the column axis dropped.", TEXTBOOK)
def column_vector(x: Tensor, w: Tensor) -> Tensor:
    return (w @ x.unsqueeze(-1)).squeeze(-1)


@variant("flattened", "All leading axes flattened to one, torch.mm, shape restored.", PRACTICE)
def flattened(x: Tensor, w: Tensor) -> Tensor:
    return torch.mm(x.reshape(-1, x.shape[-1]), w.t()).reshape(*x.shape[:-1], w.shape[0])


@variant("tensordot", "torch.tensordot over the last axes.", PRACTICE)
def tensordot(x: Tensor, w: Tensor) -> Tensor:
    return torch.tensordot(x, w, dims=([-1], [1]))


@variant("broadcast-sum", "Elementwise products, summed over the shared axis.", TEXTBOOK)
def broadcast_sum(x: Tensor, w: Tensor) -> Tensor:
    products = wide(x).unsqueeze(-2) * wide(w)
    return products.sum(-1).to(x.dtype)


@variant("reversed-chunks", "Accumulates over chunks of the input axis, from the last.", NUMERICS)
def reversed_chunks(x: Tensor, w: Tensor) -> Tensor:
    pairs = list(zip(wide(x).split(3, dim=-1), wide(w).split(3, dim=-1), strict=True))
    total = torch.zeros(*x.shape[:-1], w.shape[0], dtype=pairs[0][0].dtype, device=x.device)
    for part, columns in reversed(pairs):
        total = total + part @ columns.T
    return total.to(x.dtype)


@variant("float64-inside", "Computes in float64 and rounds once.", NUMERICS)
def float64_inside(x: Tensor, w: Tensor) -> Tensor:
    return (x.double() @ w.double().T).to(x.dtype)


@variant("vmap", "One row at a time, vectorised by torch.vmap.", PRACTICE)
def mapped(x: Tensor, w: Tensor) -> Tensor:
    rows = torch.vmap(lambda row: w @ row)(x.reshape(-1, x.shape[-1]))
    return rows.reshape(*x.shape[:-1], w.shape[0])


class Linear(nn.Module):
    """A linear layer with its own float32 parameter."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_out, d_in))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.T


@variant("module", "A float32 module filled by load_state_dict.", COURSES, "must-only", COPIES)
def module(x: Tensor, w: Tensor) -> Tensor:
    layer = Linear(w.shape[1], w.shape[0])
    layer.load_state_dict({"weight": w})
    return layer(x)


@variant("module-data", "A float32 nn.Linear filled by .data.copy_.", COURSES, "must-only", COPIES)
def module_data(x: Tensor, w: Tensor) -> Tensor:
    layer = nn.Linear(w.shape[1], w.shape[0], bias=False)
    layer.weight.data.copy_(w)
    return layer(x)


@variant(
    "module-replaced",
    "A module whose parameter is replaced by a new one.",
    COURSES,
    "must-only",
    COPIES,
)
def module_replaced(x: Tensor, w: Tensor) -> Tensor:
    layer = Linear(w.shape[1], w.shape[0])
    layer.weight = nn.Parameter(w)
    return layer(x)
