"""Inputs on which mistakes in rotary embedding show."""

from __future__ import annotations

from conformance.components.rope.inputs import (
    all_frequencies,
    anywhere,
    at,
    beyond,
    empty,
    int32,
    unit_pair,
    unit_rows,
)
from conformance.components.rope.oracle import rope
from conformance.suite.case import Case
from conformance.suite.component import Component

HALVES = ("bfloat16", "float16")
FAR = (255, 256, 257, 1023, 2049, 4095, 4096)
X = ("in_query_or_key",)

VALUES = (
    Case(
        "ordinary",
        "ROPE-DEFINITION",
        "rows of order one at scattered positions",
        anywhere(2, 5, 8),
        flags=("ordinary",),
    ),
    Case(
        "wide",
        "ROPE-DEFINITION",
        "the usual width 64 and base 10000, with 32 different angles",
        anywhere(2, 3, 64, theta=10000.0, max_seq_len=40),
        flags=("ordinary",),
    ),
    Case(
        "unit-rows",
        "ROPE-PAIRS",
        "each feature by itself: shows with which other one it is paired, all others stay 0",
        unit_rows,
        flags=("unit-rows",),
    ),
    Case(
        "unit-pair",
        "ROPE-DIRECTION",
        "(1, 0) and (0, 1) turned by 1, 2, 3 and 6 radians: the sign of the sine decides",
        unit_pair,
        flags=("unit-rows",),
    ),
    Case(
        "frequencies-16",
        "ROPE-FREQUENCIES",
        "cosine and sine of all eight angles at positions 1, 2 and 9",
        all_frequencies(16, 10000.0, (1, 2, 9)),
        flags=("frequencies",),
    ),
    Case(
        "frequencies-10",
        "ROPE-FREQUENCIES",
        "a width that is no power of two, so that the exponents are no round numbers",
        all_frequencies(10, 100.0, (1, 5)),
        flags=("frequencies",),
    ),
)

THETA = tuple(
    Case(
        f"theta-{name}",
        "ROPE-THETA",
        f"base {theta:g} ({why})",
        anywhere(2, 4, 8, theta=theta),
        flags=("theta",),
    )
    for name, theta, why in (
        ("100", 100.0, "every pair turns visibly"),
        ("10000", 10000.0, "the usual base"),
        ("500000", 500000.0, "the base of long-context models: the last pairs hardly turn"),
        ("10000000", 1e7, "the base of models with a context of a million"),
        ("one-and-a-half", 1.5, "all pairs turn at nearly the same speed"),
    )
)

POSITIONS = (
    Case(
        "scattered",
        "ROPE-POSITIONS",
        "positions in random order: place in the sequence and position differ everywhere",
        anywhere(2, 7, 6),
        flags=("positions",),
    ),
    Case(
        "repeated",
        "ROPE-POSITIONS",
        "the same position several times",
        at((5, 5, 0, 5, 2, 2)),
        flags=("positions",),
    ),
    Case(
        "descending",
        "ROPE-POSITIONS",
        "positions that fall: sorting them shows",
        at((9, 8, 7, 6, 5)),
        flags=("positions",),
    ),
    Case(
        "gaps",
        "ROPE-POSITIONS",
        "neighbours that are far apart: counting on from the first shows",
        at((0, 1, 30, 31, 60)),
        flags=("positions",),
    ),
    Case(
        "continued",
        "ROPE-POSITIONS",
        "a run that starts late, as in decoding after a prompt",
        at((17, 18, 19, 20)),
        flags=("positions",),
    ),
)

PER_ROW = (
    Case(
        "one-for-all",
        "ROPE-POSITIONS-PER-ROW",
        "positions (seq,) for a batch of several heads",
        anywhere(3, 2, 5, 4),
        flags=("positions-per-row",),
    ),
    Case(
        "one-row",
        "ROPE-POSITIONS-PER-ROW",
        "positions (1, seq) for three sequences",
        anywhere(3, 5, 4, positions=(1, 5)),
        flags=("positions-per-row",),
    ),
    Case(
        "one-row-with-heads",
        "ROPE-POSITIONS-PER-ROW",
        "positions (1, seq) for a batch of several heads",
        anywhere(3, 2, 5, 4, positions=(1, 5)),
        flags=("positions-per-row",),
    ),
    Case(
        "row-by-row",
        "ROPE-POSITIONS-PER-ROW",
        "positions (batch, seq), other ones in every sequence",
        anywhere(3, 5, 4, positions=(3, 5)),
        flags=("positions-per-row",),
    ),
    Case(
        "row-by-row-with-heads",
        "ROPE-POSITIONS-PER-ROW",
        "positions (batch, 1, seq), the same for the heads of one sequence; batch is not heads",
        anywhere(2, 3, 5, 4, positions=(2, 1, 5)),
        flags=("positions-per-row",),
    ),
    Case(
        "batch-equals-heads",
        "ROPE-POSITIONS-PER-ROW",
        "as many heads as sequences: positions spread over the heads do not show in the shape",
        anywhere(3, 3, 5, 4, positions=(3, 1, 5)),
        flags=("positions-per-row", "coinciding-sizes"),
    ),
    Case(
        "one-head",
        "ROPE-POSITIONS-PER-ROW",
        "positions (batch, 1, seq) with a single head",
        anywhere(3, 1, 4, 4, positions=(3, 1, 4)),
        flags=("positions-per-row", "coinciding-sizes"),
    ),
)

TABLE = (
    Case(
        "last-position",
        "ROPE-TABLE-END",
        "the last position of a table of odd length, max_seq_len - 1",
        at((32, 0, 31), max_seq_len=33),
        flags=("table-end",),
    ),
    Case(
        "whole-table",
        "ROPE-TABLE-END",
        "as many rows as the table has, in another order",
        anywhere(2, 7, 4, max_seq_len=7, whole=True),
        flags=("table-end",),
    ),
    Case(
        "short-sequence",
        "ROPE-TABLE-END",
        "three rows with a table of a thousand, among them its last",
        at((999, 2, 500), max_seq_len=1000),
        flags=("table-end",),
    ),
    Case(
        "table-of-one",
        "ROPE-TABLE-END",
        "a table that holds position 0 only leaves the row alone",
        at((0,), max_seq_len=1),
        flags=("table-end",),
    ),
    Case(
        "far",
        "ROPE-FAR-POSITIONS",
        "positions around 256, 2048 and 4096, where 16-bit integers are no longer exact",
        at(FAR, d_k=16, lead=(1,), theta=10000.0, max_seq_len=4098),
        flags=("far-positions",),
    ),
    Case(
        "far-large-theta",
        "ROPE-FAR-POSITIONS",
        "the same with base 500000, whose slow pairs are only now turned visibly",
        at(FAR, d_k=8, lead=(1,), theta=500000.0, max_seq_len=4100),
        flags=("far-positions", "theta"),
    ),
    Case(
        "position-zero",
        "ROPE-IDENTITY",
        "rows at position 0 between others: only these stay as they are",
        at((0, 5, 0, 9), d_k=8),
        flags=("position-zero",),
    ),
)

AXES = (
    *(
        Case(
            f"axes-{len(lead)}",
            "ROPE-LEADING-AXES",
            f"{len(lead)} leading axes of lengths {lead}",
            anywhere(*lead, 4, 6),
            flags=("leading-axes",),
        )
        for lead in ((3,), (2, 3), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))
    ),
    Case(
        "all-equal",
        "ROPE-SIZES",
        "batch, heads, sequence and width are all 4: a swapped axis shows in the values only",
        anywhere(4, 4, 4, 4),
        flags=("coinciding-sizes",),
    ),
    Case(
        "all-equal-row-by-row",
        "ROPE-SIZES",
        "the same, with other positions in every sequence",
        anywhere(4, 4, 4, 4, positions=(4, 1, 4)),
        flags=("coinciding-sizes", "positions-per-row"),
    ),
    Case(
        "one-token",
        "ROPE-SIZES",
        "a sequence of one row, as in decoding",
        at((11,), lead=(2, 3)),
        flags=("coinciding-sizes",),
    ),
    Case(
        "one-of-each",
        "ROPE-SIZES",
        "every leading axis and the sequence have length one",
        at((11,), lead=(1, 1)),
        flags=("coinciding-sizes",),
    ),
    Case(
        "one-pair",
        "ROPE-SIZES",
        "d_k = 2: a single pair that turns by one radian per position, whatever theta",
        anywhere(3, 5, 2, theta=10000.0),
        flags=("coinciding-sizes",),
    ),
    Case(
        "one-sequence",
        "ROPE-ONE-SEQUENCE",
        "rows (seq, d_k) without any leading axis",
        anywhere(5, 6),
        flags=("leading-axes",),
    ),
    Case("empty", "ROPE-EMPTY", "a batch of length zero", empty, golden=False),
)

GRADIENT = (
    Case(
        "gradient",
        "ROPE-GRADIENT",
        "scattered positions shared by a batch of several heads",
        anywhere(2, 3, 4, 6),
        flags=("gradient",),
        wrt=X,
    ),
    Case(
        "gradient-row-by-row",
        "ROPE-GRADIENT",
        "other positions in every sequence",
        anywhere(3, 2, 4, 4, positions=(3, 1, 4)),
        flags=("gradient", "positions-per-row"),
        wrt=X,
    ),
    Case(
        "gradient-wide",
        "ROPE-GRADIENT",
        "40 features and three leading axes",
        anywhere(2, 1, 3, 2, 40),
        flags=("gradient",),
        wrt=X,
    ),
    Case(
        "gradient-far",
        "ROPE-GRADIENT",
        "positions of some thousands, 0 among them",
        at((4096, 0, 2049), d_k=8, theta=10000.0, max_seq_len=4098),
        flags=("gradient", "far-positions"),
        wrt=X,
    ),
)

DTYPES = (
    Case(
        "half",
        "ROPE-HALF-VALUES",
        "scattered positions: cosine and sine may be rounded, the angle may not",
        anywhere(2, 5, 8),
        flags=("half",),
        dtypes=HALVES,
    ),
    Case(
        "half-far",
        "ROPE-HALF-VALUES",
        "positions above 256 and 2048: rounded to 16 bits they collapse onto each other",
        at((301, 303, 2049, 3001, 4095), d_k=8, theta=10000.0, max_seq_len=4097),
        flags=("half", "far-positions"),
        dtypes=HALVES,
    ),
    Case(
        "half-heads",
        "ROPE-HALF",
        "a batch of several heads in 16 bits",
        anywhere(2, 3, 4, 6),
        flags=("half",),
        dtypes=HALVES,
    ),
    Case(
        "double",
        "ROPE-FLOAT64",
        "float64 rows at positions up to 4095: float32 tables show",
        at((0, 3, 301, 4095), d_k=8, theta=10000.0, max_seq_len=4097),
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
        ("first", "the table that the others are asked after", at((3, 0, 14), max_seq_len=16)),
        (
            "other-theta",
            "the same width, positions and shape with another theta",
            at((3, 0, 14), theta=10000.0, max_seq_len=16),
        ),
        ("longer", "the same width and theta, further positions", at((3, 0, 38), max_seq_len=40)),
        (
            "other-width",
            "another width with the same theta and length",
            at((3, 0, 14), d_k=10, max_seq_len=16),
        ),
    )
)

OPEN = (
    Case("int32", "ROPE-INT32-POSITIONS", "positions as int32", int32, golden=False),
    Case("beyond", "ROPE-BEYOND-TABLE", "positions 8 and 12 of a table of 8", beyond, golden=False),
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
