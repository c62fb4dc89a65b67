"""Inputs on which mistakes in RMSNorm show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from conformance.components.rmsnorm.oracle import rmsnorm
from conformance.numerics.draw import Draw
from conformance.suite.case import Case
from conformance.suite.component import Component

HALF = ("bfloat16", "float16")
RANKS = ((3,), (2, 3), (2, 1, 3), (2, 1, 2, 2), (1, 2, 1, 2, 2))
"""Leading axes, from one to five of them."""

Build = Callable[[Draw], dict[str, Any]]


def arguments(x: Any, weights: Any, eps: float = 1e-5) -> dict[str, Any]:
    """Keyword arguments for float64 rows and gain."""
    return {"d_model": x.shape[-1], "eps": eps, "weights": weights, "in_features": x}


def gain(draw: Draw, d_model: int) -> Any:
    """A gain that is neither one nor positive throughout."""
    return draw.uniform(d_model, low=0.5, high=2.0) * draw.signs(d_model)


def _sized(d_model: int, *leading: int, eps: float = 1e-5) -> Build:
    def build(draw: Draw) -> dict[str, Any]:
        return arguments(draw.normal(*leading, d_model), gain(draw, d_model), eps)

    return build


def _scaled(scales: Sequence[float], d_model: int = 8, eps: float = 1e-5) -> Build:
    """One row per scale."""

    def build(draw: Draw) -> dict[str, Any]:
        rows = draw.normal(len(scales), d_model) * np.array(scales)[:, None]
        return arguments(rows, gain(draw, d_model), eps)

    return build


def _near(eps: float) -> Build:
    """Rows whose mean square is above, near and below `eps`."""
    root = float(np.sqrt(eps))
    return _scaled((10 * root, 2 * root, root, 0.3 * root, 0.01 * root), d_model=6, eps=eps)


def _gains(draw: Draw) -> dict[str, Any]:
    weights = np.array([0.0, 1.0, -1.0, 300.0, -1e-3, 0.25, -7.0])
    return arguments(draw.normal(3, 7), weights)


def _off_centre(draw: Draw) -> dict[str, Any]:
    means = np.array([100.0, -30.0, 3.0, 1000.0])[:, None]
    rows = draw.normal(4, 10) + means
    rows[2] = 3.0  # a constant row: centred, nothing would be left of it
    return arguments(rows, gain(draw, 10))


def _zero_rows(draw: Draw) -> dict[str, Any]:
    rows = draw.normal(4, 6)
    rows[1] = rows[2] = 0.0
    return arguments(rows, gain(draw, 6))


def _one_hot(draw: Draw) -> dict[str, Any]:
    rows = np.diag([2.0, -0.5, 1e-2, 3e4, 1.0])
    return arguments(rows, gain(draw, 5))


def _long(draw: Draw) -> dict[str, Any]:
    return arguments(draw.normal(3, 4096), gain(draw, 4096))


def _long_and_equal(draw: Draw) -> dict[str, Any]:
    """Equal squares: their rounding errors share a sign and do not average out."""
    rows = draw.uniform(3, 1, low=0.5, high=2.0) * draw.signs(3, 4096)
    return arguments(rows, gain(draw, 4096))


def _float32_gain(draw: Draw) -> dict[str, Any]:
    made = _sized(10, 2, 3)(draw)
    return {**made, "weights": made["weights"].astype(np.float32)}


def _beyond_the_root(draw: Draw) -> dict[str, Any]:
    """From 260, the first square that float16 cannot hold, to 20000."""
    sizes = draw.uniform(4, 6, low=260.0, high=400.0) * np.array([1.0, 3.0, 10.0, 50.0])[:, None]
    return arguments(sizes * draw.signs(4, 6), gain(draw, 6))


CASES = (
    Case(
        "ordinary",
        "RMSNORM-DEFINITION",
        "rows of order one with a gain of both signs",
        _sized(12, 2, 5),
        flags=("ordinary",),
    ),
    Case(
        "other-numbers",
        "RMSNORM-DEFINITION",
        "the sizes of the ordinary case with another gain and eps: remembered ones show",
        _sized(12, 2, 5, eps=0.05),
        flags=("ordinary",),
    ),
    Case(
        "tiny-rows",
        "RMSNORM-EPS",
        "the mean square is near or far below eps: eps outside the root, left out or of another "
        "size shows",
        _scaled((1e-1, 1e-2, 3e-3, 1e-3, 1e-4, 1e-6)),
        flags=("eps-dominates",),
    ),
    *(
        Case(
            f"eps-{eps:g}",
            "RMSNORM-EPS-GIVEN",
            f"rows above, near and below the root of eps = {eps:g}: any other eps shows",
            _near(eps),
            flags=("eps-dominates",),
        )
        for eps in (1e-8, 1e-6, 1e-3, 0.1)
    ),
    Case(
        "gains",
        "RMSNORM-GAIN",
        "gains that are zero, one, negative, tiny and large: adding, ignoring or taking the size "
        "of a gain shows",
        _gains,
        flags=("gain",),
    ),
    Case(
        "off-centre",
        "RMSNORM-NO-CENTERING",
        "means many times the spread, one row constant: subtracting the mean shows",
        _off_centre,
        flags=("large-mean",),
    ),
    Case(
        "mixed-magnitudes",
        "RMSNORM-ROWS",
        "rows of very different size side by side: shared statistics show",
        _scaled((1.0, 1e6, 1e-3, 30.0, 1e3)),
        flags=("mixed-magnitudes",),
    ),
    Case(
        "equal-axes",
        "RMSNORM-ROWS",
        "batch = sequence = features: statistics or gain along another axis raise no error",
        _sized(4, 4, 4),
        flags=("equal-axes",),
    ),
    Case(
        "one-hot",
        "RMSNORM-ROWS",
        "a single entry in each row, of very different size: the mean runs over all features",
        _one_hot,
        flags=("one-hot",),
    ),
    Case(
        "large",
        "RMSNORM-LARGE",
        "rows up to 1e18, whose squares float32 holds",
        _scaled((1e18, 1.0, 1e15, 1e9, 1e17), d_model=6),
        flags=("large",),
    ),
    Case(
        "zero-rows",
        "RMSNORM-ZERO-ROWS",
        "two rows of zeros beside ordinary ones: the result is zero there",
        _zero_rows,
        flags=("zero-rows",),
    ),
    Case(
        "long-rows",
        "RMSNORM-LONG-ROWS",
        "4096 random features",
        _long,
        flags=("long-rows",),
        golden=False,
    ),
    Case(
        "long-equal-rows",
        "RMSNORM-LONG-ROWS",
        "4096 equal squares: rounding errors add up in one direction",
        _long_and_equal,
        flags=("long-rows",),
        golden=False,
    ),
    Case(
        "one-feature",
        "RMSNORM-SIZES",
        "one feature: little more than its sign is left of it",
        _sized(1, 2, 3),
        flags=("size-one",),
    ),
    Case(
        "one-row",
        "RMSNORM-SIZES",
        "batch and sequence of length one",
        _sized(5, 1, 1),
        flags=("size-one",),
    ),
    Case(
        "odd-size",
        "RMSNORM-SIZES",
        "a width that is neither even nor a multiple of anything usual",
        _sized(37, 2),
        flags=("ordinary",),
    ),
    *(
        Case(
            f"rank-{len(leading) + 1}",
            "RMSNORM-LEADING-AXES",
            f"leading axes {leading}: all of them are kept, in order",
            _sized(5, *leading),
            flags=("leading-axes",),
        )
        for leading in RANKS
    ),
    Case(
        "vector",
        "RMSNORM-VECTOR",
        "one vector, no batch",
        _sized(6),
        flags=("bare-vector",),
    ),
    Case(
        "empty",
        "RMSNORM-EMPTY",
        "a batch of no rows",
        _sized(5, 0),
        flags=("empty",),
    ),
    Case(
        "half",
        "RMSNORM-HALF",
        "16-bit rows and gain: the result has the same dtype and is right to a rounding or two",
        _sized(10, 2, 3),
        flags=("low-precision",),
        dtypes=HALF,
    ),
    Case(
        "half-float32-gain",
        "RMSNORM-HALF",
        "16-bit rows and a float32 gain: the input's dtype decides the result's",
        _float32_gain,
        flags=("low-precision", "float32-gain"),
        dtypes=HALF,
    ),
    Case(
        "half-squares-overflow",
        "RMSNORM-HALF-RANGE",
        "numbers from 260, whose squares float16 cannot hold: squaring before widening gives 0",
        _beyond_the_root,
        flags=("low-precision", "square-overflows"),
        dtypes=HALF,
    ),
    Case(
        "half-squares-vanish",
        "RMSNORM-HALF-RANGE",
        "rows of size 1e-4 to 1e-2 with eps 1e-8, which float16 rounds to zero: squaring before "
        "widening gives infinities",
        _scaled((1e-4, 3e-4, 1e-3, 1e-2), eps=1e-8),
        flags=("low-precision", "square-underflows"),
        dtypes=HALF,
    ),
    Case(
        "gradient",
        "RMSNORM-GRADIENT",
        "the derivative at rows of order one",
        _sized(7, 2, 3),
        flags=("gradient",),
        wrt=("in_features",),
    ),
    Case(
        "gradient-wide",
        "RMSNORM-GRADIENT",
        "the derivative of 48 features with three leading axes",
        _sized(48, 2, 1, 3),
        flags=("gradient",),
        wrt=("in_features",),
    ),
    Case(
        "gradient-tiny-rows",
        "RMSNORM-GRADIENT",
        "the derivative where eps counts: the divisor still depends on the row",
        _near(1e-5),
        flags=("gradient", "eps-dominates"),
        wrt=("in_features",),
    ),
    Case(
        "gradient-zero-rows",
        "RMSNORM-GRADIENT",
        "the derivative at rows of zeros is the gain over the root of eps, not NaN",
        _zero_rows,
        flags=("gradient", "zero-rows"),
        wrt=("in_features",),
    ),
    Case(
        "gradient-equal-axes",
        "RMSNORM-GRADIENT",
        "the derivative with batch = sequence = features",
        _sized(3, 3, 3),
        flags=("gradient", "equal-axes"),
        wrt=("in_features",),
    ),
    Case(
        "weight-gradient",
        "RMSNORM-WEIGHT-GRADIENT",
        "the derivative with respect to the gain sums over batch and sequence",
        _sized(5, 2, 3),
        flags=("weight-gradient",),
        wrt=("weights",),
    ),
)

COMPONENT = Component(
    name="rmsnorm", oracle=rmsnorm, cases=CASES, inputs=("in_features",), parameters=("weights",)
)
