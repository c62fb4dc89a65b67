"""Faults of multi-head self-attention with rope: which positions, which tables, which order."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..adapting import mha_rope_by
from ..parts import Attention, angles, causal, rope, self_attention, turn
from .catalogue import Entry, Function, registrar

ENTRIES: list[Entry] = []
turned = registrar(ENTRIES, "multihead_self_attention_with_rope", "mha-rope", mha_rope_by)
RIGHT = Attention()


def placed(place: Function) -> Attention:
    """Attention with place(positions, x) for the positions."""
    return replace(RIGHT, place=place)


def right_place(positions: Tensor | None, x: Tensor) -> Tensor:
    """The right positions."""
    return RIGHT.place(positions, x)


turned("positions-ignored")(placed(lambda p, x: torch.arange(x.shape[-2])))

turned("positions-clipped-to-length")(
    placed(lambda p, x: right_place(p, x).clamp(max=x.shape[-2] - 1))
)

turned("positions-sorted")(placed(lambda p, x: right_place(p, x).sort(-1).values))

turned("positions-of-first-row", at={"positions": ((3, 0, 7), (5, 19, 1))})(
    placed(lambda p, x: right_place(p, x).reshape(-1, x.shape[-2])[0])
)

turned("positions-meet-heads", at={"lead": (3,), "positions": ((3, 0, 7), (5, 19, 1), (2, 2, 4))})(
    placed(lambda p, x: p)
)

turned("positions-meet-heads-crash", at={"positions": ((3, 0, 7), (5, 19, 1))})(
    placed(
        lambda p, x: (
            right_place(p, x) if p is None else p + torch.zeros(len(x), 1, dtype=torch.long)
        )
    )
)

turned("default-positions-meet-heads", at={"positions": None})(
    placed(
        lambda p, x: torch.arange(x.shape[-2]).repeat(len(x), 1) if p is None else right_place(p, x)
    )
)

turned("positions-required", at={"positions": None})(placed(lambda p, x: right_place(p + 0, x)))


def looked_up(length: Function, shift: int = 0) -> Attention:
    """Attention with angles looked up in a table of length(t, limit) positions."""

    def rotate(t: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
        return turn(t, angles(torch.arange(length(t, limit)), t.shape[-1], theta)[p + shift])

    return replace(RIGHT, rotate_q=rotate, rotate_k=rotate)


turned("positions-from-one")(looked_up(lambda t, limit: limit, 1))

turned("table-one-short")(looked_up(lambda t, limit: limit - 1))

turned("table-of-sequence-length")(looked_up(lambda t, limit: t.shape[-2]))

turned("mask-of-full-length")(
    replace(RIGHT, mask=lambda n, limit: causal(n if limit is None else limit))
)


@turned("causal-by-position")
def causal_by_position(x: Tensor, w: Any, heads: int, p: Tensor | None, *more: Any) -> Tensor:
    where = right_place(p, x)
    own = replace(RIGHT, mask=lambda n, limit: where[..., None] >= where[..., None, :])
    return self_attention(x, w, heads, own, p, *more)


@turned("rotated-before-projection")
def rotated_before(
    x: Tensor, w: Any, heads: int, p: Tensor | None, theta: float, limit: int
) -> Tensor:
    where = torch.arange(x.shape[-2]) if p is None else p
    return self_attention(rope(x, where, theta), w, heads, RIGHT)


@turned("rotated-after-attention")
def rotated_after(
    x: Tensor, w: Any, heads: int, p: Tensor | None, theta: float, limit: int
) -> Tensor:
    where = torch.arange(x.shape[-2]) if p is None else p
    return self_attention(x, w, heads, replace(RIGHT, after=lambda y, _: rope(y, where, theta)))


turned("angles-in-bfloat16", at={"positions": (3, 1001, 1023, 3001), "limit": 4096})(
    placed(lambda p, x: right_place(p, x).bfloat16().long())
)


def first_table() -> Function:
    """Attention with the angles that the first call has made."""
    tables: dict[str, Tensor] = {}

    def rotate(t: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
        table = angles(torch.arange(limit), t.shape[-1], theta)
        return turn(t, tables.setdefault("", table)[p])

    own = replace(RIGHT, rotate_q=rotate, rotate_k=rotate)
    return lambda x, w, heads, *more: self_attention(x, w, heads, own, *more)


turned("first-table-kept", at=[{"theta": 500.0}, {"theta": 30.0}])(first_table())
