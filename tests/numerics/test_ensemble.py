"""Tolerances: derived for each input, pooled as asked, refused where they would mean nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.errors import InternalError
from conformance.numerics import array as m
from conformance.numerics.arithmetic import Honest, Perturbed
from conformance.numerics.array import Array
from conformance.numerics.draw import Draw
from conformance.numerics.dtypes import FLOAT32, FLOAT64, FORMATS
from conformance.numerics.ensemble import MULTIPLE, Question, bounds, law_tolerance, members


def _exponential(*, x: Array) -> Array:
    return m.exp(x)


def _scaled(*, x: Array, weights: dict[str, Array], power: int) -> Array:
    return x * weights["gain"] * float(power)


def _float32(values: Any) -> Any:
    return np.asarray(values, dtype=np.float32)


def test_members_are_the_same_every_time() -> None:
    kinds = [type(member) for member in members()]
    assert kinds == [type(member) for member in members()]
    assert set(kinds) == {Perturbed, Honest}


def test_expected_is_exact_and_tolerance_a_multiple_of_the_spread() -> None:
    x = _float32([0.5, 1.0, 2.0])
    bound = bounds(Question(_exponential, {"x": x}, pooled=())).result
    assert np.array_equal(bound.expected, np.exp(x.astype(np.float64)))
    in_units = bound.tolerance / (np.abs(bound.expected) * FLOAT32.unit * MULTIPLE)
    assert (in_units > 0.999).all()
    assert (in_units < 1.01).all()


def test_bounds_repeat() -> None:
    x = Draw("bounds").normal(3, 5).astype(np.float32)
    first, second = (bounds(Question(_exponential, {"x": x})) for _ in range(2))
    assert np.array_equal(first.result.tolerance, second.result.tolerance)


@pytest.mark.parametrize(("pooled", "distinct"), [((), 12), ((-1,), 3), ((-2, -1), 1)])
def test_deviations_are_pooled_over_the_axes_asked_for(
    pooled: tuple[int, ...], distinct: int
) -> None:
    x = _float32(np.linspace(0.0, 5.0, 12).reshape(3, 4))
    tolerance = bounds(Question(_exponential, {"x": x}, pooled=pooled)).result.tolerance
    assert tolerance.shape == (3, 4)
    assert np.unique(tolerance).size == distinct


def test_axes_that_are_not_there_are_not_pooled() -> None:
    tolerance = bounds(Question(_exponential, {"x": _float32(1.0)})).result.tolerance
    assert tolerance.shape == ()


def test_no_tolerance_is_below_the_smallest_normal_number() -> None:
    def half(*, x: Array) -> Array:
        return x * 0.5

    for name in ("float32", "bfloat16", "float16"):
        zeros = np.zeros(3, dtype=FORMATS[name].numpy)
        tolerance = bounds(Question(half, {"x": zeros})).result.tolerance
        assert tolerance.tolist() == [FORMATS[name].tiny] * 3


def test_a_copy_has_no_tolerance_but_the_floor() -> None:
    def rows(*, x: Array) -> Array:
        return m.take(x, np.array([1, 0]))

    x = Draw("copy").normal(2, 3).astype(np.float32)
    assert (bounds(Question(rows, {"x": x})).result.tolerance == FLOAT32.tiny).all()


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16"])
def test_tolerances_follow_the_format(name: str) -> None:
    x = np.array([1.0], dtype=FORMATS[name].numpy)
    bound = bounds(Question(_exponential, {"x": x})).result
    one_rounding = MULTIPLE * FORMATS[name].unit * np.e
    assert one_rounding / 2 < bound.tolerance[0] < one_rounding * 2


def test_wide_input_may_be_judged_at_a_narrower_format() -> None:
    x = np.array([1 / 3])
    wide = bounds(Question(_exponential, {"x": x})).result
    narrow = bounds(Question(_exponential, {"x": x}, working=FLOAT32)).result
    assert np.array_equal(wide.expected, narrow.expected)
    assert wide.tolerance[0] < 100 * FLOAT64.unit
    in_float32 = np.exp(np.float32(1 / 3)).astype(np.float64)
    assert abs(in_float32 - wide.expected[0]) > wide.tolerance[0]
    assert abs(in_float32 - narrow.expected[0]) < narrow.tolerance[0]


def test_weights_in_a_dictionary_and_plain_arguments_pass_through() -> None:
    arguments = {"x": _float32([1.0, 2.0]), "weights": {"gain": _float32([3.0, 4.0])}, "power": 2}
    wrt = ("x", "weights.gain")
    found = bounds(Question(_scaled, arguments, wrt=wrt, cotangent=np.array([1.0, -1.0])))
    assert found.result.expected.tolist() == [6.0, 16.0]
    assert found.gradients["x"].expected.tolist() == [6.0, -8.0]
    assert found.gradients["weights.gain"].expected.tolist() == [2.0, -4.0]
    assert (found.gradients["x"].tolerance > 0).all()


def test_inputs_whose_honest_evaluation_overflows_are_refused() -> None:
    def there_and_back(*, x: Array) -> Array:
        return m.log(m.exp(x))

    with pytest.raises(InternalError, match="unfit for float16"):
        bounds(Question(there_and_back, {"x": np.array([20.0], dtype=np.float16)}))


def test_exact_infinities_have_no_error() -> None:
    def shifted(*, x: Array) -> Array:
        return x * 2.0

    bound = bounds(Question(shifted, {"x": _float32([-np.inf, 1.0])}, pooled=())).result
    assert bound.expected[0] == -np.inf
    assert bound.tolerance[0] == FLOAT32.tiny


def test_law_tolerance_spans_the_spread_of_a_composed_quantity() -> None:
    x = Draw("law").normal(4, 3)

    def quantity(arithmetic: Any) -> Any:
        return m.total(m.exp(Array(x, FLOAT32, arithmetic))).value

    exact, tolerance = law_tolerance(quantity)
    assert np.array_equal(exact, np.exp(x).sum(-1, keepdims=True))
    assert tolerance.shape == exact.shape
    assert np.unique(tolerance).size == 1
    assert FLOAT32.unit * exact.max() < tolerance.max() < 1000 * FLOAT32.unit * exact.max()
