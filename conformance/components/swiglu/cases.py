"""Inputs on which mistakes in the SwiGLU network show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.swiglu.oracle import swiglu
from conformance.numerics.draw import Draw
from conformance.suite.case import Case
from conformance.suite.component import Component

HALF = ("bfloat16", "float16")
RANKS = ((3,), (2, 3), (2, 1, 3), (2, 1, 2, 2), (1, 2, 1, 2, 2))
"""Leading axes, from one to five of them."""

HIDDEN = ((9, 3), (6, 17), (4, 63), (5, 64), (3, 65))
"""Width and number of hidden features; none of these is what a rounding rule gives."""

Build = Callable[[Draw], dict[str, Any]]


def arguments(x: Any, w1: Any, w2: Any, w3: Any) -> dict[str, Any]:
    """Keyword arguments for float64 input and weights."""
    d_ff, d_model = w1.shape
    return {
        "d_model": d_model,
        "d_ff": d_ff,
        "w1_weight": w1,
        "w2_weight": w2,
        "w3_weight": w3,
        "in_features": x,
    }


def weights(draw: Draw, d_model: int, d_ff: int) -> tuple[Any, Any, Any]:
    """W1, W2, W3 of order one."""
    return draw.normal(d_ff, d_model), draw.normal(d_model, d_ff), draw.normal(d_ff, d_model)


def _sized(d_model: int, d_ff: int, *leading: int, gate: float = 1.0, value: float = 1.0) -> Build:
    """`gate` and `value` scale W1 and W3."""

    def build(draw: Draw) -> dict[str, Any]:
        w1, w2, w3 = weights(draw, d_model, d_ff)
        return arguments(draw.normal(*leading, d_model), gate * w1, w2, value * w3)

    return build


def _negative_gates(draw: Draw) -> dict[str, Any]:
    """Positive input and negative W1: the gate's pre-activations lie between -6 and -0.1."""
    x = draw.uniform(2, 4, 5, low=0.1, high=1.2)
    w1 = -draw.uniform(6, 5, low=0.1, high=1.0)
    return arguments(x, w1, draw.normal(5, 6), draw.normal(6, 5))


def _zero_rows(draw: Draw) -> dict[str, Any]:
    scales = np.array([0.0, 1.0, 1e-2, 0.0, 1e-4, 1e-8])[:, None]
    return arguments(draw.normal(6, 5) * scales, *weights(draw, 5, 4))


def _large_rows(draw: Draw) -> dict[str, Any]:
    return arguments(draw.normal(3, 5, scale=3000.0), *weights(draw, 5, 4))


CASES = (
    Case(
        "ordinary",
        "SWIGLU-DEFINITION",
        "four different sizes, numbers of order one",
        _sized(5, 7, 2, 3),
        flags=("ordinary",),
    ),
    Case(
        "other-weights",
        "SWIGLU-DEFINITION",
        "the sizes of the ordinary case with other numbers: weights kept from earlier calls show",
        _sized(5, 7, 2, 3),
        flags=("ordinary",),
    ),
    Case(
        "strong-gate",
        "SWIGLU-ROLES",
        "a gate ten times as strong as the values: exchanged weights show",
        _sized(5, 6, 2, 3, gate=3.0, value=0.3),
        flags=("roles",),
    ),
    Case(
        "strong-values",
        "SWIGLU-ROLES",
        "values ten times as strong as the gate: exchanged weights show",
        _sized(5, 6, 2, 3, gate=0.3, value=3.0),
        flags=("roles",),
    ),
    Case(
        "negative-gates",
        "SWIGLU-ACTIVATION",
        "all pre-activations between -6 and -0.1: another activation shows",
        _negative_gates,
        flags=("negative-gates",),
    ),
    Case(
        "zero-rows",
        "SWIGLU-NO-BIAS",
        "rows of zeros and down to 1e-8: an added constant stands alone",
        _zero_rows,
        flags=("zero-rows",),
    ),
    Case(
        "saturated",
        "SWIGLU-SATURATION",
        "pre-activations of thousands of both signs: overflowing exponentials show",
        _sized(5, 6, 4, gate=2000.0),
        flags=("saturated",),
    ),
    Case(
        "large-rows",
        "SWIGLU-SATURATION",
        "input of thousands: gates are closed or as large as the input, values large",
        _large_rows,
        flags=("saturated",),
    ),
    *(
        Case(
            f"hidden-{d_ff}",
            "SWIGLU-HIDDEN-SIZE",
            f"{d_ff} hidden features for a width of {d_model}: no rounding rule gives this number",
            _sized(d_model, d_ff, 2, 2),
            flags=("hidden-size",),
        )
        for d_model, d_ff in HIDDEN
    ),
    Case(
        "equal-axes",
        "SWIGLU-SIZES",
        "batch = sequence = width = hidden: exchanged or transposed weights raise no error",
        _sized(4, 4, 4, 4),
        flags=("equal-axes",),
    ),
    Case(
        "one-hidden",
        "SWIGLU-SIZES",
        "a single hidden feature",
        _sized(5, 1, 2, 3),
        flags=("size-one",),
    ),
    Case(
        "one-feature",
        "SWIGLU-SIZES",
        "a width of one keeps its axis",
        _sized(1, 4, 2, 3),
        flags=("size-one",),
    ),
    Case(
        "one-row",
        "SWIGLU-SIZES",
        "batch and sequence of length one",
        _sized(5, 3, 1, 1),
        flags=("size-one",),
    ),
    *(
        Case(
            f"rank-{len(leading) + 1}",
            "SWIGLU-LEADING-AXES",
            f"leading axes {leading}: all of them are kept, in order",
            _sized(4, 3, *leading),
            flags=("leading-axes",),
        )
        for leading in RANKS
    ),
    Case(
        "wide-rows",
        "SWIGLU-SIZES",
        "rows of 1500 features",
        _sized(1500, 3, 2),
        flags=("wide-rows",),
        golden=False,
    ),
    Case("vector", "SWIGLU-VECTOR", "one vector, no batch", _sized(5, 4), flags=("bare-vector",)),
    Case("empty", "SWIGLU-EMPTY", "a batch of no rows", _sized(5, 4, 0), flags=("empty",)),
    Case(
        "gradient",
        "SWIGLU-GRADIENT",
        "the derivative through both paths",
        _sized(5, 7, 2, 3),
        flags=("gradient",),
        wrt=("in_features",),
    ),
    Case(
        "gradient-saturated",
        "SWIGLU-GRADIENT",
        "the derivative at pre-activations of hundreds of both signs: finite",
        _sized(4, 6, 3, gate=200.0),
        flags=("gradient", "saturated"),
        wrt=("in_features",),
    ),
    Case(
        "weight-gradient",
        "SWIGLU-WEIGHT-GRADIENT",
        "the derivatives with respect to all three weights sum over batch and sequence",
        _sized(5, 4, 2, 3),
        flags=("weight-gradient",),
        wrt=("w1_weight", "w2_weight", "w3_weight"),
    ),
    Case(
        "half",
        "SWIGLU-HALF-VALUES",
        "numbers of order one in 16-bit formats",
        _sized(6, 5, 2, 3, gate=0.5, value=0.5),
        flags=("low-precision",),
        dtypes=HALF,
    ),
)

COMPONENT = Component(
    name="swiglu",
    oracle=swiglu,
    cases=CASES,
    inputs=("in_features",),
    parameters=("w1_weight", "w2_weight", "w3_weight"),
)
