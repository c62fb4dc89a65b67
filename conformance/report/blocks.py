"""Failures as Markdown: one block each, gathered in sections of bounded size, one per component."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2

from conformance.candidate.messages import Outcome
from conformance.report import text
from conformance.report.failures import Failure
from conformance.report.figures import plural, shown, shown_margin
from conformance.report.model import CheckRecord, Details, Diagnosis
from conformance.report.text import Safe

TEMPLATES = Path(__file__).parent / "templates"
FULL_PER_COMPONENT = 6
LINES_PER_COMPONENT = 20
IDS_PER_FAILURE = 12
OTHERS_PER_FAILURE = 5
FIELD = (800, 16)
"""Characters and lines of one fact about a failure."""
OUTPUT = (1500, 20)
"""Characters and lines of what the candidate printed, and of its traceback."""

NO_ANSWER: Mapping[str, str] = {
    Outcome.NOT_IMPLEMENTED: "Not implemented",
    Outcome.RAISED: "Raised an exception",
    Outcome.CRASHED: "Crashed",
    Outcome.TIMED_OUT: "Ran out of time",
    Outcome.OUT_OF_MEMORY: "Ran out of memory",
    Outcome.DELEGATED: "Left it to the suite",
}

Totals = Mapping[tuple[str, str, str], int]
"""(component, level, requirement) -> number of its checks."""


@cache
def environment() -> jinja2.Environment:
    """The templates, in which every value that is not `Safe` leaves as escaped prose."""
    result = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if isinstance(value, Safe) else text.prose(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    result.filters.update(
        code=text.code,
        cell=text.cell_code,
        fence=text.fence,
        margin=lambda margin: Safe(shown_margin(margin)),
    )
    return result


def render(template: str, values: Mapping[str, Any]) -> Safe:
    """One template as Markdown, without blank lines at either end."""
    return Safe(environment().get_template(template).render(values).strip("\n"))


@dataclass(frozen=True)
class Line:
    """A failure for which there was no room to tell it in full."""

    requirement: str
    level: str
    count: str
    message: str


@dataclass(frozen=True)
class Section:
    """The failures of one component: told in full, in one line, or only counted."""

    component: str
    blocks: tuple[Safe, ...]
    lines: tuple[Line, ...]
    more: int


class Budget:
    """So many bytes of Markdown for all failures together."""

    def __init__(self, size: int) -> None:
        self._left = size

    def take(self, block: str) -> bool:
        """Whether the block still fits; if so, its size is gone."""
        size = len(block.encode())
        if size > self._left:
            return False
        self._left -= size
        return True


def totals(checks: Iterable[CheckRecord]) -> Totals:
    """How many checks each requirement has."""
    return Counter((check.component, check.level, check.requirement) for check in checks)


def sections(failures: Sequence[Failure], totals: Totals, budget: Budget) -> list[Section]:
    """One section per component, in the order of the failures."""
    by_component = groupby(failures, key=lambda failure: failure.component)
    return [_section(name, list(mine), totals, budget) for name, mine in by_component]


def _section(
    component: str, failures: Sequence[Failure], totals: Totals, budget: Budget
) -> Section:
    blocks: list[Safe] = []
    for failure in failures[:FULL_PER_COMPONENT]:
        block = failure_block(failure, totals)
        if not budget.take(block):
            break
        blocks.append(block)
    rest = failures[len(blocks) :]
    lines = tuple(_line(failure) for failure in rest[:LINES_PER_COMPONENT])
    return Section(component, tuple(blocks), lines, len(rest) - len(lines))


def _line(failure: Failure) -> Line:
    first, more = failure.requirements[0], len(failure.requirements) - 1
    requirement = f"{first} and {more} more" if more else first
    message = failure.shown.message or failure.outcome
    return Line(requirement, failure.level, plural(failure.size, "check"), message)


def failure_block(failure: Failure, totals: Totals) -> Safe:
    """One failure told in full."""
    details = failure.shown.details or Details()
    single = len(failure.requirements) == 1
    concerned = () if single else failure.requirements
    same = [check.id for check in failure.same]
    return render(
        "failure.md.j2",
        {
            "title": _title(failure, totals),
            "sentence": details.sentence if single else None,
            "formula": details.formula if single else None,
            "source": (details.source or "").rstrip(".") if single else None,
            "concerned": concerned[:IDS_PER_FAILURE],
            "concerned_more": max(0, len(concerned) - IDS_PER_FAILURE),
            "diagnosis": failure.shown.diagnosis,
            "diagnosis_label": label(failure.shown.diagnosis),
            "facts": text.fence(_facts(failure, details), chars=20_000, lines=200),
            "traceback": _output(details.traceback, text.last_lines),
            "printed": _output(details.printed, text.shorten),
            "replay": details.replay,
            "input": details.counterexample,
            "input_replay": details.counterexample_replay,
            "input_note": details.counterexample_note,
            "same": same[:IDS_PER_FAILURE],
            "same_more": max(0, len(same) - IDS_PER_FAILURE),
            "others": failure.others[:OTHERS_PER_FAILURE],
            "others_more": max(0, len(failure.others) - OTHERS_PER_FAILURE),
        },
    )


def label(diagnosis: Diagnosis | None) -> str:
    """What a diagnosis is called: a mistake only where one was found."""
    return "Likely mistake" if diagnosis is not None and diagnosis.fault else "What can be said"


def _title(failure: Failure, totals: Totals) -> Safe:
    """ "`RMSNORM-EPS` · MUST · 3 of 4 checks failed", or what happened instead of an answer."""
    keys = [(failure.component, failure.level, name) for name in failure.requirements]
    count = f"{failure.size} of {plural(sum(totals[key] for key in keys), 'check')}"
    if failure.outcome == Outcome.FAILED:
        return Safe(f"{text.code(failure.requirements[0])} · {failure.level} · {count} failed")
    what = NO_ANSWER[failure.outcome]
    if len(keys) == 1:
        return Safe(f"{text.code(failure.requirements[0])} · {failure.level} · {what}, {count}")
    count = f"{failure.size} checks of {len(keys)} requirements"
    return Safe(f"{what} · {failure.level} · {count}")


def _facts(failure: Failure, details: Details) -> str:
    """What was asked and what came back, as labelled lines of plain text."""
    rows = [
        ("result", text.wrap(failure.shown.message or NO_ANSWER.get(failure.outcome, "failed"))),
        ("error", _error(failure.shown.margin, details)),
        ("where", details.where),
        ("expected", details.expected),
        ("got", details.got),
        ("input", details.inputs),
        ("dtype", details.dtype),
        ("case", details.case),
        ("why asked", text.wrap(details.note or "")),
    ]
    return text.facts([(label, text.shorten(value or "", *FIELD)) for label, value in rows])


def _error(margin: float | None, details: Details) -> str:
    parts = []
    if details.error is not None:
        parts.append(shown(details.error))
    if details.tolerance is not None:
        parts.append(f"tolerance {shown(details.tolerance)}")
    if margin is not None:
        parts.append(f"{shown_margin(margin)} times the tolerance")
    return ", ".join(parts)


def _output(output: str | None, cut: Callable[[str, int, int], str]) -> Safe | None:
    return text.fence(cut(output, *OUTPUT), chars=20_000, lines=200) if output else None
