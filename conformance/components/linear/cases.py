"""Inputs on which mistakes in the linear map show."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from conformance.components.linear.oracle import linear
from conformance.numerics.draw import Draw
from conformance.suite.case import Case
from conformance.suite.component import Component

HALF = ("bfloat16", "float16")
RANKS = ((3,), (2, 3), (2, 1, 3), (2, 1, 2, 2), (1, 2, 1, 2, 2))
"""Leading axes, from one to five of them."""


def arguments(x: Any, weights: Any) -> dict[str, Any]:
    """Keyword arguments for an input and a weight matrix, both float64."""
    d_out, d_in = weights.shape
    return {"d_in": d_in, "d_out": d_out, "weights": weights, "in_features": x}


def _sized(d_in: int, d_out: int, *leading: int) -> Callable[[Draw], dict[str, Any]]:
    def build(draw: Draw) -> dict[str, Any]:
        return arguments(draw.normal(*leading, d_in), draw.normal(d_out, d_in))

    return build


def _scaled_rows(draw: Draw, scales: tuple[float, ...]) -> dict[str, Any]:
    rows = draw.normal(len(scales), 6) * np.array(scales)[:, None]
    return arguments(rows, draw.normal(4, 6))


def _long(draw: Draw) -> dict[str, Any]:
    return arguments(draw.normal(2, 4096), draw.normal(3, 4096))


def _long_and_equal(draw: Draw) -> dict[str, Any]:
    """Equal terms: their rounding errors share a sign and do not average out."""
    rows = np.broadcast_to(draw.uniform(2, 1, low=0.5, high=1.0), (2, 4096))
    weights = np.broadcast_to(draw.normal(3, 1), (3, 4096))
    return arguments(rows + 0.0, weights + 0.0)


def _counting(draw: Draw) -> dict[str, Any]:
    """1024 ones, and 700 ones less 324: both sums are numbers of every 16-bit format."""
    weights = np.ones((2, 1024))
    weights[1, 700:] = -1.0
    return arguments(np.ones((3, 1024)), weights)


_zero_rows = partial(_scaled_rows, scales=(0.0, 1.0, 1e-3, 0.0, 1e-6, 1e-12))
_mixed_rows = partial(_scaled_rows, scales=(1e-20, 1e18, 1.0, 1e-8, 1e10, 30.0))

CASES = (
    Case(
        "ordinary",
        "LINEAR-DEFINITION",
        "four different sizes: weights used as (in, out) cannot run, any other factor shows",
        _sized(5, 7, 2, 3),
        flags=("ordinary",),
    ),
    Case(
        "square",
        "LINEAR-DEFINITION",
        "as many outputs as inputs: weights that are not transposed run and give other numbers",
        _sized(6, 6, 2, 3),
        flags=("square",),
    ),
    Case(
        "other-weights",
        "LINEAR-DEFINITION",
        "the sizes of the ordinary case with other numbers: weights kept from earlier calls show",
        _sized(5, 7, 2, 3),
        flags=("ordinary",),
    ),
    Case(
        "zero-rows",
        "LINEAR-NO-BIAS",
        "rows of zeros and down to 1e-12: an added constant stands alone",
        _zero_rows,
        flags=("zero-rows",),
    ),
    Case(
        "equal-axes",
        "LINEAR-SIZES",
        "batch = sequence = inputs = outputs: swapped axes raise no error, yet show",
        _sized(4, 4, 4, 4),
        flags=("equal-axes",),
    ),
    Case(
        "one-output",
        "LINEAR-SIZES",
        "a single output feature: its axis must stay, with length one",
        _sized(6, 1, 2, 3),
        flags=("size-one",),
    ),
    Case(
        "one-input",
        "LINEAR-SIZES",
        "a single input feature: the sum has one term",
        _sized(1, 5, 2, 3),
        flags=("size-one",),
    ),
    Case(
        "one-by-one",
        "LINEAR-SIZES",
        "one input, one output: a plain product that keeps its axes",
        _sized(1, 1, 3, 1),
        flags=("size-one",),
    ),
    Case(
        "one-row",
        "LINEAR-SIZES",
        "batch and sequence of length one",
        _sized(6, 3, 1, 1),
        flags=("size-one",),
    ),
    Case(
        "narrowing",
        "LINEAR-SIZES",
        "fewer outputs than inputs",
        _sized(9, 2, 3),
        flags=("narrowing",),
    ),
    *(
        Case(
            f"rank-{len(leading) + 1}",
            "LINEAR-LEADING-AXES",
            f"leading axes {leading}: all of them are kept, in order",
            _sized(4, 3, *leading),
            flags=("leading-axes",),
        )
        for leading in RANKS
    ),
    Case(
        "vector",
        "LINEAR-VECTOR",
        "one vector, no batch",
        _sized(5, 4),
        flags=("bare-vector",),
    ),
    Case(
        "empty",
        "LINEAR-EMPTY",
        "a batch of no rows",
        _sized(5, 4, 0),
        flags=("empty",),
    ),
    Case(
        "mixed-magnitudes",
        "LINEAR-ROWS",
        "rows from 1e-20 to 1e18 side by side: each has to be right by its own measure",
        _mixed_rows,
        flags=("mixed-magnitudes",),
    ),
    Case(
        "long-rows",
        "LINEAR-LONG-ROWS",
        "4096 random terms to a sum",
        _long,
        flags=("long-rows",),
        golden=False,
    ),
    Case(
        "long-equal-terms",
        "LINEAR-LONG-ROWS",
        "4096 equal terms: rounding errors add up in one direction",
        _long_and_equal,
        flags=("long-rows",),
        golden=False,
    ),
    Case(
        "gradient",
        "LINEAR-GRADIENT",
        "the derivative reaches the input, with three different sizes",
        _sized(5, 7, 2, 3),
        flags=("gradient",),
        wrt=("in_features",),
    ),
    Case(
        "gradient-one-output",
        "LINEAR-GRADIENT",
        "a single output and a single row: nothing to sum over in the derivative",
        _sized(4, 1, 1),
        flags=("gradient", "size-one"),
        wrt=("in_features",),
    ),
    Case(
        "gradient-wide",
        "LINEAR-GRADIENT",
        "the derivative with 40 inputs and 50 outputs",
        _sized(40, 50, 2, 3),
        flags=("gradient",),
        wrt=("in_features",),
    ),
    Case(
        "one-output-rank-4",
        "LINEAR-SIZES",
        "a single output behind three leading axes: the axis of length one stays",
        _sized(3, 1, 2, 2, 3),
        flags=("size-one",),
    ),
    Case(
        "gradient-rank-4",
        "LINEAR-GRADIENT",
        "the derivative with three leading axes",
        _sized(3, 4, 2, 1, 2),
        flags=("gradient", "leading-axes"),
        wrt=("in_features",),
    ),
    Case(
        "weight-gradient",
        "LINEAR-WEIGHT-GRADIENT",
        "the derivative with respect to the weights sums over batch and sequence",
        _sized(5, 4, 2, 3),
        flags=("weight-gradient",),
        wrt=("weights",),
    ),
    Case(
        "half",
        "LINEAR-HALF-VALUES",
        "numbers of order one in 16-bit formats",
        _sized(6, 5, 2, 3),
        flags=("low-precision",),
        dtypes=HALF,
    ),
    Case(
        "counting",
        "LINEAR-HALF-SUMS",
        "sums of ones beyond 256 and 2048, where adding one in 16 bits changes nothing",
        _counting,
        flags=("low-precision", "counting"),
        dtypes=HALF,
    ),
)

COMPONENT = Component(
    name="linear", oracle=linear, cases=CASES, inputs=("in_features",), parameters=("weights",)
)
