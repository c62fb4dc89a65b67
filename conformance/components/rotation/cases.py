"""Inputs on which mistakes in rotation matrices show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.rotation.oracle import rotation
from conformance.numerics.draw import Draw
from conformance.suite.case import Case
from conformance.suite.component import Component

Build = Callable[[Draw], dict[str, Any]]
HALVES = ("bfloat16", "float16")
ANGLES = ("angles",)


def _these(angles: Any) -> Build:
    return lambda draw: {"angles": np.asarray(angles, dtype=np.float64)}


def _anywhere(*shape: int, turns: float = 2.0) -> Build:
    """Angles within so many turns of either direction."""
    bound = 2.0 * np.pi * turns
    return lambda draw: {"angles": np.asarray(draw.uniform(*shape, low=-bound, high=bound))}


def _small(draw: Draw) -> dict[str, Any]:
    sizes = np.array([1e-1, 1e-2, 1e-3, 3e-4, 1e-5, 1e-7])
    return {"angles": draw.uniform(6, low=0.5, high=1.0) * sizes * draw.signs(6)}


def _large(draw: Draw) -> dict[str, Any]:
    return {"angles": draw.uniform(2, 6, low=1000.0, high=10000.0) * draw.signs(2, 6)}


QUARTERS = np.arange(-4, 5) * (np.pi / 4)

VALUES = (
    Case(
        "ordinary",
        "ROTATION-DEFINITION",
        "angles of both signs within two turns",
        _anywhere(3, 4),
        flags=("ordinary",),
    ),
    Case(
        "one-radian",
        "ROTATION-DIRECTION",
        "angles whose sine and cosine differ in size: each entry has one place only",
        _these([0.3, 1.0, -1.0, 2.5]),
        flags=("ordinary",),
    ),
    Case(
        "eighths",
        "ROTATION-RADIANS",
        "multiples of an eighth of a turn: degrees or turns show at once",
        _these(QUARTERS),
        flags=("quarter-turns",),
    ),
    Case(
        "zero",
        "ROTATION-IDENTITY",
        "the angle 0 among others: only this one gives the identity",
        _these([[0.0, 1.5], [-2.0, 0.0]]),
        flags=("angle-zero",),
    ),
    Case(
        "large",
        "ROTATION-LARGE-ANGLES",
        "angles of 1000 to 10000: reducing them by a rounded turn is off by 1e-4 and more",
        _large,
        flags=("large-angles",),
    ),
    Case(
        "positions",
        "ROTATION-LARGE-ANGLES",
        "whole numbers, as rope has them for its first pair",
        _these([1.0, 22.0, 355.0, 710.0, 4095.0, 9999.0]),
        flags=("large-angles",),
    ),
    Case(
        "small",
        "ROTATION-SMALL-ANGLES",
        "angles from 0.1 to 1e-7 of both signs: a sine made of the cosine loses them",
        _small,
        flags=("small-angles",),
    ),
)

SHAPES = (
    *(
        Case(
            f"axes-{len(shape)}",
            "ROTATION-SHAPES",
            f"angles of shape {shape}",
            _anywhere(*shape),
            flags=("shapes",),
        )
        for shape in ((), (5,), (3, 4), (2, 1, 3), (2, 3, 1, 2), (1, 2, 1, 3, 2))
    ),
    Case(
        "two",
        "ROTATION-SIZES",
        "two angles: matrices stacked along the wrong axis have the same shape",
        _anywhere(2),
        flags=("shapes",),
    ),
    Case(
        "two-by-two",
        "ROTATION-SIZES",
        "2 x 2 angles: every axis of the result has length two",
        _anywhere(2, 2),
        flags=("shapes",),
    ),
    Case(
        "one-by-one",
        "ROTATION-SIZES",
        "axes of length one stay",
        _anywhere(1, 1),
        flags=("shapes",),
    ),
    Case(
        "empty",
        "ROTATION-EMPTY",
        "no angles",
        _these(np.zeros((0, 3))),
        golden=False,
    ),
)

GRADIENT = (
    Case(
        "gradient",
        "ROTATION-GRADIENT",
        "angles within two turns",
        _anywhere(3, 4),
        flags=("gradient",),
        wrt=ANGLES,
    ),
    Case(
        "gradient-special",
        "ROTATION-GRADIENT",
        "angle 0, quarter turns, a tiny and a large angle",
        _these([0.0, np.pi / 2, -np.pi, 1e-6, 5000.0]),
        flags=("gradient", "quarter-turns"),
        wrt=ANGLES,
    ),
)

DTYPES = (
    Case(
        "half",
        "ROTATION-HALF-VALUES",
        "angles within two turns",
        _anywhere(3, 4),
        flags=("half",),
        dtypes=HALVES,
    ),
    Case(
        "half-large",
        "ROTATION-HALF-VALUES",
        "whole angles that 16 bits hold exactly, up to 2048",
        _these([3.0, 100.0, 250.0, 256.0, 1024.0, 2048.0]),
        flags=("half", "large-angles"),
        dtypes=HALVES,
    ),
    Case(
        "double",
        "ROTATION-FLOAT64",
        "small angles that only float64 holds: a detour through float32 shows",
        _these([1.0 / 3.0, np.pi / 3.0, 1.0 / 7.0, 1e-9]),
        dtypes=("float64",),
        golden=False,
    ),
)

CALLS = (
    Case(
        "first-call",
        "ROTATION-NO-STATE",
        "what the others are asked after",
        _anywhere(2, 3),
        flags=("several-calls",),
    ),
    Case(
        "other-angles",
        "ROTATION-NO-STATE",
        "the same shape with other angles",
        _anywhere(2, 3, turns=1.0),
        flags=("several-calls",),
    ),
    Case(
        "other-shape",
        "ROTATION-NO-STATE",
        "as many angles in another shape",
        _anywhere(3, 2),
        flags=("several-calls",),
    ),
)

OPEN = (
    Case(
        "infinite",
        "ROTATION-NOT-FINITE",
        "an infinite angle beside a finite one",
        _these([np.inf, 1.0]),
        golden=False,
    ),
)

COMPONENT = Component(
    name="rotation",
    oracle=rotation,
    cases=(*VALUES, *SHAPES, *GRADIENT, *DTYPES, *CALLS, *OPEN),
    inputs=ANGLES,
    pooled=(-2, -1),
)
