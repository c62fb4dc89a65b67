"""The comparison: what counts as different, and the words for it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.numerics.compare import Difference, compare
from conformance.numerics.ensemble import Bound


def _bound(expected: Any, tolerance: Any = 0.1) -> Bound:
    values = np.asarray(expected, dtype=np.float64)
    return Bound(values, np.broadcast_to(np.asarray(tolerance, dtype=np.float64), values.shape))


def _compare(got: Any, bound: Bound, what: str = "the result") -> Difference:
    return compare(np.asarray(got, dtype=np.float32), bound, what)


def test_within_tolerance_reports_the_margin() -> None:
    difference = _compare([1.0, 2.05], _bound([1.0, 2.0]))
    assert difference.problem == ""
    assert difference.margin == pytest.approx(0.5, rel=1e-5)
    assert difference.index == (1,)


def test_exactly_at_the_tolerance_passes() -> None:
    assert _compare([1.5], _bound([1.0], 0.5)).problem == ""


def test_beyond_tolerance_names_the_worst_entry() -> None:
    got = [[1.0, 2.0], [3.5, 4.2]]
    difference = _compare(got, _bound([[1.0, 2.0], [3.0, 4.0]], [[0.1], [0.05]]), "the gradient")
    assert difference.problem == "the gradient is wrong in 2 of 4 entries"
    assert difference.index == (1, 0)
    assert (difference.expected, difference.got) == (3.0, 3.5)
    assert difference.error == 0.5
    assert difference.tolerance == 0.05
    assert difference.margin == pytest.approx(10.0)


def test_each_entry_has_its_own_tolerance() -> None:
    bound = _bound([1.0, 1000.0], [1e-6, 1.0])
    assert _compare([1.0, 1000.5], bound).problem == ""
    assert _compare([1.5, 1000.0], bound).problem == "the result is wrong in 1 of 2 entries"


@pytest.mark.parametrize(
    ("got", "word"),
    [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "minus infinity")],
)
def test_non_finite_in_place_of_a_number_has_its_own_words(got: float, word: str) -> None:
    difference = _compare([2.0, got, got], _bound([2.0, 3.0, 4.0], 1e30))
    expected = f"the result holds {word} in place of the finite number 3 (2 of 3 entries)"
    assert difference.problem == expected
    assert difference.index == (1,)
    assert difference.margin is None
    assert difference.special
    assert difference.tolerance is None, "no error can be formed, so there is nothing to hold it to"


@pytest.mark.parametrize(
    ("got", "wanted", "problem"),
    [
        (np.inf, -np.inf, "the result holds infinity in place of minus infinity (1 of 1 entries)"),
        (np.nan, np.inf, "the result holds NaN in place of infinity (1 of 1 entries)"),
        (7.0, np.inf, "the result holds 7 in place of infinity (1 of 1 entries)"),
        (0.0, np.nan, "the result holds 0 in place of NaN (1 of 1 entries)"),
    ],
)
def test_special_values_stand_only_for_themselves(got: float, wanted: float, problem: str) -> None:
    assert _compare([got], _bound([wanted])).problem == problem


def test_special_values_match_themselves() -> None:
    specials = [np.nan, np.inf, -np.inf, 1.0]
    difference = _compare(specials, _bound(specials))
    assert difference.problem == ""
    assert difference.margin == 0.0


def test_signed_zeros_are_equal() -> None:
    assert _compare([-0.0], _bound([0.0], 0.0)).problem == ""


def test_other_shapes_are_never_broadcast() -> None:
    difference = _compare([[1.0, 1.0]], _bound([1.0, 1.0]))
    assert difference.problem == "the result has shape (1, 2) instead of (2,)"
    assert _compare(1.0, _bound([1.0])).problem == "the result has shape () instead of (1,)"


def test_other_dtypes_than_floats_are_named() -> None:
    difference = compare(np.array([1, 2]), _bound([1.0, 2.0]))
    assert difference.problem == "the result has dtype int64 instead of a float"
    assert "dtype bool" in compare(np.array([True]), _bound([1.0])).problem


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_every_float_format_is_read(dtype: Any) -> None:
    assert compare(np.array([1.5], dtype=dtype), _bound([1.5], 0.0)).problem == ""


def test_a_tolerance_of_zero_asks_for_every_bit() -> None:
    assert _compare([1.0], _bound([1.0], 0.0)).problem == ""
    neighbour = np.nextafter(np.float32(1), np.float32(2))
    assert "wrong in 1 of 1" in _compare([neighbour], _bound([1.0], 0.0)).problem


def test_nothing_to_compare_is_no_difference() -> None:
    difference = _compare(np.zeros((0, 3)), _bound(np.zeros((0, 3))))
    assert difference.problem == ""
    assert difference.margin == 0.0
    assert "shape" in _compare(np.zeros((0, 3)), _bound(np.zeros((0, 2)))).problem


def test_an_endless_tolerance_takes_any_finite_number() -> None:
    anything = _bound([1.0], np.inf)
    assert _compare([-3e38], anything).problem == ""
    assert "NaN" in _compare([np.nan], anything).problem
