"""GitHub Classroom: the result that its autograding reporter reads from a step's output.

The reporter (`classroom-resources/autograding-grading-reporter`) takes the output `result` of each
grading step: base64 of a JSON object with `version`, `status`, `max_score` and `tests`, and adds up
the scores of the tests. Its shape is documented by its source alone. It is passed on in an
environment variable, which Linux limits to 128 KiB, so the texts are short.
"""

from __future__ import annotations

import base64
import json
from fractions import Fraction
from typing import Any

from conformance.course.gradescope import number
from conformance.course.points import Earned, Grade
from conformance.course.rubric import Counts
from conformance.course.shown import remark, why_none
from conformance.report.text import one_line
from conformance.report.verdict import Verdict, VerdictKind

MESSAGE = 400
"""Characters of the message of one test."""


def classroom_result(grade: Grade, verdict: Verdict) -> str:
    """The value of the output `result`."""
    document = classroom_document(grade, verdict)
    return base64.b64encode(json.dumps(document).encode("ascii")).decode("ascii")


def classroom_document(grade: Grade, verdict: Verdict) -> dict[str, Any]:
    """The same as plain JSON values."""
    tests = [_test(earned) for earned in grade.components if earned.counts is not Counts.LATER]
    if grade.blame:
        tests = [_entry("grading", "error", Fraction(0), why_none(grade))]
    return {
        "version": 1,
        "status": "error" if grade.blame else _status(verdict),
        "max_score": number(grade.total),
        "tests": tests,
    }


def _status(verdict: Verdict) -> str:
    return "pass" if verdict.kind is VerdictKind.CONFORMING else "fail"


def _test(earned: Earned) -> dict[str, Any]:
    full = earned.points == earned.possible
    return _entry(
        earned.component, "pass" if full else "fail", earned.points, "" if full else remark(earned)
    )


def _entry(name: str, status: str, score: Fraction, message: str) -> dict[str, Any]:
    return {
        "name": name,
        "status": status,
        "score": number(score),
        "message": one_line(message, MESSAGE),
    }
