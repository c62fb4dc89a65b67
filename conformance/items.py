"""The checks as pytest sees them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.candidate.messages import Outcome
from conformance.errors import InternalError, internal_error
from conformance.suite.check import Check

if TYPE_CHECKING:
    from conformance.grading import Grading

GRADING = "conformance-grading"
"""Name under which the hooks of a run are registered."""

RECORD = "conformance"
"""Name under which a check's record travels with pytest's report (also between processes)."""

FAULT = "conformance-fault"
"""The same for an internal error of the suite."""

WATCHED = "conformance-watched"
"""The same for what a policy has seen."""

WORDS = {
    Outcome.PASSED: ("passed", ".", "PASSED"),
    Outcome.NOT_IMPLEMENTED: ("not implemented", "n", "NOT IMPLEMENTED"),
    Outcome.FAILED: ("failed", "F", "FAILED"),
    Outcome.RAISED: ("failed", "R", "RAISED"),
    Outcome.CRASHED: ("failed", "C", "CRASHED"),
    Outcome.TIMED_OUT: ("failed", "T", "TIMED OUT"),
    Outcome.OUT_OF_MEMORY: ("failed", "M", "OUT OF MEMORY"),
    Outcome.DELEGATED: ("failed", "D", "DELEGATED"),
    Outcome.SKIPPED: ("skipped", "s", "SKIPPED"),
}
ADVICE = ("not met (not binding)", "o", "NOT MET")


class Suite(pytest.Directory):
    """The suite's folder: all checks of a run."""

    def collect(self) -> Iterator[pytest.Item]:
        """The checks of the run, in order; none when it cannot go on."""
        grading: Grading = self.config.pluginmanager.getplugin(GRADING)
        for check in grading.checks():
            yield CheckItem.from_parent(self, name=check.id, check=check)


class CheckItem(pytest.Item):
    """One check as pytest runs it."""

    def __init__(self, *, check: Check, **kwargs: Any) -> None:
        super().__init__(nodeid=check.id, **kwargs)
        self.check = check
        self.record: dict[str, Any] | None = None
        self.fault: InternalError | None = None
        self.watched: dict[str, Any] | None = None

    def runtest(self) -> None:
        """Run the check; `finished` makes pytest's report of it."""
        grading: Grading = self.config.pluginmanager.getplugin(GRADING)
        try:
            # -W error is meant for the user's code, not for arithmetic with infinities in ours
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = grading.run.run(self.check)
                self.record = grading.run.record(self.check, result)
                self.watched = grading.run.watched()
        except Exception as error:
            self.fault = internal_error(error, f"check {self.check.id}")

    def finished(self, report: pytest.TestReport) -> None:
        """Complete pytest's report of the call."""
        if self.fault is not None:
            report.user_properties.append((FAULT, self.fault.text))
            report.outcome, report.longrepr = "failed", self.fault.text
            return
        if self.record is None:  # interrupted
            return
        report.user_properties.append((RECORD, self.record))
        if self.watched is not None:
            report.user_properties.append((WATCHED, self.watched))
        outcome = Outcome(self.record["outcome"])
        grading: Grading = self.config.pluginmanager.getplugin(GRADING)
        if outcome is Outcome.PASSED:
            return
        if outcome is Outcome.NOT_IMPLEMENTED or not grading.run.binding(self.record["level"]):
            path, line, _ = self.reportinfo()
            shown = grading.shown(self.record)
            reason = f"{shown['level']} {shown['message']}"
            report.outcome, report.longrepr = "skipped", (str(path), (line or 0) + 1, reason)
            return
        report.outcome, report.longrepr = "failed", failure_text(grading.shown(self.record))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the check stands."""
        code = self.check.function.__code__
        return Path(code.co_filename), code.co_firstlineno - 1, self.check.id


def property_of(report: Any, wanted: str) -> Any:
    """What travels with pytest's report under that name; None if nothing does."""
    for name, value in getattr(report, "user_properties", ()):
        if name == wanted:
            return value
    return None


def failure_text(record: dict[str, Any]) -> str:
    """A failed check as pytest shows it in its list of failures."""
    details = record["details"] or {}
    lines = [
        f"{record['requirement']} ({record['level']}): {details.get('sentence', '')}",
        f"{record['outcome']}: {record['message']}",
    ]
    labels = ("case", "note", "inputs", "expected", "got", "where", "printed", "traceback")
    for label in labels if not details.get("hidden") else ("case", "note"):
        if details.get(label):
            text = str(details[label]).replace("\n", "\n" + " " * 12)
            lines.append(f"{label + ':':<11} {text}")
    lines.append(f"replay:     {details.get('replay', '')}")
    if details.get("counterexample_replay"):
        lines.append(f"its input:  {details['counterexample_replay']}")
    return "\n".join(lines)
