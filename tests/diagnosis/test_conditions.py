"""On which inputs something goes wrong: the condition that is told, and when none is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.candidate.messages import Outcome, Reply
from conformance.diagnosis.conditions import condition
from conformance.diagnosis.observe import Observation
from conformance.suite.grader import Example


def observed(inputs: Iterable[dict[str, Any]]) -> list[Observation]:
    """Observations of which only the arguments count."""
    return [Observation(Example(a, "", ""), Reply(Outcome.PASSED)) for a in inputs]


def told(bad: Iterable[dict[str, Any]], good: Iterable[dict[str, Any]]) -> str:
    """The condition for inputs that fail, `bad`, and others."""
    return condition(observed(bad), observed(good))


def x(*shape: int, dtype: Any = np.float32, **others: Any) -> dict[str, Any]:
    """An array of ones called x, and other arguments."""
    return {"x": np.ones(shape, dtype), **others}


CONDITIONS = [
    ("where x has 3 axes", [x(2, 3, 4), x(5, 1, 6)], [x(3, 4), x(2, 2, 3, 4)]),
    ("where x has one axis", [x(3), x(4)], [x(3, 4), x(2, 5)]),
    ("where x has no axes", [x(), x(n=4)], [x(3, 4, n=4), x(2, 5)]),
    ("where x has other than 3 axes", [x(3, 4), x(1, 2, 3, 4)], [x(2, 3, 4), x(5, 3, 4)]),
    (
        "where x has 3 axes or more",
        [x(2, 3, 4), x(2, 2, 3, 4)],
        [x(3, 4), x(4)],
    ),
    (
        "where the last but one axis of x has length 1",
        [x(2, 1, 4), x(1, 5)],
        [x(1, 3, 4), x(2, 6)],
    ),
    ("where the last axis of x has length 7", [x(2, 7), x(3, 7)], [x(2, 6), x(3, 8)]),
    (
        "where the last but one axis of x is 5 or longer",
        [x(5, 8), x(9, 8)],
        [x(3, 8), x(4, 8), x(2, 8)],
    ),
    ("where the last but one axis of x is 3 or shorter", [x(3, 8), x(2, 8)], [x(5, 8), x(9, 8)]),
    (
        "where the third last axis of x has length 1",
        [x(1, 2, 8), x(1, 3, 8)],
        [x(2, 2, 8), x(2, 3, 8)],
    ),
    ("where x has an axis of length 1", [x(1, 4, 3), x(2, 1, 5)], [x(2, 4, 3), x(2, 2, 5)]),
    ("where x is empty", [x(0, 3), x(2, 0)], [x(4, 5), x(3, 2)]),
    (
        "where x is float16",
        [x(3, dtype=np.float16), x(4, dtype=np.float16)],
        [x(3), x(4, dtype=ml_dtypes.bfloat16)],
    ),
    (
        "where mask is not given",
        [x(3, mask=None), x(4, mask=None)],
        [x(3, mask=np.ones(3, bool)), x(4, mask=np.ones(4, bool))],
    ),
    (
        "where mask is given",
        [x(3, mask=np.ones(3, bool)), x(4, mask=np.ones(4, bool))],
        [x(3, mask=None), x(4, mask=None)],
    ),
    ("where eps is 1e-05", [x(3, eps=1e-5), x(4, eps=1e-5)], [x(3, eps=1e-3), x(4, eps=1e-6)]),
    (
        "where theta is not 10000",
        [x(3, theta=2.0), x(4, theta=1e6)],
        [x(3, theta=1e4), x(4, theta=1e4)],
    ),
    ("where n is 8 or more", [x(3, n=9), x(3, n=8)], [x(3, n=7), x(3, n=2)]),
    ("where n is 7 or less", [x(3, n=7), x(3, n=2)], [x(3, n=9), x(3, n=8)]),
    (
        "where d_in and d_out differ",
        [x(3, d_in=3, d_out=4), x(3, d_in=5, d_out=3)],
        [x(3, d_in=3, d_out=3), x(3, d_in=5, d_out=5)],
    ),
    (
        "where d_in and d_out are equal",
        [x(3, d_in=3, d_out=3), x(3, d_in=5, d_out=5)],
        [x(3, d_in=3, d_out=4), x(3, d_in=5, d_out=3)],
    ),
    (
        "where x holds numbers as large as 1e+03",
        [{"x": np.array([1e3, 2.0])}, {"x": np.array([-5e4, 1.0])}],
        [{"x": np.array([1.0, 3.0])}, {"x": np.array([0.5, -0.2])}],
    ),
    (
        "where all numbers of x are 0.001 or smaller",
        [{"x": np.array([1e-3, 2e-4])}, {"x": np.array([-5e-4, 1e-5])}],
        [{"x": np.array([1.0, 3.0])}, {"x": np.array([0.5, -0.2])}],
    ),
]


@pytest.mark.parametrize(("words", "bad", "good"), CONDITIONS, ids=[c[0] for c in CONDITIONS])
def test_the_condition_is_told(words: str, bad: Any, good: Any) -> None:
    assert told(bad, good) == words


def test_the_plainest_of_several_conditions_is_told() -> None:
    """The numbers of axes differ, and with them a length and the sizes."""
    assert told([x(2, 3, 4), x(1, 3, 4)], [x(3, 5), x(3, 6)]) == "where x has 3 axes"
    assert told([x(2, 3, 4), x(2, 2, 3, 4)], [x(3, 5), x(3, 6)]) == "where x has 3 axes or more"
    words = told([x(2, eps=1e-3), x(3, eps=1e-3)], [x(2, eps=1e-5), x(3, eps=1e-5)])
    assert words == "where eps is 0.001"


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ([x(1, 4)], [x(2, 4), x(3, 4)]),
        ([x(1, 4), x(1, 5)], [x(2, 4)]),
        ([], [x(2, 4), x(3, 4)]),
        ([x(1, 4), x(1, 5)], []),
        ([x(1, 4), x(1, 4)], [x(2, 4), x(3, 4)]),
        ([x(1, 4), x(1, 5)], [x(2, 4), x(2, 4)]),
    ],
)
def test_nothing_is_told_of_too_few_inputs(bad: Any, good: Any) -> None:
    """Two inputs of the same form count as one."""
    assert told(bad, good) == ""


def test_nothing_is_told_where_no_property_tells_the_inputs_apart() -> None:
    assert told([x(2, 4), x(3, 5)], [x(2, 5), x(3, 4)]) == ""
    assert told([x(2, 4), x(3, 4)], [x(2, 4), x(3, 4)]) == ""


def test_an_argument_that_is_missing_somewhere_has_no_length() -> None:
    """A condition on it holds for neither side, so it is not told."""
    words = told([x(3, n=9), x(3)], [x(3, n=7), x(3, n=2)])
    assert "n is" not in words.replace("n is not given", "")
