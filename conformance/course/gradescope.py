"""Gradescope's `results.json`: one test per component of the rubric.

The shape is that of Gradescope's autograder specification: `score` and `tests` with `score`,
`max_score`, `status`, `name`, `output`, `output_format` and `visibility`. What was printed stays
hidden (`stdout_visibility`), and all texts are plain text, so that nothing a submission says is
markup. Written for students the tests are visible and hold what students may see; written for
instructors they hold everything and are hidden from students.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from math import fsum
from typing import Any

from conformance.course.audience import INSTRUCTOR, STUDENT, seen_by
from conformance.course.points import Earned, Grade
from conformance.course.rubric import Counts, shown_points
from conformance.course.shown import WORDS, remark, why_none
from conformance.course.told import bounded, failure_text
from conformance.report import text
from conformance.report.failures import Failure, group
from conformance.report.model import LEVELS, Results
from conformance.report.verdict import Verdict, judge

SCHEMA = "transformer-conformance/gradescope/1"
"""Names the shape of `extra_data`, which is ours."""

COMPONENT_CHARS = 12_000
"""Characters of the text on one component."""


def render_gradescope(
    results: Results,
    grade: Grade,
    verdict: Verdict | None = None,
    *,
    audience: str = INSTRUCTOR,
) -> str:
    """The text of `results.json`."""
    verdict = verdict or judge(results)
    document = gradescope_document(seen_by(results, audience), grade, verdict, audience)
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def gradescope_document(
    results: Results, grade: Grade, verdict: Verdict, audience: str
) -> dict[str, Any]:
    """The document as plain JSON values; the results must be what the audience may see."""
    visibility = "visible" if audience == STUDENT else "hidden"
    return {
        "score": number(grade.points),
        "execution_time": round(fsum(check.seconds for check in results.checks), 3),
        "output": _overview(results, grade, verdict),
        "output_format": "text",
        "visibility": visibility,
        "stdout_visibility": "hidden",
        "extra_data": _extra(results, grade, verdict),
        "tests": _tests(results, grade, visibility),
    }


def number(points: Fraction) -> int | float:
    """Points as JSON shows them best."""
    return int(points) if points.denominator == 1 else round(float(points), 4)


def _overview(results: Results, grade: Grade, verdict: Verdict) -> str:
    lines = [f"Verdict: {verdict.kind}", *[text.wrap(verdict.headline)]]
    lines += [text.wrap(reason) for reason in verdict.reasons]
    lines += [f"Points: {grade.shown}", text.wrap(why_none(grade)) if grade.blame else ""]
    lines += [text.shorten(verdict.error, 3000, 40)]
    return "\n".join(line for line in lines if line)


def _extra(results: Results, grade: Grade, verdict: Verdict) -> dict[str, Any]:
    header = results.header
    return {
        "schema": SCHEMA,
        "suite_version": header.suite_version if header else "",
        "verdict": str(verdict.kind),
        "exit_code": verdict.exit_code.value,
        "max_score": number(grade.total),
        "failure": str(grade.blame) if grade.blame else None,
    }


def _tests(results: Results, grade: Grade, visibility: str) -> list[dict[str, Any]]:
    if grade.blame:
        return [
            _test(
                "grading", Fraction(0), grade.total, False, text.wrap(why_none(grade)), visibility
            )
        ]
    order = results.header.requirements if results.header else ()
    failures = group(results.ordered(), [e.component for e in grade.components], order)
    return [
        _test(
            _name(earned),
            earned.counted,
            earned.possible if earned.counts is Counts.REQUIRED else Fraction(0),
            earned.points == earned.possible,
            _output(earned, [f for f in failures if f.component == earned.component]),
            visibility,
        )
        for earned in grade.components
    ]


def _test(
    name: str, score: Fraction, most: Fraction, passed: bool, output: str, visibility: str
) -> dict[str, Any]:
    return {
        "name": name,
        "score": number(score),
        "max_score": number(most),
        "status": "passed" if passed else "failed",
        "output": output,
        "output_format": "text",
        "visibility": visibility,
    }


def _name(earned: Earned) -> str:
    if earned.counts is Counts.REQUIRED:
        return earned.component
    return f"{earned.component} ({WORDS[earned.counts]}, {shown_points(earned.possible)} points)"


def _output(earned: Earned, failures: Sequence[Failure]) -> str:
    """What a reader needs on one component: its points, and what did not pass, MUST first."""
    head = text.wrap(remark(earned))
    if earned.note:
        return head
    told = sorted(failures, key=lambda failure: LEVELS.index(failure.level))
    if not told:
        return f"{head}\n\nAll checks passed."
    return bounded([head, *(failure_text(failure) for failure in told)], COMPONENT_CHARS)
