"""What a student is shown: no expected value, and of hidden cases no input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from conformance.course import Rubric, award, seen_by
from conformance.course.audience import AUDIENCES, INSTRUCTOR, STUDENT, record_seen_by
from conformance.course.github import annotation_lines, job_summary
from conformance.course.gradescope import render_gradescope
from conformance.course.junit import render_junit
from conformance.items import failure_text
from conformance.numerics.compare import Bound, compare
from conformance.report import Diagnosis, Results, judge, summary_text
from conformance.report.jsonfile import report_json
from conformance.report.markdown import render_markdown
from conformance.suite.grader import _sentence


def everything(results: Results, rubric: Rubric, audience: str) -> str:
    """All that is written for an audience, in one text."""
    verdict, shown = judge(results), seen_by(results, audience)
    grade = award(results, rubric)
    return "\n".join(
        [
            report_json(shown, verdict),
            render_markdown(shown, verdict),
            summary_text(shown, verdict),
            render_junit(results, audience=audience, grade=grade),
            render_gradescope(results, grade, audience=audience),
            job_summary(results, verdict, grade, audience=audience),
            *annotation_lines(results, verdict, grade, audience=audience),
            *(failure_text(record_seen_by(c.to_json(), audience)) for c in results.checks),
        ]
    )


def test_a_student_sees_no_expected_value(samples: Any, rubric: Rubric) -> None:
    text = everything(samples.night(), rubric, STUDENT)
    for secret in ("0.3162278", "0.316227766", "0.316228", "-0.632456", "0.3134", "1.2e-07"):
        assert secret not in text, secret
    for kept in (
        "worst at [0, 0], got 0.629627, 2.61e+06 times the tolerance",
        "eps is added after the root, not before.",
        "0.001, -0.002",
        "pytest --impl=. -k",
        "b, h, s, d = x.shape",
    ):
        assert kept in text, kept


def test_an_instructor_sees_all(samples: Any, hidden: Results, rubric: Rubric) -> None:
    night = samples.night()
    assert seen_by(night, INSTRUCTOR) is night
    text = everything(night, rubric, INSTRUCTOR)
    for kept in ("0.3162278", "0.316227766", "0.313, tolerance", "1.2e-07"):
        assert kept in text, kept
    assert "expected 0.555123, got 0.777123" in render_junit(hidden)


def test_of_a_hidden_case_a_student_sees_no_input(hidden: Results, rubric: Rubric) -> None:
    checks = tuple(
        replace(check, diagnosis=Diagnosis("eps-outside", "The likely mistake.", "A hint."))
        for check in hidden.checks
    )
    text = everything(replace(hidden, checks=checks), rubric, STUDENT)
    for secret in ("777123", "888456", "555123", "666456", "0.222", "1.5e-07", "drawn-3", "gotcha"):
        assert secret not in text, secret
    assert "safetensors" not in text
    for kept in (
        "The sentence stays.",
        "The likely mistake.",
        "A hint.",
        "the result is wrong in 2 of 2 entries; worst at [0], 1.48e+06 times the tolerance",
        "ValueError in a hidden case",
        "raised in a hidden case",
    ):
        assert kept in text, kept


def test_the_same_verdict_and_counts_for_everybody(samples: Any) -> None:
    night = samples.night()
    assert judge(seen_by(night, STUDENT)) == judge(night)
    told = [json.loads(report_json(seen_by(night, audience))) for audience in AUDIENCES]
    for one in told:
        for check in one["checks"]:
            del check["message"], check["counterexample"]
    assert told[0] == told[1]


SECRET = 0.123456789


@pytest.mark.parametrize("got", [[5.5, 2.0], [np.nan, 2.0], [np.inf, 2.0], [5.5, 3.0]])
@pytest.mark.parametrize("first", [SECRET, -SECRET, SECRET * 1e20, SECRET * 1e-20])
def test_the_messages_of_the_judge(samples: Any, got: list[float], first: float) -> None:
    """What the judge really says about wrong values, whatever its words are."""
    expected = np.array([first, 2.0])
    bound = Bound(expected, np.full(2, 1e-9))
    difference = compare(np.array(got), bound)
    check = samples.check(outcome="failed", message=_sentence(difference), margin=difference.margin)
    details = replace(samples.night().checks[1].details, expected=f"{first:.9g} in row [..]")
    (shown,) = seen_by(samples.results([replace(check, details=details)]), STUDENT).checks
    assert not re.search("12345|1\\.2346|1\\.23457", shown.message), shown.message
    assert f"{difference.got:.7g}".lower() in shown.message.lower().replace("infinity", "inf")
    assert "wrong in" in shown.message or "where it must not" in shown.message


def test_numbers_that_happen_to_be_expected_are_withheld(samples: Any) -> None:
    details = replace(samples.night().checks[1].details, expected="0.577123 in row [0.577123, 2]")
    check = samples.check(
        outcome="failed", message="2 rows: their sum should be 0.577123, not 3", details=details
    )
    (shown,) = seen_by(samples.results([check]), STUDENT).checks
    assert shown.message == "2 rows: their sum should be …, not 3"
