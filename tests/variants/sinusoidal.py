"""The sinusoidal encoding, sine at even and cosine at odd features, written in different ways."""

import math

import torch
from torch import Tensor

from ..adapting import sinusoidal_by
from .catalogue import COURSES, LIBRARIES, NUMERICS, PRACTICE, TEXTBOOK, Entry, registrar

ENTRIES: list[Entry] = []
variant = registrar(ENTRIES, "sinusoidal", "sinusoidal", sinusoidal_by)


def inverse_powers(d: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """10000^(-2i/d)."""
    return 10000.0 ** (-torch.arange(0, d, 2, dtype=dtype) / d)


@variant("stacked", "Sines and cosines stacked, then flattened.", PRACTICE)
def stacked(d: int, positions: Tensor, limit: int) -> Tensor:
    angle = positions[..., None] * inverse_powers(d)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


@variant("sliced", "Assignment to even and odd features, frequencies by exp and log.", LIBRARIES)
def sliced(d: int, positions: Tensor, limit: int) -> Tensor:
    frequency = torch.exp(torch.arange(0, d, 2).float() * (-math.log(10000.0) / d))
    result = torch.zeros(*positions.shape, d)
    result[..., 0::2] = torch.sin(positions.unsqueeze(-1) * frequency)
    result[..., 1::2] = torch.cos(positions.unsqueeze(-1) * frequency)
    return result


@variant("table", "A table of all positions, then a lookup.", COURSES)
def table(d: int, positions: Tensor, limit: int) -> Tensor:
    angle = torch.outer(torch.arange(limit).float(), inverse_powers(d))
    rows = torch.zeros(limit, d)
    rows[:, 0::2] = angle.sin()
    rows[:, 1::2] = angle.cos()
    return rows[positions]


@variant("divided", "Position divided by a power of 10000, as printed.", TEXTBOOK)
def divided(d: int, positions: Tensor, limit: int) -> Tensor:
    columns = []
    for j in range(d):
        angle = positions.double() / 10000 ** (2 * (j // 2) / d)
        columns.append(torch.sin(angle) if j % 2 == 0 else torch.cos(angle))
    return torch.stack(columns, dim=-1).float()


@variant("complex", "Imaginary and real part of exp(i angle), in complex128.", NUMERICS)
def complex_exponential(d: int, positions: Tensor, limit: int) -> Tensor:
    z = torch.exp(1j * positions[..., None] * inverse_powers(d, torch.float64))
    return torch.stack((z.imag, z.real), dim=-1).flatten(-2).float()


@variant("shifted-phase", "The cosine as a sine a quarter turn on, in float64.", NUMERICS)
def shifted_phase(d: int, positions: Tensor, limit: int) -> Tensor:
    frequency = inverse_powers(d, torch.float64).repeat_interleave(2)
    phase = torch.tensor([0.0, math.pi / 2], dtype=torch.float64).repeat(d // 2)
    return torch.sin(positions[..., None] * frequency + phase).float()


@variant(
    "growing-cache", "A table per width that is rebuilt when a longer one is needed.", PRACTICE
)
def growing_cache(d: int, positions: Tensor, limit: int) -> Tensor:
    if d not in CACHE or len(CACHE[d]) < limit:
        angle = torch.arange(limit)[:, None] * inverse_powers(d, torch.float64)
        CACHE[d] = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()
    return CACHE[d][positions]


CACHE: dict[int, Tensor] = {}
