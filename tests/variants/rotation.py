"""The rotation matrix [[cos, -sin], [sin, cos]], written in different ways."""

import math

import torch
from torch import Tensor

from ..adapting import rotation_by
from ..parts import wide
from .catalogue import NUMERICS, PRACTICE, TEXTBOOK, Entry, registrar

ENTRIES: list[Entry] = []
variant = registrar(ENTRIES, "rotation", "rotation", rotation_by)


@variant("stacked-rows", "Two rows, stacked.", TEXTBOOK)
def stacked_rows(t: Tensor) -> Tensor:
    c, s = torch.cos(t), torch.sin(t)
    return torch.stack((torch.stack((c, -s), -1), torch.stack((s, c), -1)), -2)


@variant("filled", "An empty tensor whose four entries are assigned.", PRACTICE)
def filled(t: Tensor) -> Tensor:
    result = torch.empty(*t.shape, 2, 2, dtype=t.dtype, device=t.device)
    result[..., 0, 0] = t.cos()
    result[..., 0, 1] = -t.sin()
    result[..., 1, 0] = t.sin()
    result[..., 1, 1] = t.cos()
    return result


@variant("complex", "1 and i turned by exp(i t), as columns.", NUMERICS)
def complex_columns(t: Tensor) -> Tensor:
    y = wide(t)
    z = torch.polar(torch.ones_like(y), y)
    return torch.view_as_real(torch.stack((z, 1j * z), dim=-1)).mT.to(t.dtype)


@variant("basis", "cos times identity plus sin times the quarter turn, by einsum.", TEXTBOOK)
def basis(t: Tensor) -> Tensor:
    matrices = torch.tensor([[[1, 0], [0, 1]], [[0, -1], [1, 0]]], dtype=t.dtype, device=t.device)
    return torch.einsum("...n,nij->...ij", torch.stack((t.cos(), t.sin()), -1), matrices)


@variant("flattened", "Four columns for flat angles, reshaped at the end.", PRACTICE)
def flattened(t: Tensor) -> Tensor:
    flat = t.reshape(-1)
    columns = (flat.cos(), -flat.sin(), flat.sin(), flat.cos())
    return torch.cat([c[:, None] for c in columns], dim=1).reshape(*t.shape, 2, 2)


@variant(
    "exponential",
    "The matrix exponential of the generator, in float64.",
    NUMERICS,
    "must-only",
    "float64 angles are reduced by a 2 pi that is itself rounded",
)
def exponential(t: Tensor) -> Tensor:
    y = torch.remainder(t.double(), 2 * math.pi)
    generator = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    return torch.linalg.matrix_exp((y[..., None, None] * generator).contiguous()).to(t.dtype)


@variant("vmap", "A scalar function, vectorised by torch.vmap.", PRACTICE)
def mapped(t: Tensor) -> Tensor:
    def one(a: Tensor) -> Tensor:
        return torch.stack((a.cos(), -a.sin(), a.sin(), a.cos())).reshape(2, 2)

    return torch.vmap(one)(t.reshape(-1)).reshape(*t.shape, 2, 2)
