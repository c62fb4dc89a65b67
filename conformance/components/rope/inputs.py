"""How the inputs of rotary embedding's cases are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from conformance.numerics.draw import Draw

Build = Callable[[Draw], dict[str, Any]]


def arguments(
    x: Any, positions: Any, theta: float = 100.0, max_seq_len: int = 64
) -> dict[str, Any]:
    """Arguments of `run_rope` for rows x (..., seq, d_k)."""
    return {
        "d_k": x.shape[-1],
        "theta": theta,
        "max_seq_len": max_seq_len,
        "in_query_or_key": x,
        "token_positions": np.asarray(positions, dtype=np.int64),
    }


def scattered(draw: Draw, count: int, below: int) -> Any:
    """Different positions below `below`, in random order."""
    return draw.permutation(below)[:count]


def at(
    positions: Sequence[int],
    d_k: int = 6,
    lead: Sequence[int] = (2,),
    theta: float = 100.0,
    max_seq_len: int = 64,
) -> Build:
    """Random rows (*lead, seq, d_k) at fixed positions (seq,)."""

    def build(draw: Draw) -> dict[str, Any]:
        x = draw.normal(*lead, len(positions), d_k)
        return arguments(x, positions, theta, max_seq_len)

    return build


def anywhere(
    *shape: int,
    theta: float = 100.0,
    max_seq_len: int = 64,
    positions: Sequence[int] | None = None,
    whole: bool = False,
) -> Build:
    """Random rows of that shape at random positions, of shape (seq,) or `positions`.

    The last position of the table is among them for `whole` only: it has its own requirement.
    """

    def build(draw: Draw) -> dict[str, Any]:
        wanted = (shape[-2],) if positions is None else tuple(positions)
        below = max_seq_len if whole else max_seq_len - 1
        where = scattered(draw, int(np.prod(wanted)), below).reshape(wanted)
        return arguments(draw.normal(*shape), where, theta, max_seq_len)

    return build


def unit_rows(draw: Draw) -> dict[str, Any]:
    """The rows of the identity, all at one position."""
    return arguments(np.eye(8)[None], [3] * 8, 7.0, 20)


def unit_pair(draw: Draw) -> dict[str, Any]:
    """(1, 0) and (0, 1) in the first eighth, quarter, half and whole turn."""
    rows = np.tile(np.eye(2), (4, 1))
    return arguments(rows[None], [1, 1, 2, 2, 3, 3, 6, 6], 10000.0, 9)


def all_frequencies(d_k: int, theta: float, where: Sequence[int]) -> Build:
    """(1, 0) in every pair: the result is the cosine and sine of every angle."""

    def build(draw: Draw) -> dict[str, Any]:
        x = np.broadcast_to(np.tile([1.0, 0.0], d_k // 2), (1, len(where), d_k))
        return arguments(np.ascontiguousarray(x), where, theta, max(where) + 3)

    return build


def empty(draw: Draw) -> dict[str, Any]:
    return arguments(np.zeros((0, 3, 4)), [4, 0, 9])


def int32(draw: Draw) -> dict[str, Any]:
    built = anywhere(2, 5, 6)(draw)
    return {**built, "token_positions": built["token_positions"].astype(np.int32)}


def beyond(draw: Draw) -> dict[str, Any]:
    return arguments(draw.normal(1, 3, 4), [7, 8, 12], max_seq_len=8)
