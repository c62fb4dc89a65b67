"""Inputs on which mistakes in the sinusoidal encoding show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.sinusoidal.oracle import sinusoidal
from conformance.numerics.draw import Draw
from conformance.suite.case import Case
from conformance.suite.component import Component

Build = Callable[[Draw], dict[str, Any]]


def arguments(positions: Any, d_model: int = 8, max_seq_len: int = 50) -> dict[str, Any]:
    """Arguments of `run_sinusoidal` for positions of any shape."""
    return {
        "d_model": d_model,
        "max_seq_len": max_seq_len,
        "token_positions": np.asarray(positions, dtype=np.int64),
    }


def _at(positions: Any, d_model: int = 8, max_seq_len: int = 50) -> Build:
    return lambda draw: arguments(positions, d_model, max_seq_len)


def _anywhere(*shape: int, d_model: int = 8, max_seq_len: int = 50, whole: bool = False) -> Build:
    """Different positions in random order; the last of the table for `whole` only."""

    def build(draw: Draw) -> dict[str, Any]:
        below = max_seq_len if whole else max_seq_len - 1
        where = draw.permutation(below)[: int(np.prod(shape))].reshape(shape)
        return arguments(where, d_model, max_seq_len)

    return build


def _int32(draw: Draw) -> dict[str, Any]:
    built = _anywhere(5)(draw)
    return {**built, "token_positions": built["token_positions"].astype(np.int32)}


FAR = (255, 256, 257, 1023, 2049, 4095, 4096)

VALUES = (
    Case(
        "ordinary",
        "SINUSOIDAL-DEFINITION",
        "scattered positions at a small width",
        _anywhere(7),
        flags=("ordinary",),
    ),
    Case(
        "wide",
        "SINUSOIDAL-DEFINITION",
        "a usual width, 64, with 32 different frequencies",
        _anywhere(4, d_model=64),
        flags=("ordinary",),
    ),
    Case(
        "one-pair",
        "SINUSOIDAL-INTERLEAVED",
        "d_model = 2: sine and cosine of the position itself",
        _at((1, 2, 3, 6), d_model=2),
        flags=("ordinary",),
    ),
    Case(
        "two-pairs",
        "SINUSOIDAL-INTERLEAVED",
        "d_model = 4: all sines first, or cosines first, show at once",
        _at((1, 5, 40), d_model=4),
        flags=("ordinary",),
    ),
    Case(
        "frequencies-16",
        "SINUSOIDAL-FREQUENCIES",
        "all eight frequencies at positions 1, 2 and 9",
        _at((1, 2, 9), d_model=16),
        flags=("frequencies",),
    ),
    Case(
        "frequencies-10",
        "SINUSOIDAL-FREQUENCIES",
        "a width that is no power of two, so that the exponents are no round numbers",
        _at((1, 7), d_model=10),
        flags=("frequencies",),
    ),
    Case(
        "position-zero",
        "SINUSOIDAL-POSITION-ZERO",
        "position 0 between others",
        _at((3, 0, 1, 0), d_model=6),
        flags=("position-zero",),
    ),
)

POSITIONS = (
    Case(
        "scattered",
        "SINUSOIDAL-POSITIONS",
        "positions in random order: place in the sequence and position differ",
        _anywhere(9, d_model=6),
        flags=("positions",),
    ),
    Case(
        "repeated",
        "SINUSOIDAL-POSITIONS",
        "the same position several times, and falling ones",
        _at((5, 5, 0, 9, 8, 7, 5)),
        flags=("positions",),
    ),
    Case(
        "gaps",
        "SINUSOIDAL-POSITIONS",
        "a late start and far neighbours: counting on from the first shows",
        _at((17, 18, 40, 41)),
        flags=("positions",),
    ),
    Case(
        "in-order",
        "SINUSOIDAL-FRESH-RESULT",
        "neighbours in rising order: a slice of a kept table would do, and would share its memory",
        _at((4, 5, 6)),
        flags=("positions",),
    ),
    Case(
        "last-position",
        "SINUSOIDAL-TABLE-END",
        "the last position of a table of odd length, max_seq_len - 1",
        _at((32, 0, 31), max_seq_len=33),
        flags=("table-end",),
    ),
    Case(
        "whole-table",
        "SINUSOIDAL-TABLE-END",
        "as many positions as the table has, in another order",
        _anywhere(7, d_model=6, max_seq_len=7, whole=True),
        flags=("table-end",),
    ),
    Case(
        "long-table",
        "SINUSOIDAL-TABLE-END",
        "three positions of a table of a thousand, among them its last",
        _at((999, 2, 500), max_seq_len=1000),
        flags=("table-end",),
    ),
    Case(
        "far",
        "SINUSOIDAL-FAR-POSITIONS",
        "positions around 256, 2048 and 4096, where 16-bit integers are no longer exact",
        _at(FAR, d_model=16, max_seq_len=4098),
        flags=("far-positions",),
    ),
)

SHAPES = (
    *(
        Case(
            f"shape-{'x'.join(map(str, shape))}",
            "SINUSOIDAL-SHAPES",
            why,
            _anywhere(*shape, d_model=d_model),
            flags=("shapes",),
        )
        for shape, d_model, why in (
            ((1,), 6, "a single position in a sequence of one"),
            ((3, 5), 6, "a batch of sequences, other positions in each"),
            ((1, 5), 6, "a batch of one"),
            ((5, 1), 6, "sequences of one"),
            ((2, 3, 4), 6, "three axes"),
            ((2, 1, 3, 2), 6, "four axes"),
            ((4, 4), 4, "batch, sequence and width are all 4"),
        )
    ),
    Case(
        "no-axis",
        "SINUSOIDAL-ONE-OR-NONE",
        "one position, without any axis",
        _at(7, d_model=6),
        golden=False,
    ),
    Case("none", "SINUSOIDAL-ONE-OR-NONE", "an empty sequence", _at(np.zeros(0)), golden=False),
)

TABLES = tuple(
    Case(f"table-{name}", "SINUSOIDAL-NO-STATE", why, build, flags=("several-tables",))
    for name, why, build in (
        ("first", "what the others are asked after", _at((3, 0, 14), max_seq_len=16)),
        ("longer", "the same width, further positions", _at((3, 0, 38), max_seq_len=40)),
        ("wider", "another width, the same length", _at((3, 0, 14), d_model=12, max_seq_len=16)),
        ("other-positions", "the same sizes, other positions", _at((9, 4, 2), max_seq_len=16)),
    )
)

OPEN = (
    Case("int32", "SINUSOIDAL-INT32-POSITIONS", "positions as int32", _int32, golden=False),
    Case("odd", "SINUSOIDAL-ODD-WIDTH", "width 5", _at((0, 3), d_model=5), golden=False),
    Case(
        "beyond",
        "SINUSOIDAL-BEYOND-TABLE",
        "positions 8 and 12 of a table of 8",
        _at((7, 8, 12), max_seq_len=8),
        golden=False,
    ),
)

COMPONENT = Component(
    name="sinusoidal",
    oracle=sinusoidal,
    cases=(*VALUES, *POSITIONS, *SHAPES, *TABLES, *OPEN),
    pooled=(),
)
