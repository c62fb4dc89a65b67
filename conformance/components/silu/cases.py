"""Inputs on which mistakes in SiLU show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.silu.oracle import silu
from conformance.numerics.draw import Draw
from conformance.suite.case import Case
from conformance.suite.component import Component

HALF = ("bfloat16", "float16")
SHAPES = ((7,), (2, 3), (2, 1, 3), (2, 2, 1, 2), (2, 1, 2, 1, 2), (1, 2, 1, 2, 2, 1))
"""Shapes of one to six axes."""

Build = Callable[[Draw], dict[str, Any]]


def arguments(x: Any) -> dict[str, Any]:
    """Keyword arguments for a float64 input."""
    return {"in_features": x}


def _shaped(*shape: int, scale: float = 3.0) -> Build:
    def build(draw: Draw) -> dict[str, Any]:
        return arguments(np.asarray(draw.normal(*shape, scale=scale)))

    return build


def _either_sign(*sizes: float) -> Build:
    """The given magnitudes with both signs, two rows."""

    def build(draw: Draw) -> dict[str, Any]:
        return arguments(np.array([sizes, [-size for size in sizes]]))

    return build


def _negative(draw: Draw) -> dict[str, Any]:
    near = -1.278 + draw.uniform(6, low=-0.5, high=0.5)
    far = -draw.uniform(6, low=2.0, high=20.0)
    return arguments(np.stack((near, far, -draw.uniform(6, low=0.0, high=1.0))))


def _large(draw: Draw) -> dict[str, Any]:
    return arguments(draw.uniform(2, 4, low=25.0, high=5000.0))


def _saturated_gradient(draw: Draw) -> dict[str, Any]:
    """Around 88.7 the exponential leaves float32; -1.2785 is where the derivative vanishes."""
    points = [-1e4, -1000.0, -100.0, -89.0, -88.0, -50.0, -20.0, -1.2784645, 0.0]
    return arguments(np.array([points, [-point for point in points]]))


CASES = (
    Case(
        "ordinary",
        "SILU-DEFINITION",
        "numbers of both signs: any other function shows",
        _shaped(3, 8),
        flags=("ordinary",),
    ),
    Case(
        "other-numbers",
        "SILU-DEFINITION",
        "the shape of the ordinary case with other numbers: remembered ones show",
        _shaped(3, 8),
        flags=("ordinary",),
    ),
    Case(
        "negative",
        "SILU-NEGATIVE",
        "around the minimum, far below it and near zero: what is right for positive numbers only "
        "shows",
        _negative,
        flags=("negative",),
    ),
    Case(
        "saturated",
        "SILU-SATURATION",
        "up to the ends of float32: overflowing exponentials and clipped input show",
        _either_sign(15.0, 20.0, 50.0, 88.0, 89.0, 104.0, 1e3, 1e4, 1e30, 3e38),
        flags=("saturated",),
    ),
    Case(
        "all-large",
        "SILU-SATURATION",
        "nothing but large positive numbers, which come back as they are, in memory of their own",
        _large,
        flags=("saturated",),
    ),
    Case(
        "small",
        "SILU-SMALL",
        "zero and numbers down to 1e-30: half of them, with full relative accuracy",
        _either_sign(0.0, 1e-30, 1e-20, 1e-10, 1e-6, 1e-3, 0.03),
        flags=("small",),
    ),
    *(
        Case(
            f"rank-{len(shape)}",
            "SILU-LEADING-AXES",
            f"shape {shape} is kept",
            _shaped(*shape),
            flags=("leading-axes",),
        )
        for shape in SHAPES
    ),
    Case(
        "square",
        "SILU-LEADING-AXES",
        "a square matrix: exchanged axes raise no error",
        _shaped(4, 4),
        flags=("equal-axes",),
    ),
    Case(
        "cube",
        "SILU-LEADING-AXES",
        "three axes of equal length",
        _shaped(3, 3, 3),
        flags=("equal-axes",),
    ),
    Case(
        "long",
        "SILU-LEADING-AXES",
        "4099 numbers in a row: whole vectors of them, and a remainder",
        _shaped(4099),
        flags=("long",),
        golden=False,
    ),
    Case("scalar", "SILU-SCALAR", "one number, no axis", _shaped(), flags=("scalar",)),
    Case("empty", "SILU-EMPTY", "no numbers", _shaped(0, 4), flags=("empty",)),
    Case(
        "gradient",
        "SILU-GRADIENT",
        "the derivative at numbers of both signs",
        _shaped(3, 6),
        flags=("gradient",),
        wrt=("in_features",),
    ),
    Case(
        "gradient-rank-4",
        "SILU-GRADIENT",
        "the derivative with four axes",
        _shaped(2, 3, 1, 12),
        flags=("gradient",),
        wrt=("in_features",),
    ),
    Case(
        "gradient-saturated",
        "SILU-GRADIENT",
        "the derivative up to 1e4 on both sides, at zero and where it vanishes: infinity times "
        "zero shows as NaN",
        _saturated_gradient,
        flags=("gradient", "saturated"),
        wrt=("in_features",),
    ),
    Case(
        "half",
        "SILU-HALF-VALUES",
        "numbers of both signs in 16 bits",
        _shaped(3, 8),
        flags=("low-precision",),
        dtypes=HALF,
    ),
    Case(
        "half-saturated",
        "SILU-HALF-VALUES",
        "beyond 11, where exponentials leave float16",
        _either_sign(10.0, 11.0, 12.0, 20.0, 100.0, 1000.0, 60000.0),
        flags=("low-precision", "saturated"),
        dtypes=HALF,
    ),
)

COMPONENT = Component(name="silu", oracle=silu, cases=CASES, inputs=("in_features",), pooled=())
