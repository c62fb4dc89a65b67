"""Inputs on which mistakes in rotary embedding show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from conformance.components.rope.oracle import rope
from conformance.numerics.draw import Draw
from conformance.suite.case import Case
from conformance.suite.component import Component

Build = Callable[[Draw], dict[str, Any]]
HALVES = ("bfloat16", "float16")


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


def _at(
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


def _anywhere(
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


def _unit_rows(draw: Draw) -> dict[str, Any]:
    """The rows of the identity, all at one position."""
    return arguments(np.eye(8)[None], [3] * 8, 7.0, 20)


def _unit_pair(draw: Draw) -> dict[str, Any]:
    """(1, 0) and (0, 1) in the first eighth, quarter, half and whole turn."""
    rows = np.tile(np.eye(2), (4, 1))
    return arguments(rows[None], [1, 1, 2, 2, 3, 3, 6, 6], 10000.0, 9)


def _all_frequencies(d_k: int, theta: float, where: Sequence[int]) -> Build:
    """(1, 0) in every pair: the result is the cosine and sine of every angle."""

    def build(draw: Draw) -> dict[str, Any]:
        x = np.broadcast_to(np.tile([1.0, 0.0], d_k // 2), (1, len(where), d_k))
        return arguments(np.ascontiguousarray(x), where, theta, max(where) + 3)

    return build


def _empty(draw: Draw) -> dict[str, Any]:
    return arguments(np.zeros((0, 3, 4)), [4, 0, 9])


def _int32(draw: Draw) -> dict[str, Any]:
    built = _anywhere(2, 5, 6)(draw)
    return {**built, "token_positions": built["token_positions"].astype(np.int32)}


def _beyond(draw: Draw) -> dict[str, Any]:
    return arguments(draw.normal(1, 3, 4), [7, 8, 12], max_seq_len=8)


FAR = (255, 256, 257, 1023, 2049, 4095, 4096)
X = ("in_query_or_key",)

VALUES = (
    Case(
        "ordinary",
        "ROPE-DEFINITION",
        "rows of order one at scattered positions",
        _anywhere(2, 5, 8),
        flags=("ordinary",),
    ),
    Case(
        "wide",
        "ROPE-DEFINITION",
        "the usual width 64 and base 10000, with 32 different angles",
        _anywhere(2, 3, 64, theta=10000.0, max_seq_len=40),
        flags=("ordinary",),
    ),
    Case(
        "unit-rows",
        "ROPE-PAIRS",
        "each feature by itself: shows with which other one it is paired, all others stay 0",
        _unit_rows,
        flags=("unit-rows",),
    ),
    Case(
        "unit-pair",
        "ROPE-DIRECTION",
        "(1, 0) and (0, 1) turned by 1, 2, 3 and 6 radians: the sign of the sine decides",
        _unit_pair,
        flags=("unit-rows",),
    ),
    Case(
        "frequencies-16",
        "ROPE-FREQUENCIES",
        "cosine and sine of all eight angles at positions 1, 2 and 9",
        _all_frequencies(16, 10000.0, (1, 2, 9)),
        flags=("frequencies",),
    ),
    Case(
        "frequencies-10",
        "ROPE-FREQUENCIES",
        "a width that is no power of two, so that the exponents are no round numbers",
        _all_frequencies(10, 100.0, (1, 5)),
        flags=("frequencies",),
    ),
)

THETA = tuple(
    Case(
        f"theta-{name}",
        "ROPE-THETA",
        f"base {theta:g} ({why})",
        _anywhere(2, 4, 8, theta=theta),
        flags=("theta",),
    )
    for name, theta, why in (
        ("100", 100.0, "every pair turns visibly"),
        ("10000", 10000.0, "the usual base"),
        ("500000", 500000.0, "the base of long-context models: the last pairs hardly turn"),
        ("one-and-a-half", 1.5, "all pairs turn at nearly the same speed"),
    )
)

POSITIONS = (
    Case(
        "scattered",
        "ROPE-POSITIONS",
        "positions in random order: place in the sequence and position differ everywhere",
        _anywhere(2, 7, 6),
        flags=("positions",),
    ),
    Case(
        "repeated",
        "ROPE-POSITIONS",
        "the same position several times",
        _at((5, 5, 0, 5, 2, 2)),
        flags=("positions",),
    ),
    Case(
        "descending",
        "ROPE-POSITIONS",
        "positions that fall: sorting them shows",
        _at((9, 8, 7, 6, 5)),
        flags=("positions",),
    ),
    Case(
        "gaps",
        "ROPE-POSITIONS",
        "neighbours that are far apart: counting on from the first shows",
        _at((0, 1, 30, 31, 60)),
        flags=("positions",),
    ),
    Case(
        "continued",
        "ROPE-POSITIONS",
        "a run that starts late, as in decoding after a prompt",
        _at((17, 18, 19, 20)),
        flags=("positions",),
    ),
)

PER_ROW = (
    Case(
        "one-for-all",
        "ROPE-POSITIONS-PER-ROW",
        "positions (seq,) for a batch of several heads",
        _anywhere(3, 2, 5, 4),
        flags=("positions-per-row",),
    ),
    Case(
        "one-row",
        "ROPE-POSITIONS-PER-ROW",
        "positions (1, seq) for three sequences",
        _anywhere(3, 5, 4, positions=(1, 5)),
        flags=("positions-per-row",),
    ),
    Case(
        "one-row-with-heads",
        "ROPE-POSITIONS-PER-ROW",
        "positions (1, seq) for a batch of several heads",
        _anywhere(3, 2, 5, 4, positions=(1, 5)),
        flags=("positions-per-row",),
    ),
    Case(
        "row-by-row",
        "ROPE-POSITIONS-PER-ROW",
        "positions (batch, seq), other ones in every sequence",
        _anywhere(3, 5, 4, positions=(3, 5)),
        flags=("positions-per-row",),
    ),
    Case(
        "row-by-row-with-heads",
        "ROPE-POSITIONS-PER-ROW",
        "positions (batch, 1, seq), the same for the heads of one sequence; batch is not heads",
        _anywhere(2, 3, 5, 4, positions=(2, 1, 5)),
        flags=("positions-per-row",),
    ),
    Case(
        "batch-equals-heads",
        "ROPE-POSITIONS-PER-ROW",
        "as many heads as sequences: positions spread over the heads do not show in the shape",
        _anywhere(3, 3, 5, 4, positions=(3, 1, 5)),
        flags=("positions-per-row", "coinciding-sizes"),
    ),
    Case(
        "one-head",
        "ROPE-POSITIONS-PER-ROW",
        "positions (batch, 1, seq) with a single head",
        _anywhere(3, 1, 4, 4, positions=(3, 1, 4)),
        flags=("positions-per-row", "coinciding-sizes"),
    ),
)

TABLE = (
    Case(
        "last-position",
        "ROPE-TABLE-END",
        "the last position of a table of odd length, max_seq_len - 1",
        _at((32, 0, 31), max_seq_len=33),
        flags=("table-end",),
    ),
    Case(
        "whole-table",
        "ROPE-TABLE-END",
        "as many rows as the table has, in another order",
        _anywhere(2, 7, 4, max_seq_len=7, whole=True),
        flags=("table-end",),
    ),
    Case(
        "short-sequence",
        "ROPE-TABLE-END",
        "three rows with a table of a thousand, among them its last",
        _at((999, 2, 500), max_seq_len=1000),
        flags=("table-end",),
    ),
    Case(
        "table-of-one",
        "ROPE-TABLE-END",
        "a table that holds position 0 only leaves the row alone",
        _at((0,), max_seq_len=1),
        flags=("table-end",),
    ),
    Case(
        "far",
        "ROPE-FAR-POSITIONS",
        "positions around 256, 2048 and 4096, where 16-bit integers are no longer exact",
        _at(FAR, d_k=16, lead=(1,), theta=10000.0, max_seq_len=4098),
        flags=("far-positions",),
    ),
    Case(
        "far-large-theta",
        "ROPE-FAR-POSITIONS",
        "the same with base 500000, whose slow pairs are only now turned visibly",
        _at(FAR, d_k=8, lead=(1,), theta=500000.0, max_seq_len=4100),
        flags=("far-positions", "theta"),
    ),
    Case(
        "position-zero",
        "ROPE-IDENTITY",
        "rows at position 0 between others: only these stay as they are",
        _at((0, 5, 0, 9), d_k=8),
        flags=("position-zero",),
    ),
)

AXES = (
    *(
        Case(
            f"axes-{len(lead)}",
            "ROPE-LEADING-AXES",
            f"{len(lead)} leading axes of lengths {lead}",
            _anywhere(*lead, 4, 6),
            flags=("leading-axes",),
        )
        for lead in ((3,), (2, 3), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))
    ),
    Case(
        "all-equal",
        "ROPE-SIZES",
        "batch, heads, sequence and width are all 4: a swapped axis shows in the values only",
        _anywhere(4, 4, 4, 4),
        flags=("coinciding-sizes",),
    ),
    Case(
        "all-equal-row-by-row",
        "ROPE-SIZES",
        "the same, with other positions in every sequence",
        _anywhere(4, 4, 4, 4, positions=(4, 1, 4)),
        flags=("coinciding-sizes", "positions-per-row"),
    ),
    Case(
        "one-token",
        "ROPE-SIZES",
        "a sequence of one row, as in decoding",
        _at((11,), lead=(2, 3)),
        flags=("coinciding-sizes",),
    ),
    Case(
        "one-of-each",
        "ROPE-SIZES",
        "every leading axis and the sequence have length one",
        _at((11,), lead=(1, 1)),
        flags=("coinciding-sizes",),
    ),
    Case(
        "one-pair",
        "ROPE-SIZES",
        "d_k = 2: a single pair that turns by one radian per position, whatever theta",
        _anywhere(3, 5, 2, theta=10000.0),
        flags=("coinciding-sizes",),
    ),
    Case(
        "one-sequence",
        "ROPE-ONE-SEQUENCE",
        "rows (seq, d_k) without any leading axis",
        _anywhere(5, 6),
        flags=("leading-axes",),
    ),
    Case("empty", "ROPE-EMPTY", "a batch of length zero", _empty, golden=False),
)

GRADIENT = (
    Case(
        "gradient",
        "ROPE-GRADIENT",
        "scattered positions shared by a batch of several heads",
        _anywhere(2, 3, 4, 6),
        flags=("gradient",),
        wrt=X,
    ),
    Case(
        "gradient-row-by-row",
        "ROPE-GRADIENT",
        "other positions in every sequence",
        _anywhere(3, 2, 4, 4, positions=(3, 1, 4)),
        flags=("gradient", "positions-per-row"),
        wrt=X,
    ),
    Case(
        "gradient-far",
        "ROPE-GRADIENT",
        "positions of some thousands, 0 among them",
        _at((4096, 0, 2049), d_k=8, theta=10000.0, max_seq_len=4098),
        flags=("gradient", "far-positions"),
        wrt=X,
    ),
)

DTYPES = (
    Case(
        "half",
        "ROPE-HALF-VALUES",
        "scattered positions: cosine and sine may be rounded, the angle may not",
        _anywhere(2, 5, 8),
        flags=("half",),
        dtypes=HALVES,
    ),
    Case(
        "half-far",
        "ROPE-HALF-VALUES",
        "positions above 256 and 2048: rounded to 16 bits they collapse onto each other",
        _at((301, 303, 2049, 3001, 4095), d_k=8, theta=10000.0, max_seq_len=4097),
        flags=("half", "far-positions"),
        dtypes=HALVES,
    ),
    Case(
        "half-heads",
        "ROPE-HALF",
        "a batch of several heads in 16 bits",
        _anywhere(2, 3, 4, 6),
        flags=("half",),
        dtypes=HALVES,
    ),
    Case(
        "double",
        "ROPE-FLOAT64",
        "float64 rows at positions up to 4095: float32 tables show",
        _at((0, 3, 301, 4095), d_k=8, theta=10000.0, max_seq_len=4097),
        dtypes=("float64",),
        golden=False,
    ),
)

TABLES = tuple(
    Case(
        f"table-{name}",
        "ROPE-NO-STATE",
        why,
        build,
        flags=("several-tables",),
    )
    for name, why, build in (
        ("first", "the table that the others are asked after", _at((3, 0, 14), max_seq_len=16)),
        (
            "other-theta",
            "the same width, positions and shape with another theta",
            _at((3, 0, 14), theta=10000.0, max_seq_len=16),
        ),
        ("longer", "the same width and theta, further positions", _at((3, 0, 38), max_seq_len=40)),
        (
            "other-width",
            "another width with the same theta and length",
            _at((3, 0, 14), d_k=10, max_seq_len=16),
        ),
    )
)

OPEN = (
    Case("int32", "ROPE-INT32-POSITIONS", "positions as int32", _int32, golden=False),
    Case(
        "beyond", "ROPE-BEYOND-TABLE", "positions 8 and 12 of a table of 8", _beyond, golden=False
    ),
)

COMPONENT = Component(
    name="rope",
    oracle=rope,
    cases=(
        *VALUES,
        *THETA,
        *POSITIONS,
        *PER_ROW,
        *TABLE,
        *AXES,
        *GRADIENT,
        *DTYPES,
        *TABLES,
        *OPEN,
    ),
    inputs=X,
    pooled=(),
)
