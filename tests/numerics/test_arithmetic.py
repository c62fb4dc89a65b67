"""The models of arithmetic against float arithmetic as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.numerics import array as m
from conformance.numerics.arithmetic import (
    CHUNK,
    ORDERS,
    POOL_SIZE,
    Arithmetic,
    Honest,
    Perturbed,
)
from conformance.numerics.array import Array
from conformance.numerics.draw import Draw
from conformance.numerics.dtypes import FLOAT32, FORMATS, Format, round_to
from conformance.numerics.ensemble import Question, bounds

BFLOAT16, FLOAT16 = FORMATS["bfloat16"], FORMATS["float16"]


def _float32(*shape: int, key: str, scale: float = 1.0) -> Any:
    return Draw("arithmetic", key).normal(*shape, scale=scale).astype(np.float32)


# ---------------------------------------------------------------- exact


def test_exact_arithmetic_rounds_nothing_and_takes_the_first_form() -> None:
    exact = Arithmetic()
    values = np.array([1 / 3, 1e300])
    assert exact.round(values, BFLOAT16) is values
    assert [exact.choose(3) for _ in range(4)] == [0, 0, 0, 0]


def test_forms_rotate_over_places_and_runs() -> None:
    assert [Perturbed(1, form=0).choose(3) for _ in range(2)] == [0, 0]
    run = Perturbed(1, form=1)
    assert [run.choose(3) for _ in range(4)] == [1, 2, 0, 1]


# ---------------------------------------------------------------- honest


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_honest_rounding_is_that_of_the_format(fmt: Format) -> None:
    values = Draw("round", fmt.name).normal(50) / 3.0
    rounded = Honest("running").round(values, fmt)
    assert np.array_equal(rounded, values.astype(fmt.numpy).astype(np.float64))


def test_running_sums_are_those_of_a_loop_in_float32() -> None:
    terms = _float32(3, 57, key="loop")
    expected = []
    for row in terms:
        total = np.float32(0)
        for term in row:
            total = np.float32(total + term)
        expected.append([float(total)])
    values = terms.astype(np.float64)
    assert Honest("running").sum(values, -1, FLOAT32).tolist() == expected
    assert Honest("reversed").sum(values[:, ::-1], -1, FLOAT32).tolist() == expected


def test_pairwise_and_chunked_sums_add_in_their_order() -> None:
    # 1 + 2^-24 is lost in float32, 2^-24 + 2^-24 is not: the order shows in the result.
    terms = np.full((1, 2 * CHUNK), 2.0**-24)
    terms[0, 0] = 1.0
    unit = 2.0**-23
    pairwise = Honest("pairwise").sum(terms, -1, FLOAT32)
    assert pairwise.tolist() == [[1.0 + (CHUNK - 1) * unit]]
    chunked = Honest("chunked").sum(terms, -1, FLOAT32)
    assert chunked.tolist() == [[1.0 + CHUNK / 2 * unit]]
    assert Honest("running").sum(terms, -1, FLOAT32).tolist() == [[1.0]]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 64, 100])
def test_every_order_sums_every_term_once(order: str, length: int) -> None:
    terms: Any = 2.0 ** np.arange(length).reshape(1, -1) if length < 24 else np.ones((1, length))
    assert Honest(order).sum(terms, -1, FLOAT32).tolist() == [[terms.sum()]]


@pytest.mark.parametrize("order", ORDERS)
def test_honest_products_are_those_of_float32(order: str) -> None:
    left, right = _float32(4, 6, key="left"), _float32(6, 3, key="right")
    product = Honest(order).matmul(left.astype(float), right.astype(float), FLOAT32)
    exact = left.astype(float) @ right.astype(float)
    size = np.abs(left.astype(float)) @ np.abs(right.astype(float))
    assert np.array_equal(product, round_to(product, FLOAT32))
    assert (np.abs(product - exact) <= 7 * FLOAT32.unit * size).all()


def test_half_sums_are_accumulated_in_float32_unless_narrow() -> None:
    ones = np.ones((1, 1000))
    assert Honest("running").sum(ones, -1, BFLOAT16).tolist() == [[1000.0]]
    narrow = Honest("running", wide_accumulator=False)
    assert narrow.sum(ones, -1, BFLOAT16).tolist() == [[256.0]]
    assert narrow.sum(np.ones((1, 3000)), -1, FLOAT16).tolist() == [[2048.0]]


def test_sums_along_other_axes() -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    for arithmetic in (Honest("chunked"), Arithmetic()):
        assert np.array_equal(arithmetic.sum(values, 1, FLOAT32), values.sum(axis=1, keepdims=True))


# ---------------------------------------------------------------- perturbed


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_every_result_is_moved_by_one_roundoff_either_way(fmt: Format) -> None:
    values = np.linspace(1.01, 1.99, 1000)
    moved = (Perturbed(seed=5).round(values, fmt) - values) / (values * fmt.unit)
    if fmt.name == "float64":  # the smallest step it can make is two roundoffs, rounded again
        assert (np.abs(moved) > 1.0).all()
        assert (np.abs(moved) < 3.0).all()
    else:
        assert (np.abs(np.abs(moved) - 1.0) < 1e-6).all()
    assert 400 < (moved > 0).sum() < 600


def test_places_get_unrelated_signs_and_runs_repeat() -> None:
    values = np.ones(512)
    run, again, other = Perturbed(seed=5), Perturbed(seed=5), Perturbed(seed=6)
    first, second = run.round(values, FLOAT32), run.round(values, FLOAT32)
    assert np.array_equal(first, again.round(values, FLOAT32))
    for unrelated in (second, other.round(values, FLOAT32)):
        assert 150 < (first == unrelated).sum() < 362


def test_arrays_larger_than_the_pool_of_signs() -> None:
    values = np.ones((3, POOL_SIZE))
    moved = Perturbed(seed=2).round(values, FLOAT32)
    assert moved.shape == values.shape
    assert set(np.unique(moved)) == {1.0 - FLOAT32.unit, 1.0 + FLOAT32.unit}


def test_zeros_and_infinities_stay() -> None:
    values = np.array([0.0, -0.0, np.inf, -np.inf])
    assert np.array_equal(Perturbed(1).round(values, FLOAT16), values)


def test_subnormal_float16_numbers_move_by_half_a_quantum() -> None:
    values = np.full(100, 3 * FLOAT16.quantum)
    moved = np.abs(Perturbed(1).round(values, FLOAT16) - values)
    assert (moved >= FLOAT16.quantum / 2).all()
    assert (moved < FLOAT16.quantum).all()


def test_a_single_term_is_no_sum() -> None:
    values = np.array([[1 / 3]])
    assert Perturbed(1).sum(values, -1, FLOAT32).tolist() == values.tolist()


# ---------------------------------------------------------------- both, against the real thing

Definition = Callable[[Any], Any]


def _array_softmax(x: Array) -> Array:
    powers = m.exp(x - m.maximum(x))
    return powers / m.total(powers)


def _real_softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True, dtype=np.float32)


def _array_norm(x: Array) -> Array:
    return x / m.sqrt(m.mean(m.square(x)) + 1e-5)


def _real_norm(x: Any) -> Any:
    root = np.sqrt(np.mean(x * x, axis=-1, keepdims=True, dtype=np.float32) + np.float32(1e-5))
    return x / root


def _array_chain(x: Array) -> Array:
    return m.sin(x * 0.7) * m.tanh(x) + m.exp(-m.square(x)) / 3.0


def _real_chain(x: Any) -> Any:
    return np.sin(x * np.float32(0.7)) * np.tanh(x) + np.exp(-(x * x)) / np.float32(3.0)


def _array_square(x: Array) -> Array:
    return x @ m.swap(x)


def _real_square(x: Any) -> Any:
    """Strictly in sequence, the worst order there is."""
    terms = x[:, None, :] * x[None, :, :]
    return np.add.accumulate(terms, axis=-1)[..., -1]


@pytest.mark.parametrize("length", [3, 30, 1000])
@pytest.mark.parametrize(
    ("definition", "real"),
    [
        (_array_softmax, _real_softmax),
        (_array_norm, _real_norm),
        (_array_chain, _real_chain),
        (_array_square, _real_square),
    ],
    ids=["softmax", "norm", "chain", "product"],
)
def test_tolerances_hold_real_float32_errors_and_are_not_idle(
    definition: Callable[[Array], Array], real: Definition, length: int
) -> None:
    """Float32 code is within tolerance, and not by so much that the tolerance means nothing."""
    x = _float32(6, length, key=f"real {length}")
    bound = bounds(Question(lambda *, x: definition(x), {"x": x})).result
    result = real(x)
    assert result.dtype == np.float32
    ratio = np.abs(result.astype(np.float64) - bound.expected) / bound.tolerance
    assert ratio.max() < 0.5
    assert ratio.max() > 0.002


def test_equal_terms_are_foreseen() -> None:
    """Errors of equal terms share a sign; the honest orders know that, random signs do not."""
    x = np.full((1, 4096), 0.1, dtype=np.float32)
    bound = bounds(Question(lambda *, x: m.total(x), {"x": x})).result
    in_sequence = float(np.add.accumulate(x, axis=-1)[0, -1])
    error = abs(in_sequence - float(bound.expected[0, 0]))
    random_only = 12 * FLOAT32.unit * bound.expected[0, 0]
    assert random_only < error < bound.tolerance[0, 0]
