"""The report as Markdown: a pure function of the recorded results.

It is written for a GitHub job summary and for a reader in a hurry: the verdict first, then what to
do next, the table, the failures that decide, and only then everything else.  Its size is bounded,
whatever the number of failures and whatever the candidate prints (GitHub takes 1 MiB).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from conformance.errors import ExitCode
from conformance.report.advice import next_step
from conformance.report.blocks import Budget, Section, render, sections, totals
from conformance.report.causes import Cause, causes
from conformance.report.failures import Failure, group
from conformance.report.figures import listed, plural, shown_margin, shown_score
from conformance.report.model import COUNTED, LEVELS, CheckRecord, Header, Results
from conformance.report.rules import rules
from conformance.report.shape import encode
from conformance.report.text import Safe
from conformance.report.verdict import (
    WEIGHTS,
    ComponentResult,
    Status,
    Verdict,
    VerdictKind,
    by_size,
    judge,
)

FAILURE_BYTES = 300_000
REMARK_BYTES = 100_000
LIST_LENGTH = 20
CLOSEST = 5

MARKS: Mapping[str, str] = {
    VerdictKind.CONFORMING: "✅",
    VerdictKind.NON_CONFORMING: "❌",
    VerdictKind.INCOMPLETE: "⚠️",
    VerdictKind.ERROR: "⛔",
    Status.NOT_IMPLEMENTED: "⬜",
    Status.RULES_BROKEN: "❌",
}
MEANINGS: Mapping[VerdictKind, str] = {
    VerdictKind.CONFORMING: "The candidate does what the specification demands, as far as these"
    " checks can tell.",
    VerdictKind.NON_CONFORMING: "The candidate does not yet do what the specification demands.",
    VerdictKind.INCOMPLETE: "Not everything was checked, so there is no verdict yet.",
    VerdictKind.ERROR: "No check could be judged. This is no statement about any component.",
}
EXIT_CODES: Mapping[ExitCode, str] = {
    ExitCode.CONFORMING: "conforming",
    ExitCode.NOT_CONFORMING: "not conforming",
    ExitCode.USAGE: "wrong usage",
    ExitCode.CANNOT_LOAD: "the candidate cannot be loaded",
    ExitCode.INTERNAL: "internal error, or incomplete",
    ExitCode.NO_SANDBOX: "a sandbox was demanded and there is none",
}


@dataclass(frozen=True)
class Row:
    """One component in the table."""

    name: str
    status: str
    must: str
    should: str
    may: str
    margin: str


@dataclass(frozen=True)
class Item:
    """An entry of a short list: a name, with a message, a value or a count."""

    name: str
    message: str = ""
    value: str = ""
    count: str = ""


def render_markdown(
    results: Results, verdict: Verdict | None = None, *, points: Safe | None = None
) -> str:
    """The whole report; `points` is its section on points, where there are any."""
    verdict = verdict or judge(results)
    checks = results.ordered()
    counted = results.header.counted if results.header else COUNTED["must"]
    failures = _told(results, verdict)
    deciding = [failure for failure in failures if failure.level in counted]
    remarks = [failure for failure in failures if failure.level not in counted]
    skipped = _skipped(checks)
    observed = [Item(check.id, check.message) for check in checks if check.passed and check.message]
    values = {
        "mark": MARKS[verdict.kind],
        "title": verdict.kind.capitalize(),
        "name": results.header.candidate.name if results.header else "",
        "verdict": verdict,
        "meaning": MEANINGS[verdict.kind],
        "score": Safe(shown_score(verdict.score)),
        "points": points,
        "components": [_row(component) for component in verdict.components],
        "mistakes": [
            _mistake(cause)
            for cause in causes(checks, [component.name for component in verdict.components])
        ][:LIST_LENGTH],
        "absent": _absent(checks, verdict),
        "sections": _sections(deciding, checks, FAILURE_BYTES),
        "remarks": _sections(remarks, checks, REMARK_BYTES),
        "remark_count": plural(sum(failure.size for failure in remarks), "failed check"),
        "rules": rules(results.policy),
        "skipped": skipped[:LIST_LENGTH],
        "skipped_more": max(0, len(skipped) - LIST_LENGTH),
        "observed": observed[:LIST_LENGTH],
        "observed_more": max(0, len(observed) - LIST_LENGTH),
        "closest": closest_passes(checks),
        "step": next_step(results.header, verdict, deciding, len(remarks)),
        "run": _run(results, verdict),
        **_circumstances(results.header),
        "weights": WEIGHTS,
        "exit_codes": ", ".join(f"{code.value} {words}" for code, words in EXIT_CODES.items()),
    }
    return render("report.md.j2", values) + "\n"


@dataclass(frozen=True)
class Mistake:
    """A recognised mistake with what it explains."""

    place: str
    sentence: str
    fault: str
    hint: str
    sure: str
    explains: str


def _mistake(cause: Cause) -> Mistake:
    found = cause.diagnosis
    explains = f"{plural(len(cause.checks), 'failed check')} in {listed(cause.components)}"
    sure = f"{found.certainty}; {found.basis}"
    return Mistake(found.component, found.sentence, found.fault, found.hint, sure, explains)


def closest_passes(checks: Sequence[CheckRecord], number: int = CLOSEST) -> list[CheckRecord]:
    """The passes with the largest margins, the closest first."""
    passes = [check for check in checks if check.passed and check.margin]
    return sorted(passes, key=lambda check: (-by_size(check.margin or 0.0), check.id))[:number]


def _told(results: Results, verdict: Verdict) -> list[Failure]:
    """The failures, without components that are not there at all: those have their own list."""
    absent = {c.name for c in verdict.components if c.status is Status.NOT_IMPLEMENTED}
    names = [component.name for component in verdict.components]
    told = (check for check in results.ordered() if check.component not in absent)
    return group(told, names, results.header.requirements if results.header else ())


def _sections(
    failures: Sequence[Failure], checks: Sequence[CheckRecord], size: int
) -> list[Section]:
    return sections(failures, totals(checks), Budget(size))


def _row(component: ComponentResult) -> Row:
    mark = MARKS.get(component.status, "")
    must, should, may = (Safe(component.levels[level].shown) for level in LEVELS)
    margin = Safe(shown_margin(component.worst_margin))
    return Row(component.name, f"{mark} {component.status}", must, should, may, margin)


def _absent(checks: Sequence[CheckRecord], verdict: Verdict) -> list[Item]:
    messages: dict[str, str] = {}
    for check in checks:
        if check.missed and check.message:
            messages.setdefault(check.component, check.message)
    return [
        Item(component.name, messages.get(component.name, ""))
        for component in verdict.components
        if component.status is Status.NOT_IMPLEMENTED
    ]


def _skipped(checks: Sequence[CheckRecord]) -> list[Item]:
    reasons = Counter((check.component, check.message) for check in checks if check.skipped)
    return [
        Item(name, message or "no reason given", count=plural(count, "check"))
        for (name, message), count in sorted(reasons.items())
    ]


def _circumstances(header: Header | None) -> dict[str, Any]:
    if header is None:
        return {"command": "", "isolation": (), "notices": ()}
    return {
        "command": header.command,
        "isolation": _bounded(header.isolation),
        "notices": _bounded(header.notices),
    }


def _run(results: Results, verdict: Verdict) -> list[Item]:
    """How the run was made, as rows of a table.  Times stand in the last row and nowhere else."""
    header = results.header
    if header is None:
        return []
    candidate = header.candidate
    rows = {
        "verdict": f"{verdict.kind}, exit code {verdict.exit_code.value}",
        "candidate": candidate.path,
        "found": candidate.how,
        "adapters": candidate.module,
        "left alone": ", ".join(_bounded(candidate.ignored)),
        "suite": f"{header.suite_version}, specification {header.spec_version}",
        "fixtures": header.fixtures_sha256,
        "profile": f"{header.profile}, level {header.level}, seed {header.seed}",
        "number formats": ", ".join(header.dtypes),
        "device": header.device,
        "checks": f"{header.collected} selected, {header.deselected} deselected",
        **_machine(header.environment),
        "time": _times(results),
    }
    return [Item(name, value=value) for name, value in rows.items() if value]


def _machine(environment: Mapping[str, Any]) -> dict[str, str]:
    plain = {
        name: value if isinstance(value, str) else json.dumps(encode(value), sort_keys=True)
        for name, value in sorted(environment.items())[:LIST_LENGTH]
    }
    return {f"machine: {name}": value for name, value in plain.items()}


def _times(results: Results) -> str:
    inside = fsum(check.seconds for check in results.checks)
    started = results.header.started if results.header else ""
    finished = results.footer.finished if results.footer else "not finished"
    return f"{started} to {finished}, {inside:.1f} s in checks"


def _bounded(items: Sequence[str]) -> list[str]:
    more = len(items) - LIST_LENGTH
    return [*items[:LIST_LENGTH], *([f"… and {more} more"] if more > 0 else [])]
