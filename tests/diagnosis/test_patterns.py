"""What is said of wrong answers that no known mistake explains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.candidate.messages import Outcome, Reply
from conformance.diagnosis.observe import Observation
from conformance.diagnosis.patterns import pattern
from conformance.numerics.dtypes import FORMATS, round_to
from conformance.numerics.ensemble import Bound, Bounds
from conformance.suite.grader import Example

RANDOM = np.random.default_rng(3)
ROWS = RANDOM.normal(size=(3, 5, 6))
OTHERS = RANDOM.normal(size=(2, 4, 6))
SQUARES = RANDOM.normal(size=(2, 4, 4))


def observed(got: Any, right: Any) -> Observation:
    """An answer beside what is right up to 1e-6."""
    bounds = Bounds(Bound(right, np.full(right.shape, 1e-6)))
    reply = Reply(Outcome.PASSED, outputs=(np.asarray(got, np.float32),), dtype="float32")
    return Observation(Example({}, "", "", bounds=bounds), reply)


def said(change: Callable[[Any], Any], *rights: Any) -> str:
    """The pattern of answers that are made from the right ones."""
    return pattern([observed(change(right), right) for right in rights or (ROWS, OTHERS)])


def shifted(values: Any, axis: int, step: int) -> Any:
    """One step along an axis, with zeros where nothing is left."""
    moved = np.roll(values, step, axis)
    edge = [slice(None)] * values.ndim
    edge[axis] = slice(0, step) if step > 0 else slice(step, None)
    moved[tuple(edge)] = 0.0
    return moved


def changed(values: Any, where: Any, by: float = 2.0) -> Any:
    """Other numbers in some places."""
    return np.where(where, values + by, values)


def from_entry(start: int) -> Callable[[Any], Any]:
    return lambda values: changed(values, np.arange(values.shape[-1]) >= start)


PATTERNS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda v: 1.25 * v, "every number is 1.25 times what it should be"),
    (lambda v: -v, "every number has the opposite sign"),
    (lambda v: v + 0.5, "every number is off by the same amount, 0.5"),
    (lambda v: 0.0 * v + 3.0, "every number is 3"),
    (lambda v: 0.0 * v, "every number is 0"),
    (lambda v: shifted(v, -1, 1), "the numbers come one step late along the last axis"),
    (lambda v: shifted(v, -1, -1), "the numbers come one step early along the last axis"),
    (lambda v: shifted(v, -2, 1), "the numbers come one step late along the last axis but one"),
    (lambda v: shifted(v, -2, -1), "the numbers come one step early along the last axis but one"),
    (lambda v: v[..., ::-1], "the numbers stand in reverse order along the last axis"),
    (lambda v: v[..., ::-1, :], "the numbers stand in reverse order along the last axis but one"),
    (
        lambda v: v[..., [0, 2, 4, 1, 3, 5]],
        "each row holds the right numbers in another order: 0, 2, 4, 1, 3, 5",
    ),
    (
        lambda v: np.tanh(v.sum(-1, keepdims=True)) * v,
        "each row is off by a factor of its own, from",
    ),
    (
        lambda v: np.linspace(0.5, 3.0, v.shape[-1]) * v,
        "each feature is off by a factor of its own, from 0.5 to 3",
    ),
    (lambda v: changed(v, v < 0), "exactly the negative numbers are wrong"),
    (lambda v: np.maximum(v, 0.0), "exactly the negative numbers are wrong"),
    (lambda v: changed(v, v > 0), "exactly the positive numbers are wrong"),
    (from_entry(3), "only the entries from 3 on along the last axis are wrong"),
    (from_entry(5), "only entry 5 along the last axis is wrong"),
    (
        lambda v: changed(v, np.arange(v.shape[-1]) < 2),
        "only the entries up to 1 along the last axis are wrong",
    ),
    (
        lambda v: changed(v, np.arange(v.shape[-1]) % 2 == 1),
        "only the odd entries along the last axis are wrong",
    ),
    (
        lambda v: changed(v, np.arange(v.shape[-2])[:, None] >= 2),
        "only the entries from 2 on along the last axis but one are wrong",
    ),
    (
        lambda v: v.astype(np.float16),
        "it is right up to the precision of float16, and no further",
    ),
    (
        lambda v: v.astype(ml_dtypes.bfloat16),
        "it is right up to the precision of bfloat16, and no further",
    ),
]


@pytest.mark.parametrize(("change", "words"), PATTERNS, ids=[p[1] for p in PATTERNS])
def test_the_pattern_is_told(change: Callable[[Any], Any], words: str) -> None:
    assert said(change).startswith(words)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_rounding_somewhere_on_the_way_is_told(name: str) -> None:
    """The answer is no number of the format, its error is of that size."""

    def with_rounded_weight(values: Any) -> Any:
        return 3.0 * round_to(values / 3.0, FORMATS[name])

    words = f"it is right up to the precision of {name}, and no further"
    assert said(with_rounded_weight) == words


def test_exchanged_axes_of_equal_length_are_told() -> None:
    words = said(lambda v: np.swapaxes(v, -1, -2), SQUARES)
    assert words == "the last axis but one and the last axis are exchanged"


def test_rows_in_another_order_are_told_without_an_order_of_features() -> None:
    words = said(lambda v: v[:, [2, 0, 3, 1, 4]], ROWS)
    assert words == "the right numbers are all there, in another order"


def test_what_varies_between_inputs_is_told_of_the_first() -> None:
    answers = [observed(2.0 * ROWS, ROWS), observed(3.0 * OTHERS, OTHERS)]
    words = "every number is 2 times what it should be (on the first input; it varies from input"
    assert pattern(answers).startswith(words)


def test_shapes_are_told() -> None:
    single = ROWS[:, :1]
    assert said(np.squeeze, single) == "axes of length 1 are missing in the result"
    assert said(lambda v: v.mT) == "the axes of the result are in another order"
    assert said(lambda v: v.reshape(-1, 6)) == "the result has all its numbers, in other axes"
    assert said(lambda v: v[0]) == ""


def test_noise_is_no_pattern() -> None:
    assert said(lambda v: v + RANDOM.normal(size=v.shape)) == ""
    assert said(lambda v: RANDOM.normal(size=v.shape)) == ""


def test_a_pattern_must_hold_on_every_input() -> None:
    noise = OTHERS + RANDOM.normal(size=OTHERS.shape)
    assert pattern([observed(1.25 * ROWS, ROWS), observed(noise, OTHERS)]) == ""


def test_a_few_numbers_are_no_pattern() -> None:
    right = np.array([1.0, 2.0, 3.0])
    assert said(lambda v: 2.0 * v, right) == ""


def test_answers_that_are_right_and_exceptions_say_nothing() -> None:
    raised = Observation(observed(ROWS, ROWS).example, Reply(Outcome.RAISED, "ValueError: no"))
    assert pattern([raised, observed(ROWS, ROWS)]) == ""
    words = "every number is 1.25 times what it should be"
    assert pattern([raised, observed(1.25 * ROWS, ROWS)]) == words


def test_numbers_that_are_not_finite_are_no_pattern() -> None:
    with np.errstate(invalid="ignore"):
        assert said(lambda v: v * np.nan) == ""
        assert said(lambda v: np.where(np.arange(6) == 1, np.nan, v)) == (
            "only entry 1 along the last axis is wrong"
        )


def answered_to(x: Any, got: Any, right: Any) -> Observation:
    """An answer to an input of its own shape."""
    seen = observed(got, right)
    bounds = seen.example.bounds
    return Observation(Example({"in_features": x}, "", "", bounds=bounds), seen.reply)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (lambda x: x >= 1.0, "whose input is 1 or more"),
        (lambda x: x <= -1.0, "whose input is -1 or less"),
        (lambda x: np.abs(x) >= 1.0, "whose input has a magnitude of 1 or more"),
    ],
)
def test_from_which_input_on_numbers_are_wrong(where: Callable[[Any], Any], words: str) -> None:
    x = np.linspace(-4.0, 4.0, 41, dtype=np.float32).reshape(1, 41)
    mixed = x[:, np.random.default_rng(1).permutation(41)]
    noise = np.random.default_rng(2).normal(size=mixed.shape)
    right = np.cos(mixed.astype(np.float64))
    got = np.where(where(mixed.astype(np.float64).round(6)), right + noise, right)
    assert pattern([answered_to(mixed, got, right)]) == f"exactly the numbers are wrong {words}"


def test_a_float32_answer_is_not_told_to_have_the_precision_of_float32() -> None:
    errors = 3e-7 * np.random.default_rng(5).choice([-1.0, 1.0], ROWS.shape)
    seen = observed(ROWS + 10 * errors, ROWS)
    assert "float32" not in pattern([seen])
