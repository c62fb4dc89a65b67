"""Inputs on which mistakes in the gated linear unit show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.glu.oracle import glu
from conformance.numerics.draw import Draw
from conformance.suite.case import Case
from conformance.suite.component import Component

HALF = ("bfloat16", "float16")
RANKS = ((3,), (2, 3), (2, 1, 3), (2, 1, 2, 2), (1, 2, 1, 2, 2))
"""Leading axes, from one to five of them."""

Build = Callable[[Draw], dict[str, Any]]


def arguments(x: Any, w1: Any, w2: Any) -> dict[str, Any]:
    """Keyword arguments for float64 input and weights."""
    d_ff, d_model = w1.shape
    return {
        "d_model": d_model,
        "d_ff": d_ff,
        "w1_weight": w1,
        "w2_weight": w2,
        "in_features": x,
    }


def _sized(d_model: int, d_ff: int, *leading: int, gate: float = 1.0, value: float = 1.0) -> Build:
    """`gate` and `value` scale the two weights."""

    def build(draw: Draw) -> dict[str, Any]:
        w1 = draw.normal(d_ff, d_model, scale=gate)
        w2 = draw.normal(d_ff, d_model, scale=value)
        return arguments(draw.normal(*leading, d_model), w1, w2)

    return build


def _zero_rows(draw: Draw) -> dict[str, Any]:
    scales = np.array([0.0, 1.0, 1e-3, 0.0, 1e-6, 1e-12])[:, None]
    rows = draw.normal(6, 5) * scales
    return arguments(rows, draw.normal(4, 5), draw.normal(4, 5))


def _large_rows(draw: Draw) -> dict[str, Any]:
    return arguments(draw.normal(3, 5, scale=3000.0), draw.normal(4, 5), draw.normal(4, 5))


CASES = (
    Case(
        "ordinary",
        "GLU-DEFINITION",
        "four different sizes, numbers of order one",
        _sized(5, 7, 2, 3),
        flags=("ordinary",),
    ),
    Case(
        "other-weights",
        "GLU-DEFINITION",
        "the sizes of the ordinary case with other numbers: weights kept from earlier calls show",
        _sized(5, 7, 2, 3),
        flags=("ordinary",),
    ),
    Case(
        "strong-gate",
        "GLU-ROLES",
        "a gate ten times as strong as the values: exchanged weights show",
        _sized(5, 6, 2, 3, gate=3.0, value=0.3),
        flags=("roles",),
    ),
    Case(
        "strong-values",
        "GLU-ROLES",
        "values ten times as strong as the gate: exchanged weights show",
        _sized(5, 6, 2, 3, gate=0.3, value=3.0),
        flags=("roles",),
    ),
    Case(
        "saturated",
        "GLU-SATURATION",
        "gates thousands beyond the logistic function's range: overflowing exponentials show",
        _sized(5, 6, 4, gate=2000.0),
        flags=("saturated",),
    ),
    Case(
        "large-rows",
        "GLU-SATURATION",
        "input of thousands: gates are closed or open, values large",
        _large_rows,
        flags=("saturated",),
    ),
    Case(
        "zero-rows",
        "GLU-NO-BIAS",
        "rows of zeros and down to 1e-12: an added constant stands alone",
        _zero_rows,
        flags=("zero-rows",),
    ),
    Case(
        "equal-axes",
        "GLU-SIZES",
        "batch = sequence = width = hidden: weights used as (in, out) raise no error",
        _sized(4, 4, 4, 4),
        flags=("equal-axes",),
    ),
    Case(
        "fewer-hidden",
        "GLU-SIZES",
        "fewer hidden features than the width",
        _sized(9, 2, 3),
        flags=("hidden-size",),
    ),
    Case(
        "more-hidden",
        "GLU-SIZES",
        "more hidden features than the width, not a multiple of anything usual",
        _sized(4, 13, 2, 2),
        flags=("hidden-size",),
    ),
    Case(
        "one-hidden",
        "GLU-SIZES",
        "a single hidden feature keeps its axis",
        _sized(5, 1, 2, 3),
        flags=("size-one",),
    ),
    Case(
        "one-feature",
        "GLU-SIZES",
        "a width of one",
        _sized(1, 4, 2, 3),
        flags=("size-one",),
    ),
    Case(
        "one-row",
        "GLU-SIZES",
        "batch and sequence of length one",
        _sized(5, 3, 1, 1),
        flags=("size-one",),
    ),
    *(
        Case(
            f"rank-{len(leading) + 1}",
            "GLU-LEADING-AXES",
            f"leading axes {leading}: all of them are kept, in order",
            _sized(4, 3, *leading),
            flags=("leading-axes",),
        )
        for leading in RANKS
    ),
    Case(
        "wide-rows",
        "GLU-SIZES",
        "rows of 1500 features",
        _sized(1500, 3, 2),
        flags=("wide-rows",),
        golden=False,
    ),
    Case("vector", "GLU-VECTOR", "one vector, no batch", _sized(5, 4), flags=("bare-vector",)),
    Case("empty", "GLU-EMPTY", "a batch of no rows", _sized(5, 4, 0), flags=("empty",)),
    Case(
        "gradient",
        "GLU-GRADIENT",
        "the derivative through both paths",
        _sized(5, 7, 2, 3),
        flags=("gradient",),
        wrt=("in_features",),
    ),
    Case(
        "gradient-saturated",
        "GLU-GRADIENT",
        "the derivative where the gate is closed or open to every digit: finite",
        _sized(4, 6, 3, gate=100.0),
        flags=("gradient", "saturated"),
        wrt=("in_features",),
    ),
    Case(
        "weight-gradient",
        "GLU-WEIGHT-GRADIENT",
        "the derivatives with respect to both weights sum over batch and sequence",
        _sized(5, 4, 2, 3),
        flags=("weight-gradient",),
        wrt=("w1_weight", "w2_weight"),
    ),
    Case(
        "half",
        "GLU-HALF-VALUES",
        "numbers of order one in 16-bit formats",
        _sized(6, 5, 2, 3),
        flags=("low-precision",),
        dtypes=HALF,
    ),
)

COMPONENT = Component(
    name="glu",
    oracle=glu,
    cases=CASES,
    inputs=("in_features",),
    parameters=("w1_weight", "w2_weight"),
)
