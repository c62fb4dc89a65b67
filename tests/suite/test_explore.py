"""Exploration with Hypothesis: the same examples wherever and whenever it is run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from conformance.candidate.messages import Outcome
from conformance.suite.explore import explore
from conformance.suite.failure import CheckFailure

NUMBERS = st.lists(st.integers(0, 10**9), min_size=3, max_size=3)


def drawn(key: str, examples: int = 30) -> list[list[int]]:
    found: list[list[int]] = []
    explore(NUMBERS, found.append, examples, key)
    return found


def test_the_key_decides_what_is_drawn() -> None:
    assert drawn("a") == drawn("a")
    assert drawn("a") != drawn("b")
    assert len(drawn("a")) == 30


def test_constants_in_the_code_around_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis would draw them, and so other examples than in another installation."""
    before = drawn("a")
    if not hasattr(providers, "_get_local_constants"):
        pytest.skip("this version of Hypothesis does not look around")
    around = type(providers.GLOBAL_CONSTANTS)()
    around.set_for_type("integer").add(123_456_789)
    monkeypatch.setattr(providers, "_get_local_constants", lambda: around)
    assert drawn("a") == before
    assert providers._get_local_constants() is around, "put back afterwards"


def test_a_ci_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn("a")
    monkeypatch.setenv("CI", "true")
    assert drawn("a") == before


def test_the_failure_of_the_smallest_example_is_raised() -> None:
    def test(numbers: list[int]) -> None:
        if sum(numbers) >= 10:
            raise CheckFailure(Outcome.FAILED, str(numbers))

    with pytest.raises(CheckFailure, match=r"\[0, 0, 10\]"):
        explore(NUMBERS, test, 100, "a")


def test_answers_that_change_are_a_failure_of_their_own() -> None:
    asked: list[Any] = []

    def test(numbers: list[int]) -> None:
        asked.append(numbers)
        if len(asked) == 5:
            raise CheckFailure(Outcome.FAILED, "once")

    with pytest.raises(CheckFailure, match="answered the same input differently"):
        explore(NUMBERS, test, 100, "a")
