"""The rules of the course as a reader meets them: in the report, and in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conformance.report.figures import plural
from conformance.report.policy import RAN, PolicyRecord, PolicyUse
from conformance.report.text import one_line

ROWS = 60
LINES = 5
UNREACHED = "(none)"
"""Stands in the place of a component for code that none was found to reach."""

EFFECTS = {
    "report": "only reported",
    "zero": "no points for the component",
    "fail": "non-conforming",
}
SEEN = {RAN: "it ran", "read": "in the source, not seen to run"}


@dataclass(frozen=True)
class RuleRow:
    """One use in the table of the report."""

    component: str
    name: str
    place: str
    seen: str
    effect: str
    rule: str


@dataclass(frozen=True)
class Rules:
    """The section of the report on the rules."""

    heading: str
    source: str
    rows: tuple[RuleRow, ...]
    more: int
    watched: str
    remarks: tuple[str, ...]


def rules(policy: PolicyRecord | None) -> Rules | None:
    """The section; None where no rules hold."""
    if policy is None:
        return None
    return Rules(
        heading=_heading(policy),
        source=policy.source.rstrip("."),
        rows=tuple(_row(use) for use in policy.uses[:ROWS]),
        more=max(0, len(policy.uses) - ROWS),
        watched=_watched(policy),
        remarks=policy.remarks,
    )


def _heading(policy: PolicyRecord) -> str:
    counting, others = len(policy.counting), len(policy.uses) - len(policy.counting)
    if not policy.uses:
        return f"Nothing was found that the policy {policy.name} forbids."
    told = f"The policy {policy.name} forbids what is listed here: {plural(counting, 'use')} "
    told += "with an effect"
    return f"{told}, {others} without." if others else f"{told}."


def _row(use: PolicyUse) -> RuleRow:
    return RuleRow(
        component=use.component or UNREACHED,
        name=use.name,
        place=use.place,
        seen=SEEN[use.seen],
        effect=EFFECTS[use.effect],
        rule=use.rule,
    )


def _watched(policy: PolicyRecord) -> str:
    """How much was looked at: what is not listed here was not necessarily never used."""
    counts = ", ".join(f"{name} {number}" for name, number in policy.observed.items())
    return f"Calls that were watched: {counts or 'none'}. The source files were read as well."


def rule_lines(policy: PolicyRecord | None, width: int) -> str:
    """For the terminal: nothing without rules, one line where nothing was found."""
    if policy is None:
        return ""
    counting: Sequence[PolicyUse] = policy.counting
    others = len(policy.uses) - len(counting)
    also = f" ({plural(others, 'use')} only reported, see the report)" if others else ""
    if not counting:
        number = sum(count > 0 for count in policy.observed.values())
        seen = f"nothing forbidden was seen in {plural(number, 'component')}"
        return one_line(f"Rules of {policy.name}: {seen}{also}.", width)
    lines = [f"Rules of {policy.name}: broken by {plural(len(counting), 'use')}{also}."]
    for use in counting[:LINES]:
        where = use.component or UNREACHED
        text = f"{where}: {use.name} in {use.place}, {EFFECTS[use.effect]}"
        lines.append(f"  {one_line(text, width - 2)}")
    if len(counting) > LINES:
        lines.append(f"… and {len(counting) - LINES} more, see the report.")
    return "\n".join(lines)
