"""What a reader should do next: one sentence, and a command where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from conformance.candidate.messages import NOT_ASKED
from conformance.errors import ExitCode
from conformance.report.failures import Failure
from conformance.report.figures import listed
from conformance.report.model import Header
from conformance.report.verdict import Status, Verdict, VerdictKind


@dataclass(frozen=True)
class NextStep:
    """A sentence, the likely mistake behind the failure to start with, and a command with its lead.

    All but the sentence may be empty.
    """

    advice: str
    command: str = ""
    likely: str = ""
    lead: str = ""


def next_step(
    header: Header | None, verdict: Verdict, deciding: Sequence[Failure], remarks: int = 0
) -> NextStep:
    """The next step after a verdict.

    `deciding` are the failures that count, in the order of the report; `remarks` is the number of
    those that do not.
    """
    command = header.command if header else ""
    if verdict.kind is VerdictKind.CONFORMING:
        note = f" The report lists {remarks} remarks that do not count." if remarks else ""
        return NextStep(f"Nothing has to change.{note}")
    if verdict.kind is VerdictKind.NON_CONFORMING:
        return _mend(verdict, deciding)
    if verdict.exit_code in (ExitCode.USAGE, ExitCode.CANNOT_LOAD, ExitCode.NO_SANDBOX):
        return _again("Mend what the message says.", command)
    if verdict.kind is VerdictKind.ERROR:
        return _again("If it happens again, report it and attach results.jsonl.", command)
    if passes_as_far_as_asked(header, verdict):
        these = "This check passes" if header.collected == 1 else "These checks pass"
        return NextStep(
            f"{these} now; for a verdict run the whole, without --check, -k and other filters."
        )
    if header and (header.deselected or not header.complete_selection):
        return NextStep("For a verdict, run it again without --check, -k and other filters.")
    if verdict.whole:
        return _again("Remove the cause given above.", command)
    return _again("Let the run come to its end.", command)


def passes_as_far_as_asked(header: Header | None, verdict: Verdict) -> TypeGuard[Header]:
    """Whether a part of the checks was selected, and all of these passed."""
    if header is None or verdict.kind is not VerdictKind.INCOMPLETE or header.in_process:
        return False
    narrowed = bool(header.deselected) or not header.complete_selection
    ran = sum(tally.total for c in verdict.components for tally in c.levels.values())
    passed = sum(c.passed for c in verdict.components)
    return narrowed and ran == passed == header.collected > 0


def _again(advice: str, command: str) -> NextStep:
    return NextStep(advice, command, lead="Run it again:" if command else "")


def _mend(verdict: Verdict, deciding: Sequence[Failure]) -> NextStep:
    absent = [c.name for c in verdict.components if c.status is Status.NOT_IMPLEMENTED]
    if not deciding and absent:
        return NextStep(f"Implement {listed(absent)}.")
    if not deciding:
        return NextStep("Write yourself what the section on the rules of the course names.")
    asked = [f for f in deciding if not f.shown.message.startswith(NOT_ASKED)]
    shown = (asked or deciding)[0].shown
    replay = shown.details.replay if shown.details else None
    what = f"{shown.requirement} in {shown.component}"
    return NextStep(
        f"Start with {what}, explained below.",
        replay or "",
        shown.diagnosis.sentence if shown.diagnosis else "",
        "This repeats only that check:" if replay else "",
    )
