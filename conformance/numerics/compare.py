"""Compare what came back with what was expected, entry by entry, and say what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.numerics.dtypes import is_float
from conformance.numerics.ensemble import Bound


@dataclass(frozen=True)
class Difference:
    """Outcome of one comparison.

    `margin` is the largest error over its tolerance (at most 1 passes; None where no error can be
    formed). `problem` is empty when everything is within tolerance. `index`, `expected`, `got`,
    `error` and `tolerance` are those of the worst entry; where infinity or NaN stands in place of
    something else (`special`) there is neither.
    """

    problem: str = ""
    margin: float | None = None
    index: tuple[int, ...] | None = None
    expected: float | None = None
    got: float | None = None
    error: float | None = None
    tolerance: float | None = None
    special: bool = False


def compare(got: Any, bound: Bound, what: str = "the result") -> Difference:
    """Compare an array with a bound of the same shape.

    NaN and infinities match only where the exact value has them too.
    """
    if tuple(got.shape) != bound.expected.shape:
        return Difference(
            problem=f"{what} has shape {tuple(got.shape)} instead of {bound.expected.shape}"
        )
    if not is_float(got):
        return Difference(problem=f"{what} has dtype {got.dtype} instead of a float")
    if not bound.expected.size:
        return Difference(margin=0.0)
    return _compare_values(got.astype(np.float64), bound, what)


def _compare_values(got: Any, bound: Bound, what: str) -> Difference:
    expected = bound.expected
    unfit = np.isfinite(got) != np.isfinite(expected)
    unfit |= ~np.isfinite(expected) & ~_same_special(got, expected)
    if unfit.any():
        return _special(got, bound, unfit, what)
    with np.errstate(invalid="ignore"):
        error = np.where(np.isfinite(expected), np.abs(got - expected), 0.0)
    limits = np.finfo(np.float64)
    with np.errstate(over="ignore"):  # where a float64 zero is expected the tolerance is its tiny
        ratio = np.minimum(error / np.maximum(bound.tolerance, limits.tiny), limits.max)
    worst = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    margin = float(ratio[worst])
    count = int((ratio > 1.0).sum())
    problem = ""
    if count:
        problem = f"{what} is wrong in {count} of {ratio.size} entries"
    return Difference(
        problem=problem,
        margin=margin,
        index=tuple(int(i) for i in worst),
        expected=float(expected[worst]),
        got=float(got[worst]),
        error=float(error[worst]),
        tolerance=float(bound.tolerance[worst]),
    )


def _same_special(got: Any, expected: Any) -> Any:
    return (np.isnan(got) & np.isnan(expected)) | (got == expected)


def _special(got: Any, bound: Bound, unfit: Any, what: str) -> Difference:
    where = np.unravel_index(int(np.argmax(unfit)), unfit.shape)
    count = int(unfit.sum())
    kind = _name(got[where])
    wanted = _name(bound.expected[where])
    if np.isfinite(bound.expected[where]):
        wanted = f"the finite number {bound.expected[where]:.6g}"
    return Difference(
        problem=f"{what} holds {kind} in place of {wanted} ({count} of {got.size} entries)",
        index=tuple(int(i) for i in where),
        expected=float(bound.expected[where]),
        got=float(got[where]),
        special=True,
    )


def _name(value: float) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "infinity" if value > 0 else "minus infinity"
    return f"{value:.6g}"
