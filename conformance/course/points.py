"""Points: a pure function of the recorded results and the rubric.

A run that proves nothing gives no points at all, never a part of them: it was not whole, ended in
an error, left out a component that the rubric counts, or ran in the judge's own process. The grade
then says whose failure that is. `candidate` means that the submission could not be loaded;
everything else is `infrastructure`, which is no statement about the submission.

Requirements are counted, not checks: a requirement passes when all of its checks do. A component
that is not implemented gives 0 points at every level.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from conformance.adapters import COURSE_FUNCTIONS
from conformance.candidate.messages import Outcome
from conformance.course.rubric import Counts, Grading, Rubric, Worth, shown_points
from conformance.errors import ExitCode
from conformance.report.figures import listed, plural
from conformance.report.model import CheckRecord, Results
from conformance.report.policy import not_watched
from conformance.report.verdict import ComponentResult, Status, Verdict, VerdictKind, judge
from conformance.spec import Level

DECLARES = "its adapters module declares COMPONENTS"
"""How the notice begins that a submission chose its own components."""


class Blame(StrEnum):
    """Why a run gave no points: what the submission did, or what happened around it."""

    CANDIDATE = "candidate"
    INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True)
class Part:
    """The points for one level of a component: `passed` of `total` requirements passed."""

    level: Level
    points: Fraction
    possible: Fraction
    passed: int
    total: int

    @property
    def shown(self) -> str:
        """As in a list: "MUST 8 of 10 (9 of 10 requirements)"."""
        many = f"{self.passed} of {plural(self.total, 'requirement')}"
        return f"{self.level} {shown_points(self.points)} of {shown_points(self.possible)} ({many})"


@dataclass(frozen=True)
class Earned:
    """The points of one component; `note` says why there are none where nothing was asked."""

    component: str
    counts: Counts
    grading: Grading
    parts: tuple[Part, ...]
    note: str = ""

    @property
    def points(self) -> Fraction:
        """What was earned, whatever it counts for."""
        return sum((part.points for part in self.parts), Fraction(0))

    @property
    def possible(self) -> Fraction:
        """What could be earned."""
        return sum((part.possible for part in self.parts), Fraction(0))

    @property
    def counted(self) -> Fraction:
        """What is added to the points of the run."""
        return Fraction(0) if self.counts is Counts.LATER else self.points


@dataclass(frozen=True)
class Grade:
    """Points of a run, of so many; `blame` and `reason` say why there are none.

    A bonus is in `points` and not in `total`.
    """

    points: Fraction
    total: Fraction
    components: tuple[Earned, ...]
    blame: Blame | None = None
    reason: str = ""

    @property
    def shown(self) -> str:
        """In one line: "96.5 of 120 points", with the reason where there are none."""
        line = f"{shown_points(self.points)} of {shown_points(self.total)} points"
        return f"{line}: {self.blame} failure" if self.blame else line

    def to_json(self) -> dict[str, Any]:
        """As it stands in `report.json`."""
        return {
            "points": _number(self.points),
            "total": _number(self.total),
            "failure": self.blame.value if self.blame else None,
            "reason": self.reason,
            "components": {earned.component: _component(earned) for earned in self.components},
        }


def _component(earned: Earned) -> dict[str, Any]:
    parts = {
        part.level.lower(): {
            "points": _number(part.points),
            "possible": _number(part.possible),
            "passed": part.passed,
            "requirements": part.total,
        }
        for part in earned.parts
    }
    return {
        "points": _number(earned.points),
        "possible": _number(earned.possible),
        "counts": earned.counts.value,
        "grading": earned.grading.value,
        "note": earned.note,
        "levels": parts,
    }


def _number(points: Fraction) -> float:
    """As points are shown: up to two digits, rounded down."""
    return float(shown_points(points))


def award(results: Results, rubric: Rubric, verdict: Verdict | None = None) -> Grade:
    """The points of one run."""
    verdict = verdict or judge(results)
    blame, reason = _failure(results, rubric, verdict)
    if blame is not None:
        return Grade(Fraction(0), rubric.total, (), blame, reason)
    components = tuple(_earned(worth, results, verdict) for worth in rubric.components)
    points = sum((earned.counted for earned in components), Fraction(0))
    return Grade(points, rubric.total, components)


def _failure(results: Results, rubric: Rubric, verdict: Verdict) -> tuple[Blame | None, str]:
    """Why this run gives no points; nothing when it gives some."""
    header = results.header
    if results.error is not None:
        ours = verdict.exit_code is not ExitCode.CANNOT_LOAD
        return Blame.INFRASTRUCTURE if ours else Blame.CANDIDATE, verdict.headline
    if header is None or not verdict.whole or verdict.kind is VerdictKind.INCOMPLETE:
        return Blame.INFRASTRUCTURE, verdict.headline
    if header.in_process:
        return Blame.INFRASTRUCTURE, "The candidate ran in the judge's own process."
    asked = [worth for worth in rubric.components if worth.counts is Counts.REQUIRED]
    reason = _left_out(asked, header.selected, header.notices) or _unproved(asked, results, verdict)
    return (Blame.INFRASTRUCTURE, reason) if reason else (None, "")


def _left_out(asked: Sequence[Worth], selected: Sequence[str], notices: Sequence[str]) -> str:
    """Components of the course that count and were not selected; the others may be absent."""
    names = [w.component for w in asked if w.points and w.component in COURSE_FUNCTIONS]
    missing = [name for name in names if name not in selected]
    if not missing:
        return ""
    why = "select all that the rubric counts, or take them out of it"
    if any(notice.startswith(DECLARES) for notice in notices):
        why = "the submission's own COMPONENTS left them out; name them with --component"
    return f"The rubric counts {listed(missing)}, which the run did not select; {why}."


def _unproved(asked: Sequence[Worth], results: Results, verdict: Verdict) -> str:
    """A component whose MUST checks were skipped, or of which there was none."""
    found = {component.name: component for component in verdict.components}
    for worth in asked:
        component = found.get(worth.component)
        if component is None or component.status is Status.NOT_IMPLEMENTED or not worth.must:
            continue
        tally = component.levels[Level.MUST]
        if not tally.total:
            return f"No MUST check ran for {worth.component}."
        if tally.skipped:
            skipped = [c for c in _checks(results, worth, Level.MUST) if c.skipped]
            said = sorted(c.message for c in skipped if c.message)
            many = plural(tally.skipped, "MUST check")
            return f"{many} of {worth.component} skipped: {(said or ['no reason given'])[0]}."
    return ""


def _checks(results: Results, worth: Worth, level: Level) -> list[CheckRecord]:
    return [c for c in results.checks if c.component == worth.component and c.level == level]


def _earned(worth: Worth, results: Results, verdict: Verdict) -> Earned:
    component = next((c for c in verdict.components if c.name == worth.component), None)
    note = _note(component, results)
    parts = tuple(
        _part(level, possible, _checks(results, worth, level), worth.grading, not note)
        for level, possible in ((Level.MUST, worth.must), (Level.SHOULD, worth.should))
        if possible
    )
    return Earned(worth.component, worth.counts, worth.grading, parts, note)


def _note(component: ComponentResult | None, results: Results) -> str:
    """Why a component gives no points at all."""
    if component is None:
        return "not selected, or not provided by the submission"
    if component.forfeited:
        return component.forfeited
    if component.forfeited:
        return component.forfeited
    if component.status is not Status.NOT_IMPLEMENTED:
        policy = results.policy
        unknown = policy is not None and not_watched(policy, [component.name])
        return "no call was watched, so whether it keeps the rules is not known" if unknown else ""
    checks = (c for c in results.checks if c.component == component.name)
    said = sorted(c.message for c in checks if c.message)
    return f"not implemented: {said[0]}" if said else "not implemented"


def _part(
    level: Level, possible: Fraction, checks: Sequence[CheckRecord], grading: Grading, gives: bool
) -> Part:
    requirements: dict[str, list[CheckRecord]] = defaultdict(list)
    for check in checks:
        requirements[check.requirement].append(check)
    kept = [
        mine
        for mine in requirements.values()
        if level is Level.MUST or any(c.outcome != Outcome.SKIPPED for c in mine)
    ]
    passed = sum(all(c.passed for c in mine) for mine in kept)
    share = Fraction(passed, len(kept)) if kept and gives else Fraction(0)
    if grading is Grading.ALL_OR_NOTHING:
        share = Fraction(math.floor(share))
    points = Fraction(math.floor(possible * share * 100), 100)
    # points of more than two digits, as 1/3 cannot be written, are given whole
    return Part(level, possible if share == 1 else points, possible, passed, len(kept))
