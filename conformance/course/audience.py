"""What an audience may see of a run. The record itself always keeps everything.

An instructor sees all. A student sees what was wrong, where, by how many tolerances, the likely
mistake and the hint, but no expected value, nothing that it could be computed from, and no file
that holds it. Of a hidden case a student sees no input either, nor anything in which the candidate
could have passed one on: what it answered, printed or raised.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conformance.candidate.messages import Outcome
from conformance.options import AUDIENCES
from conformance.report.figures import shown_margin
from conformance.report.model import CheckRecord, Details, Results

STUDENT, INSTRUCTOR = AUDIENCES

HIDDEN_CASE = "a hidden case"
"""Stands in the place of a case whose input is not shown."""

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_TELLING_DIGITS = 3
"""A number of fewer digits may stand in a text by chance."""


def seen_by(results: Results, audience: str) -> Results:
    """The results as that audience may see them."""
    if audience == INSTRUCTOR:
        return results
    return replace(results, checks=tuple(_for_student(check) for check in results.checks))


def record_seen_by(record: Mapping[str, Any], audience: str) -> dict[str, Any]:
    """The same for one check as it goes into the record."""
    if audience == INSTRUCTOR:
        return dict(record)
    fields = {key: value for key, value in record.items() if key != "kind"}
    return _for_student(CheckRecord.from_json(fields)).to_json()


def is_hidden(check: CheckRecord) -> bool:
    """Whether the check was drawn from a hidden seed."""
    return check.details is not None and bool(check.details.hidden)


def _for_student(check: CheckRecord) -> CheckRecord:
    details = check.details
    if details is None:
        return check
    kept = replace(
        details,
        expected=None,
        error=None,
        tolerance=None,
        hidden_message=None,
        counterexample=None,
        counterexample_replay=None,
        counterexample_note=None,
    )
    if not is_hidden(check):
        return replace(check, message=_message(check, details), details=kept)
    kept = replace(
        kept, case=HIDDEN_CASE, inputs=None, got=None, printed=None, traceback=None, replay=None
    )
    return replace(check, message=_hidden_message(check, details), details=kept)


def _message(check: CheckRecord, details: Details, *, got: bool = True) -> str:
    """The message without what was expected; only wrong answers tell that."""
    if check.outcome != Outcome.FAILED or not details.expected:
        return check.message
    head, separator, tail = check.message.partition("; worst at ")
    head = re.sub(r" in place of .*? \((?=\d+ of)", " where it must not (", head)
    head = _withheld(head, details.expected)
    if not separator:
        return head
    answer = re.search(r"got ([^,\s]+)", tail) if got else None
    place = f"{tail.partition(']')[0]}]" if "]" in tail else (details.where or "")
    parts = [f"worst at {place}"] if place else []
    parts += [f"got {answer[1]}"] if answer else []
    if check.margin is not None:
        parts.append(f"{shown_margin(check.margin)} times the tolerance")
    return f"{head}; {', '.join(parts)}"


def _withheld(text: str, expected: str) -> str:
    """The text without the numbers that stand in what was expected."""
    secret = {_rounded(number) for number in _NUMBER.findall(expected)} - {None}

    def one(match: re.Match[str]) -> str:
        telling = sum(char.isdigit() for char in match[0]) >= _TELLING_DIGITS
        return "…" if telling and _rounded(match[0]) in secret else match[0]

    return _NUMBER.sub(one, text)


def _rounded(number: str) -> str | None:
    """A number in as many digits as any message shows at least."""
    value = float(number)
    return f"{value:.5e}" if value else None


def _hidden_message(check: CheckRecord, details: Details) -> str:
    """What may be said of a hidden case: our own words on wrong values, and the kind of the rest.

    The name of an exception is told only where it is one of Python's own; another could be made up
    from the input.
    """
    if check.outcome == Outcome.FAILED:
        return _message(check, details, got=False)
    kind = check.message.partition(":")[0]
    known = isinstance(getattr(builtins, kind, None), type) and kind.endswith(("Error", "Exit"))
    return f"{kind} in {HIDDEN_CASE}" if known else f"{check.outcome} in {HIDDEN_CASE}"
