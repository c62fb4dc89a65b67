"""The next token's distribution: greedy, temperature, top-p, written in different ways.

All look at the last position only, take the first maximum on ties when greedy, and keep the
smallest set of most probable tokens (of equal ones the first) whose mass reaches top_p.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import next_token_by
from ..parts import wide
from .catalogue import COURSES, LIBRARIES, NUMERICS, TEXTBOOK, TORCH, Entry, registrar

ENTRIES: list[Entry] = []
variant = registrar(ENTRIES, "next_token", "next-token", next_token_by)


def tempered(logits: Tensor, temperature: float) -> Tensor:
    """Probabilities at the last position; one-hot at the first maximum for temperature 0."""
    last = wide(logits[..., -1, :])
    if temperature == 0:
        return F.one_hot(last.argmax(dim=-1), last.shape[-1]).to(last.dtype)
    return torch.softmax(last / temperature, dim=-1)


@variant("sorted-mass", "Sort, cumulative sum, cut, scatter back, renormalise.", TEXTBOOK)
def sorted_mass(logits: Tensor, temperature: float, top_p: float | None) -> Tensor:
    p = tempered(logits, temperature)
    if top_p is not None and top_p < 1:
        ranked, order = torch.sort(p, dim=-1, descending=True, stable=True)
        mass = torch.cumsum(ranked, dim=-1)
        drop = torch.zeros_like(mass, dtype=torch.bool)
        drop[..., 1:] = mass[..., :-1] >= top_p
        p = p.masked_fill(torch.zeros_like(drop).scatter(-1, order, drop), 0.0)
        p = p / p.sum(dim=-1, keepdim=True)
    return p.to(logits.dtype)


@variant("filtered-logits", "Dropped logits become -inf, softmax once more.", LIBRARIES)
def filtered_logits(logits: Tensor, temperature: float, top_p: float | None) -> Tensor:
    last = wide(logits[..., -1, :])
    if temperature == 0:
        return tempered(logits, 0).to(logits.dtype)
    scaled = last / temperature
    if top_p is not None and top_p < 1:
        order = scaled.argsort(dim=-1, descending=True, stable=True)
        mass = scaled.gather(-1, order).softmax(-1).cumsum(-1).roll(1, -1)
        mass[..., 0] = 0
        drop = (mass >= top_p).gather(-1, order.argsort(-1))
        scaled = scaled.masked_fill(drop, -math.inf)
    return F.softmax(scaled, dim=-1).to(logits.dtype)


@variant("row-loop", "One distribution after the other in plain Python.", TEXTBOOK)
def row_loop(logits: Tensor, temperature: float, top_p: float | None) -> Tensor:
    p = tempered(logits, temperature)
    if top_p is None or top_p >= 1:
        return p.to(logits.dtype)
    rows = p.reshape(-1, p.shape[-1])
    result = torch.zeros_like(rows)
    for number, row in enumerate(rows):
        kept, mass = torch.zeros_like(row), 0.0
        values = row.tolist()
        for i in sorted(range(len(values)), key=values.__getitem__, reverse=True):
            if mass >= top_p:
                break
            kept[i] = 1
            mass += values[i]
        result[number] = row * kept / (row * kept).sum()
    return result.reshape(p.shape).to(logits.dtype)


@variant(
    "mass-above", "Keeps a token when the mass of all that rank before it is below top_p.", NUMERICS
)
def mass_above(logits: Tensor, temperature: float, top_p: float | None) -> Tensor:
    p = tempered(logits, temperature)
    if top_p is not None and top_p < 1:
        mine, other = p.unsqueeze(-1), p.unsqueeze(-2)
        earlier = torch.ones(p.shape[-1], p.shape[-1], dtype=torch.bool).tril(-1)
        before = (other > mine) | ((other == mine) & earlier)
        p = p * ((other * before).sum(-1) < top_p)
        p = p / p.sum(-1, keepdim=True)
    return p.to(logits.dtype)


@variant("counted", "Counts how many ranked tokens are needed, keeps those ranks.", COURSES)
def counted(logits: Tensor, temperature: float, top_p: float | None) -> Tensor:
    p = tempered(logits, temperature)
    if top_p is not None and top_p < 1:
        ranked, order = p.sort(dim=-1, descending=True, stable=True)
        needed = (ranked.cumsum(-1) < top_p).sum(-1, keepdim=True) + 1
        rank = order.argsort(dim=-1)
        p = torch.where(rank < needed, p, 0.0)
        p = F.normalize(p, p=1, dim=-1)
    return p.to(logits.dtype)


@variant("float64-inside", "Softmax and cumulative sum in float64, rounded once.", NUMERICS)
def float64_inside(logits: Tensor, temperature: float, top_p: float | None) -> Tensor:
    return sorted_mass(logits.double(), temperature, top_p).to(logits.dtype)


@variant("flattened", "Rows flattened, F.softmax in place of an own one.", TORCH)
def flattened(logits: Tensor, temperature: float, top_p: float | None) -> Tensor:
    rows = logits.select(-2, -1).reshape(-1, 1, logits.shape[-1])
    result = filtered_logits(rows, temperature, top_p)
    return result.reshape(*logits.shape[:-2], logits.shape[-1])
