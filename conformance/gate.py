"""`--gate`: the run decides, so everything but a whole run that conforms is refused.

A pass needs all of this, each looked at here once more: the run came to its end, its verdict is
conforming, every planned check has one result and nothing else has, the results on the disk are
those of this run, and the report beside them tells the same verdict. Whatever else happens ends
with another exit code, and the last line says why.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from conformance.errors import ConformanceError, ExitCode, UsageError
from conformance.report.stream import JSON_NAME

if TYPE_CHECKING:
    from conformance.grading import Grading
    from conformance.options import GradeOptions

NAME = "conformance-gate"
"""Under which the gate is registered with pytest."""

PASS, FAIL, ERROR = "PASS", "FAIL", "ERROR"

NARROWING = ("component", "dtype", "check")
"""Options that take a part; components and dtypes may stand in the instructor's file."""

LONGEST = 300


class Gate:
    """Watches one run and draws the line under it."""

    def __init__(self) -> None:
        self.grading: Grading | None = None
        self.refused: ConformanceError | None = None

    def decided(self, code: int) -> tuple[str, str, ExitCode]:
        """Word, reason and exit code for a run that ended with `code`."""
        grading = self.grading
        error = self.refused or (grading.stopped if grading else None)
        if error is not None:
            return ERROR, error.message, _failing(error.exit_code)
        if grading is None or grading.verdict is None:
            return ERROR, "the run did not come to its end", _failing(code)
        verdict = grading.verdict
        if verdict.exit_code not in (ExitCode.CONFORMING, ExitCode.NOT_CONFORMING):
            return ERROR, verdict.error or verdict.headline, verdict.exit_code
        problem = unaccounted(grading)
        if problem:
            return ERROR, problem, ExitCode.INTERNAL
        if verdict.exit_code != code:
            return ERROR, f"the run ended with {code}, its verdict is another", ExitCode.INTERNAL
        word = PASS if verdict.exit_code is ExitCode.CONFORMING else FAIL
        return word, verdict.headline, verdict.exit_code


def _failing(code: int) -> ExitCode:
    """A code that is no pass and says nothing about the candidate."""
    verdicts = (ExitCode.CONFORMING, ExitCode.NOT_CONFORMING)
    known = [one for one in ExitCode if one not in verdicts]
    return next((one for one in known if one == code), ExitCode.INTERNAL)


def last_line(word: str, reason: str) -> str:
    """`GATE: PASS reason`, on one line whatever the reason quotes."""
    text = " ".join("".join(c if c.isprintable() else " " for c in reason).split())
    return f"GATE: {word} {text[: LONGEST - 1] + '…' if len(text) > LONGEST else text}"


def unaccounted(grading: Grading) -> str:
    """Why the results do not cover what was to be done; empty when they do."""
    recorder = grading.recorder
    if recorder is None:
        return "nothing was recorded"
    if recorder.failed:
        return "the results could not be recorded"
    planned = [check.id for check in grading.run.plan()]
    missing, more = _difference(planned, recorder.writer.ids)
    if missing or more:
        return (
            f"{len(planned)} checks were planned; {missing} of them have no result, "
            f"and {more} results belong to none"
        )
    if not planned:
        return "no check was planned"
    return _told_otherwise(grading)


def _difference(planned: Sequence[str], recorded: Sequence[str]) -> tuple[int, int]:
    wanted, found = Counter(planned), Counter(recorded)
    return (wanted - found).total(), (found - wanted).total()


def _told_otherwise(grading: Grading) -> str:
    """Why the report beside the results cannot be this run's; empty when it can."""
    recorder, verdict = grading.recorder, grading.verdict
    assert recorder is not None
    assert verdict is not None
    path = recorder.folder / JSON_NAME
    try:
        told: dict[str, Any] = json.loads(path.read_text("utf-8"))
        same = told["verdict"] == verdict.kind.value and len(told["checks"]) == len(
            recorder.writer.ids
        )
        if same and recorder.results.read_bytes() == recorder.writer.content:
            return ""
    except (OSError, ValueError, TypeError, KeyError) as error:
        return f"the report cannot be read back: {error}"
    return f"the reports in {recorder.folder} are not those of this run"


def must_be_decidable(options: GradeOptions, given: Sequence[str]) -> None:
    """UsageError for options with which a run cannot decide; `given` are those of the command."""
    if options.in_process:
        raise UsageError(
            "--gate and --in-process: in the judge's process the candidate could decide for "
            "itself; leave --in-process out"
        )
    if options.trust:
        raise UsageError(
            "--gate and --trust: what lies in the submission's folder must take no part; leave "
            "--trust out"
        )
    narrowed = [name for name in NARROWING if name in given]
    if narrowed:
        raise UsageError(
            f"--gate decides on a whole run, and --{narrowed[0]} takes a part of it; leave it out, "
            "or select components and dtypes in the table [grade] of a file for --config"
        )
    if options.max_minutes is not None:
        raise UsageError(
            "--gate and --max-minutes: a candidate that is slow enough would be asked less; leave "
            "--max-minutes out; --stop-after ends the whole run"
        )


def gated(arguments: Sequence[str]) -> int:
    """Grade with these arguments of pytest and print the last line; the exit code."""
    import pytest

    gate = Gate()
    try:
        code = int(pytest.main(list(arguments), plugins=[gate]))
        word, reason, decided = gate.decided(code)
        if word == ERROR and gate.grading is not None:
            gate.grading.outputs.doubt(reason)
    except KeyboardInterrupt:
        word, reason, decided = ERROR, "interrupted", ExitCode.INTERNAL
    except BaseException as error:
        text = f"{type(error).__name__}: {error}"
        word, reason, decided = ERROR, f"the suite itself failed: {text}", ExitCode.INTERNAL
    print(last_line(word, reason), flush=True)
    return int(decided)
