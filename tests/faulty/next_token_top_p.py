"""Faults of the next token's distribution: top-p, shapes, memory."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import next_token_by
from ..parts import next_token, nucleus, temper, wide
from ..witnesses import draw
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "next_token", "next-token", next_token_by)
COLD = {"temperature": 0.5}
CUT = {"top_p": 0.7}


def filtered(by: Any) -> Any:
    """by(probabilities, top_p) where a cut is asked for."""

    def f(x: Tensor, t: float, p: float | None) -> Tensor:
        q = temper(wide(x[..., -1, :]), t)
        return (q if p is None or p >= 1 else by(q, p)).to(x.dtype)

    return f


def ranked(p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities in descending order, where they come from, and the mass before each."""
    q, order = p.sort(dim=-1, descending=True, stable=True)
    return q, order, F.pad(q.cumsum(-1)[..., :-1], (1, 0))


def chosen(by: Any, again: bool = True) -> Any:
    """Keeps ranks where by(probabilities, mass before, top_p), renormalised or not."""

    def f(p: Tensor, top_p: float) -> Tensor:
        q, order, before = ranked(p)
        q = q * by(q, before, top_p)
        q = q / q.sum(-1, keepdim=True) if again else q
        return torch.zeros_like(p).scatter(-1, order, q)

    return filtered(f)


fault("top-p-ignored", at=CUT)(filtered(lambda q, p: q))

fault("top-p-without-crossing", at=CUT)(chosen(lambda q, before, p: before + q < p))

fault("top-p-without-crossing-keeps-first", at={"top_p": 0.9})(
    chosen(lambda q, before, p: (before + q < p) | (before == 0))
)

fault("top-p-one-too-many", at=CUT)(
    chosen(lambda q, before, p: F.pad(before[..., :-1], (1, 0)) < p)
)

fault("top-p-not-renormalised", at=CUT)(chosen(lambda q, before, p: before < p, again=False))

fault("top-p-as-least-probability", at={"top_p": 0.95})(
    chosen(lambda q, before, p: (q >= 1 - p) | (before == 0))
)

fault("top-p-as-complement", at={"top_p": 0.9})(chosen(lambda q, before, p: before < 1 - p))

fault("top-p-as-count", at={"top_p": 0.5})(
    chosen(lambda q, before, p: torch.arange(q.shape[-1]) < math.ceil(p * q.shape[-1]))
)


@fault("top-p-of-logits", at={"logits": ((0.9, 0.8, 0.7, 0.6),), "top_p": 0.9})
def top_p_of_logits(x: Tensor, t: float, p: float | None) -> Tensor:
    if p is None or p >= 1:
        return next_token(x, t, None)
    last = x[..., -1:, :]
    logits, order, before = ranked(last)
    dropped = torch.zeros_like(logits).scatter(-1, order, before) >= p
    return next_token(last.masked_fill(dropped, -math.inf), t)


fault("top-p-unsorted", at=CUT)(
    filtered(lambda q, p: F.normalize(q * (F.pad(q.cumsum(-1)[..., :-1], (1, 0)) < p), p=1, dim=-1))
)

fault("top-p-ascending", at=CUT)(
    filtered(
        lambda q, p: F.normalize(
            q
            * (
                torch.zeros_like(q).scatter(
                    -1, q.argsort(-1), F.pad(q.sort(-1).values.cumsum(-1)[..., :-1], (1, 0))
                )
                < p
            ),
            p=1,
            dim=-1,
        )
    )
)

fault("top-p-left-sorted", at=CUT)(
    filtered(lambda q, p: nucleus(q, p).sort(-1, descending=True).values)
)

fault("top-p-scattered-backwards", at=CUT)(
    filtered(lambda q, p: nucleus(q, p).sort(-1, descending=True).values.gather(-1, ranked(q)[1]))
)

fault("top-p-of-first-row", at=CUT)(
    filtered(
        lambda q, p: F.normalize(q * (nucleus(q, p).reshape(-1, q.shape[-1])[0] > 0), p=1, dim=-1)
    )
)

fault("top-p-logits-set-to-zero", at=CUT)(
    lambda x, t, p: (
        next_token(x, t, p)
        if p is None or not t
        else temper(x[..., -1, :].masked_fill(next_token(x, t, p) == 0, 0.0), t)
    )
)

fault("top-p-required", at={"top_p": None})(
    lambda x, t, p: nucleus(temper(x[..., -1, :], t), p + 0.0)
)

fault("top-k-as-well", at={"logits": draw(2, 2, 80)})(
    lambda x, t, p: next_token(
        x[..., -1:, :].masked_fill(
            x[..., -1:, :] < x[..., -1:, :].topk(min(50, x.shape[-1])).values[..., -1:], -math.inf
        ),
        t,
        p,
    )
)

fault("end-token-suppressed")(
    lambda x, t, p: next_token(
        x.masked_fill(torch.arange(x.shape[-1]) == 0, torch.finfo(x.dtype).min), t, p
    )
)

fault("three-axes-only", at={"logits": draw(4, 9)})(
    lambda x, t, p: next_token(torch.einsum("bsv->bsv", x), t, p)
)

fault("drops-size-one-axes", at={"logits": draw(1, 4, 9)})(
    lambda x, t, p: next_token(x, t, p).squeeze()
)

fault("contiguous-only")(lambda x, t, p: next_token(x.view(-1).view(x.shape), t, p))


@fault("logits-overwritten", at=COLD)
def logits_overwritten(x: Tensor, t: float, p: float | None) -> Tensor:
    if t:
        x /= t
    return next_token(x, 1.0 if t else 0, p)


@fault("dropped-logits-overwritten", at=CUT)
def dropped_logits_overwritten(x: Tensor, t: float, p: float | None) -> Tensor:
    last = x[..., -1, :]
    last[next_token(x, t, p) == 0] = -math.inf
    return next_token(x, t, None)


fault("float32-result", at={"dtype": torch.bfloat16})(lambda x, t, p: next_token(x.float(), t, p))


@fault("rows-stacked", at={"logits": draw(0, 4, 9)})
def rows_stacked(x: Tensor, t: float, p: float | None) -> Tensor:
    rows = x.reshape(-1, *x.shape[-2:])
    return torch.stack([next_token(row, t, p) for row in rows]).reshape(*x.shape[:-2], -1)
