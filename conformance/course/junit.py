"""JUnit XML: one test case per check, for CI systems that show such files.

The class name of a test case is its component. A wrong answer, or none because something is not
implemented, is a `failure`; a check in which the candidate raised, crashed, or ran out of time or
memory is an `error`; what does not decide the verdict (SHOULD, MAY) is `skipped` with what was
found. A run that proves nothing has one more test case, `verdict`, which is an `error`.

Only what all common readers of the format know is used, in the order that the strictest one wants.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from xml.etree import ElementTree

from conformance.course.audience import INSTRUCTOR, seen_by
from conformance.course.points import Grade
from conformance.course.told import facts
from conformance.report import text
from conformance.report.model import COUNTED, ERRORS, CheckRecord, Results
from conformance.report.verdict import Verdict, VerdictKind, judge

MESSAGE = 500
"""Characters of the message of a test case."""

BODY = (4000, 60)
"""Characters and lines of what stands below it."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Case:
    """One test case; `tag` is `failure`, `error`, `skipped`, or empty when it passed."""

    name: str
    component: str
    seconds: float
    tag: str = ""
    kind: str = ""
    message: str = ""
    body: str = ""


def render_junit(
    results: Results,
    verdict: Verdict | None = None,
    *,
    audience: str = INSTRUCTOR,
    grade: Grade | None = None,
) -> str:
    """The whole file."""
    verdict = verdict or judge(results)
    counted = results.header.counted if results.header else COUNTED["must"]
    cases = [_case(check, counted) for check in seen_by(results, audience).ordered()]
    names = list(dict.fromkeys([*(c.name for c in verdict.components), *_components(cases)]))
    suites = [(name, [case for case in cases if case.component == name]) for name in names]
    if verdict.kind in (VerdictKind.ERROR, VerdictKind.INCOMPLETE):
        suites.append(("conformance", [_no_verdict(verdict)]))
    everything = [case for _, mine in suites for case in mine]
    root = ElementTree.Element("testsuites", {"name": "conformance", **_counts(everything)})
    started = results.header.started if results.header else ""
    for name, mine in suites:
        if mine:
            root.append(_suite(name, mine, started, _properties(verdict, grade)))
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _components(cases: Sequence[Case]) -> list[str]:
    return [case.component for case in cases]


def _case(check: CheckRecord, counted: Sequence[str]) -> Case:
    name = check.id.partition("::")[2] or check.id
    passed = Case(name, check.component, check.seconds)
    if check.passed:
        return passed
    outcome = str(check.outcome)
    message = f"{check.requirement} ({check.level}), {outcome}: {check.message}"
    tag = "error" if check.outcome in ERRORS else "failure"
    if check.skipped or check.level not in counted:
        tag = "skipped"
    if tag == "skipped" and not check.skipped:
        message = f"does not decide the verdict: {message}"
    return Case(name, check.component, check.seconds, tag, outcome, message, facts(check))


def _no_verdict(verdict: Verdict) -> Case:
    reasons = "\n".join([verdict.headline, *verdict.reasons, verdict.error]).strip()
    message = f"{verdict.kind}: {verdict.headline}"
    return Case("verdict", "conformance", 0.0, "error", str(verdict.kind), message, reasons)


def _suite(
    name: str, cases: Sequence[Case], started: str, properties: dict[str, str]
) -> ElementTree.Element:
    skipped = {"skipped": str(sum(case.tag == "skipped" for case in cases))}
    stamp = {"timestamp": _xml(started)} if started else {}
    suite = ElementTree.Element(
        "testsuite", {"name": _xml(name), **_counts(cases), **skipped, **stamp}
    )
    listed = ElementTree.SubElement(suite, "properties")
    for key, value in properties.items():
        ElementTree.SubElement(listed, "property", {"name": key, "value": _xml(value)})
    for case in cases:
        suite.append(_element(case))
    return suite


def _element(case: Case) -> ElementTree.Element:
    attributes = {
        "classname": _xml(case.component),
        "name": _xml(text.one_line(case.name, MESSAGE)),
        "time": f"{case.seconds:.3f}",
    }
    element = ElementTree.Element("testcase", attributes)
    if case.tag:
        message = _xml(text.one_line(case.message, MESSAGE))
        about = {"type": case.kind, "message": message}
        ElementTree.SubElement(element, case.tag, about).text = _xml(text.shorten(case.body, *BODY))
    return element


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    """Counts as the format has them at both levels."""
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.tag == "failure" for case in cases)),
        "errors": str(sum(case.tag == "error" for case in cases)),
        "time": f"{fsum(case.seconds for case in cases):.3f}",
    }


def _properties(verdict: Verdict, grade: Grade | None) -> dict[str, str]:
    points = {"points": grade.shown} if grade else {}
    return {"verdict": str(verdict.kind), "exit_code": str(verdict.exit_code.value), **points}


def _xml(value: str) -> str:
    """The text with every character that XML cannot hold written as an escape."""
    return _NOT_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", text.clean(value))
