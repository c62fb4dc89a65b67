"""Gradescope's results.json, and GitHub Classroom's result."""

from __future__ import annotations

import base64
import json
from fractions import Fraction
from typing import Any

import pytest

from conformance.course import Counts, Rubric, Worth, award
from conformance.course.audience import AUDIENCES, STUDENT
from conformance.course.classroom import classroom_result
from conformance.course.gradescope import COMPONENT_CHARS, number, render_gradescope
from conformance.report import Details, Results, judge

VISIBILITY = ("hidden", "after_due_date", "after_published", "visible")
FORMATS = ("text", "html", "simple_format", "md", "ansi")
TOP = {
    "score",
    "execution_time",
    "output",
    "output_format",
    "visibility",
    "stdout_visibility",
    "extra_data",
    "tests",
}


def document(results: Results, rubric: Rubric, audience: str = STUDENT) -> Any:
    """The file, after a check against what Gradescope documents."""
    grade = award(results, rubric)
    found = json.loads(render_gradescope(results, grade, audience=audience))
    assert set(found) == TOP
    assert found["output_format"] in FORMATS
    assert found["visibility"] in VISIBILITY
    assert found["stdout_visibility"] == "hidden"
    assert isinstance(found["score"], int | float)
    for test in found["tests"]:
        assert test["status"] in ("passed", "failed")
        assert test["output_format"] == "text"
        assert test["visibility"] in VISIBILITY
        assert test["score"] >= 0
        assert test["max_score"] >= 0
    assert sum(test["score"] for test in found["tests"]) == pytest.approx(found["score"])
    assert sum(test["max_score"] for test in found["tests"]) == pytest.approx(number(rubric.total))
    return found


def test_a_test_per_component(samples: Any, rubric: Rubric) -> None:
    found = document(samples.night(), rubric)
    assert [test["name"] for test in found["tests"]] == ["rmsnorm", "rope", "glu"]
    assert [test["status"] for test in found["tests"]] == ["failed"] * 3
    norm, rope, glu = (test["output"] for test in found["tests"])
    assert "RMSNORM-EPS (MUST): 2 checks did not pass" in norm
    assert "likely mistake  eps is added after the root, not before." in norm
    assert "RMSNORM-WEIGHTS_UNTOUCHED (SHOULD)" in norm
    assert "b, h, s, d = x.shape" in rope
    assert glu == "not implemented: run_glu raises NotImplementedError"


def test_everything_passes(passing: Results, rubric: Rubric) -> None:
    found = document(passing, rubric)
    assert found["score"] == 25
    assert {test["status"] for test in found["tests"]} == {"passed"}
    assert found["extra_data"]["failure"] is None
    assert "All checks passed." in found["tests"][0]["output"]


def test_what_students_must_not_see_is_hidden_from_them(samples: Any, rubric: Rubric) -> None:
    for audience in AUDIENCES:
        found = document(samples.night(), rubric, audience)
        wanted = "visible" if audience == STUDENT else "hidden"
        assert {found["visibility"], *(t["visibility"] for t in found["tests"])} == {wanted}
        assert ("0.316227766" in found["tests"][0]["output"]) == (audience != STUDENT)


def test_no_points_and_why(nothing: dict[str, Results], rubric: Rubric) -> None:
    for results in nothing.values():
        found = document(results, rubric)
        assert found["score"] == 0
        assert found["extra_data"]["failure"] == "infrastructure"
        (test,) = found["tests"]
        assert test["status"] == "failed"
        assert "Infrastructure failure" in test["output"]
        assert "Infrastructure failure" in found["output"]


def test_a_bonus_is_more_than_the_total(samples: Any) -> None:
    names = ("rope", "glu", "silu")
    results = samples.results([samples.check(f"{n}::a") for n in names], selected=names)
    rubric = Rubric(
        (
            Worth("rope", Fraction(1, 3)),
            Worth("glu", Fraction(5), counts=Counts.BONUS),
            Worth("silu", Fraction(5), counts=Counts.LATER),
        )
    )
    found = document(results, rubric)
    assert found["score"] == 5.3333
    assert found["tests"][1]["name"] == "glu (bonus, 5 points)"
    assert [test["max_score"] for test in found["tests"]] == [0.3333, 0, 0]


def test_texts_are_bounded(samples: Any) -> None:
    details = Details(inputs="x" * 10**6, printed="y\n" * 10**5)
    checks = [
        samples.check(f"rope::c{n}", outcome="failed", message=f"{n}" * 10**4, details=details)
        for n in range(100)
    ]
    rubric = Rubric((Worth("rope", Fraction(1)),))
    (test,) = document(samples.results(checks, selected=("rope",)), rubric)["tests"]
    assert len(test["output"]) < COMPONENT_CHARS + 200
    assert "for which there is no room" in test["output"]


def classroom(results: Results, rubric: Rubric) -> Any:
    """What the reporter of GitHub Classroom reads, with the sum that it makes."""
    result = classroom_result(award(results, rubric), judge(results))
    assert len(result) < 100_000  # it has to fit into one environment variable
    found = json.loads(base64.b64decode(result, validate=True))
    assert found["version"] == 1
    assert found["max_score"] == number(rubric.total)
    return found


def test_points_for_github_classroom(
    samples: Any, passing: Results, nothing: dict[str, Results], rubric: Rubric
) -> None:
    found = classroom(passing, rubric)
    assert found["status"] == "pass"
    assert sum(test["score"] for test in found["tests"]) == 25
    assert [test["status"] for test in found["tests"]] == ["pass"] * 3
    found = classroom(samples.night(), rubric)
    assert found["status"] == "fail"
    assert found["tests"][0]["message"].startswith("MUST 0 of 10 (1 of 2 requirements)")
    for results in nothing.values():
        found = classroom(results, rubric)
        assert found["status"] == "error"
        assert sum(test["score"] for test in found["tests"]) == 0
        assert "Infrastructure failure" in found["tests"][0]["message"]
