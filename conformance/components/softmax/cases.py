"""Inputs on which mistakes in softmax show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from conformance.components.softmax.oracle import softmax
from conformance.numerics.draw import Draw
from conformance.suite.case import Case
from conformance.suite.component import Component

HALF = ("bfloat16", "float16")
RANKS = (
    ((6,), 0),
    ((2, 5), 0),
    ((3, 1, 4), -1),
    ((2, 3, 1, 2), 1),
    ((2, 1, 2, 3, 2), -2),
    ((1, 2, 1, 3, 2, 1), 3),
)
"""Shapes of one to six axes, each with the axis to normalise."""

Build = Callable[[Draw], dict[str, Any]]


def arguments(x: Any, dim: int) -> dict[str, Any]:
    """Keyword arguments for a float64 input."""
    return {"in_features": x, "dim": dim}


def _shaped(shape: Sequence[int], dim: int, scale: float = 2.0) -> Build:
    def build(draw: Draw) -> dict[str, Any]:
        return arguments(draw.normal(*shape, scale=scale), dim)

    return build


def _levels(dim: int) -> Build:
    """Five slices around levels that are thousands apart, along either axis of a matrix."""

    def build(draw: Draw) -> dict[str, Any]:
        rows = draw.normal(5, 4) + np.array([0.0, 100.0, -100.0, 1e4, -1e4])[:, None]
        return arguments(rows if dim == -1 else rows.T, dim)

    return build


def _extreme(draw: Draw) -> dict[str, Any]:
    rows = draw.normal(5, 6)
    rows[0] = [1e4, -1e4, 1e4, 0.0, 9998.0, 1.0]
    rows[1] -= 1e4
    rows[2] += 1e4
    rows[3] = [-1e30, 1.0, 2.0, -3e38, 0.0, 3.0]
    return arguments(rows, -1)


def _dominating(draw: Draw) -> dict[str, Any]:
    rows = draw.normal(5, 5) + 300.0 * np.eye(5)[draw.permutation(5)]
    rows[4] = [0.0, 0.0, 40.0, 0.0, 20.0]  # small probabilities that float32 still holds
    return arguments(rows, 1)


def _with_minus_infinity(shape: Sequence[int], dim: int) -> Build:
    """A third of the entries are minus infinity, the first of every slice never."""

    def build(draw: Draw) -> dict[str, Any]:
        x, hidden = draw.normal(*shape, scale=2.0), draw.flags(*shape, probability=0.4)
        np.moveaxis(hidden, dim, 0)[0] = False
        np.moveaxis(hidden, dim, 0)[1] = True
        return arguments(np.where(hidden, -np.inf, x), dim)

    return build


def _one_left(draw: Draw) -> dict[str, Any]:
    """All but one entry of each row are minus infinity: that one has probability one."""
    rows = np.full((4, 4), -np.inf)
    rows[np.arange(4), draw.permutation(4)] = draw.normal(4, scale=10.0)
    rows[0] = draw.normal(4)
    return arguments(rows, -1)


def _constant(draw: Draw) -> dict[str, Any]:
    rows = np.broadcast_to(np.array([0.0, 5.0, -1e4, 88.0, 1e4])[:, None], (5, 7)) + 0.0
    rows[0] = draw.normal(7)
    return arguments(rows, -1)


def _long_constant(draw: Draw) -> dict[str, Any]:
    rows = draw.normal(2, 1) + np.zeros((2, 5000))
    rows[:, 17] += 3.0
    return arguments(rows, -1)


def _gradient_edges(draw: Draw) -> dict[str, Any]:
    """Ties at the top, one entry dominating, extreme levels, minus infinity, all equal."""
    return arguments(
        np.array(
            [
                [1.0, 1.0, -1.0, 1.0, 0.5],
                [300.0, 0.0, -2.0, 1.0, 5.0],
                [1e4, -1e4, 9999.0, 0.0, 1e4],
                [-np.inf, 1.5, -np.inf, 0.25, -0.5],
                [7.0, 7.0, 7.0, 7.0, 7.0],
                [-np.inf, -np.inf, 2.0, -np.inf, -np.inf],
            ]
        ),
        -1,
    )


def _nothing_left(draw: Draw) -> dict[str, Any]:
    return arguments(np.stack((np.full(4, -np.inf), draw.normal(4))), -1)


def _half_long(draw: Draw) -> dict[str, Any]:
    """Equal entries first: adding 1 to 256 in bfloat16, or to 2048 in float16, changes nothing."""
    return arguments(np.repeat([0.0, -0.5], [2600, 400])[None], -1)


def _half_overflow(draw: Draw) -> dict[str, Any]:
    return arguments(draw.uniform(2, 40, low=8.0, high=10.0), -1)


CASES = (
    Case(
        "ordinary",
        "SOFTMAX-DEFINITION",
        "numbers of order one along the last axis",
        _shaped((2, 3, 5), -1),
        flags=("ordinary",),
    ),
    Case(
        "other-numbers",
        "SOFTMAX-DEFINITION",
        "the shape of the ordinary case with other numbers: remembered ones show",
        _shaped((2, 3, 5), -1),
        flags=("ordinary",),
    ),
    *(
        Case(
            f"axis-{dim}",
            "SOFTMAX-DIM",
            f"axis {dim} of three axes of different length",
            _shaped((4, 3, 5), dim),
            flags=("other-axes",),
        )
        for dim in (0, 1, 2, -2, -3)
    ),
    *(
        Case(
            f"equal-axes-{dim}",
            "SOFTMAX-DIM",
            f"axis {dim} of a cube: a maximum or sum on another axis raises no error",
            _shaped((3, 3, 3), dim),
            flags=("equal-axes", "other-axes"),
        )
        for dim in (0, 1, -1)
    ),
    Case(
        "columns",
        "SOFTMAX-DIM",
        "the columns of a square matrix",
        _shaped((4, 4), 0),
        flags=("equal-axes", "other-axes"),
    ),
    Case(
        "extreme",
        "SOFTMAX-EXTREME",
        "rows of +-1e4, one row of large negative numbers only, entries down to -3e38",
        _extreme,
        flags=("extreme",),
    ),
    Case(
        "dominating",
        "SOFTMAX-EXTREME",
        "one entry leads by 300 or by 20: tiny terms that are added show",
        _dominating,
        flags=("dominating",),
    ),
    Case(
        "levels",
        "SOFTMAX-SLICES",
        "rows thousands apart: one shift for all of them leaves 0 / 0",
        _levels(-1),
        flags=("levels",),
    ),
    Case(
        "levels-of-columns",
        "SOFTMAX-SLICES",
        "columns thousands apart: one shift for all of them leaves 0 / 0",
        _levels(0),
        flags=("levels", "other-axes"),
    ),
    Case(
        "minus-infinity",
        "SOFTMAX-MINUS-INFINITY",
        "some entries of each row are minus infinity: exactly zero, and no NaN",
        _with_minus_infinity((3, 6), -1),
        flags=("minus-infinity",),
    ),
    Case(
        "minus-infinity-columns",
        "SOFTMAX-MINUS-INFINITY",
        "the same along the first axis",
        _with_minus_infinity((5, 2, 3), 0),
        flags=("minus-infinity", "other-axes"),
    ),
    Case(
        "one-left",
        "SOFTMAX-MINUS-INFINITY",
        "all but one entry are minus infinity: that one has probability one",
        _one_left,
        flags=("minus-infinity",),
    ),
    Case(
        "constant",
        "SOFTMAX-CONSTANT",
        "rows of equal entries at several levels, beside an ordinary row",
        _constant,
        flags=("constant",),
    ),
    Case(
        "long-slices",
        "SOFTMAX-LONG-SLICES",
        "4096 random entries",
        _shaped((2, 4096), -1),
        flags=("long-slices",),
        golden=False,
    ),
    Case(
        "long-equal-slices",
        "SOFTMAX-LONG-SLICES",
        "5000 equal entries and one larger one: rounding errors add up in one direction",
        _long_constant,
        flags=("long-slices", "constant"),
        golden=False,
    ),
    *(
        Case(
            f"rank-{len(shape)}",
            "SOFTMAX-SIZES",
            f"axis {dim} of shape {shape}",
            _shaped(shape, dim),
            flags=("ranks",),
        )
        for shape, dim in RANKS
    ),
    Case(
        "rank-5-from-the-end",
        "SOFTMAX-SIZES",
        "axis -4 of five",
        _shaped((2, 3, 2, 2, 2), -4),
        flags=("ranks",),
    ),
    Case(
        "one-entry",
        "SOFTMAX-SIZES",
        "an axis of length one: every probability is one",
        _shaped((3, 1, 2), 1, scale=50.0),
        flags=("size-one",),
    ),
    Case(
        "empty",
        "SOFTMAX-EMPTY",
        "a batch of no rows",
        _shaped((0, 4), -1),
        flags=("empty",),
    ),
    Case(
        "nothing-left",
        "SOFTMAX-NOTHING-LEFT",
        "a row of nothing but minus infinity: left open, only observed",
        _nothing_left,
        flags=("minus-infinity",),
        golden=False,
    ),
    Case(
        "gradient",
        "SOFTMAX-GRADIENT",
        "the derivative along the last axis",
        _shaped((2, 3, 5), -1),
        flags=("gradient",),
        wrt=("in_features",),
    ),
    Case(
        "gradient-middle-axis",
        "SOFTMAX-GRADIENT",
        "the derivative along the middle axis of a cube",
        _shaped((3, 3, 3), 1),
        flags=("gradient", "equal-axes", "other-axes"),
        wrt=("in_features",),
    ),
    Case(
        "gradient-edges",
        "SOFTMAX-GRADIENT",
        "the derivative at ties, at one-sided rows, at +-1e4 and with entries of minus infinity, "
        "whose gradient is exactly zero",
        _gradient_edges,
        flags=("gradient", "extreme", "dominating", "minus-infinity"),
        wrt=("in_features",),
    ),
    Case(
        "gradient-long",
        "SOFTMAX-GRADIENT",
        "the derivative of 300 entries",
        _shaped((2, 300), -1),
        flags=("gradient", "long-slices"),
        wrt=("in_features",),
        golden=False,
    ),
    Case(
        "half",
        "SOFTMAX-HALF-VALUES",
        "numbers of order one in 16 bits, along the middle axis",
        _shaped((2, 5, 3), 1),
        flags=("low-precision", "other-axes"),
        dtypes=HALF,
    ),
    Case(
        "half-long",
        "SOFTMAX-HALF-SUM",
        "3000 entries, most of them equal: a running sum in 16 bits stops growing",
        _half_long,
        flags=("low-precision", "half-long"),
        dtypes=HALF,
        golden=False,
    ),
    Case(
        "half-overflow",
        "SOFTMAX-HALF-VALUES",
        "entries around 9, the sum of whose exponentials float16 cannot hold",
        _half_overflow,
        flags=("low-precision", "half-overflow"),
        dtypes=HALF,
    ),
)

COMPONENT = Component(
    name="softmax", oracle=softmax, cases=CASES, inputs=("in_features",), pooled=()
)
