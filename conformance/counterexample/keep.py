"""Keeping the input of a failed check beside the report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from conformance.candidate.messages import Outcome
from conformance.counterexample.form import Counterexample, accepts
from conformance.counterexample.judge import judge
from conformance.errors import ConformanceError
from conformance.options import GradeOptions
from conformance.report.files import write_bytes
from conformance.report.stream import COUNTEREXAMPLES
from conformance.suite.case import size
from conformance.suite.check import Check
from conformance.suite.failure import CheckResult
from conformance.suite.grader import Context, Example, Grader

KEPT = (Outcome.FAILED, Outcome.RAISED)
"""Outcomes of which the input is kept."""

LARGEST = 1_000_000
"""An input with more numbers than this is not kept."""

EVALUATED = 20_000
"""The definition is evaluated for inputs of at most so many numbers, where that was not done."""

LONGEST = 4000
"""Characters of a message that are kept."""


@dataclass(frozen=True)
class Keeper:
    """Stores failing inputs of one run in the folder of its report; `cwd` is where it was run."""

    options: GradeOptions
    folder: Path
    cwd: Path

    def keep(self, check: Check, result: CheckResult, context: Context) -> dict[str, str]:
        """Store the input of a check that did not pass; what the report's details say of it.

        A check of a class has no input of the adapter function. That something cannot be stored
        takes nothing from the verdict.
        """
        example = result.evidence.example
        if result.outcome not in KEPT or example is None or check.module:
            return {}
        try:
            return self._kept(check, result, _evaluated(check, example, context))
        except ConformanceError as error:
            return {"counterexample_note": f"not stored: {error.message}"}
        except Exception as error:
            return {"counterexample_note": f"not stored, which is our mistake: {error!r:.300}"}

    def _kept(self, check: Check, result: CheckResult, example: Example) -> dict[str, str]:
        if not accepts(check.component.function, example.arguments):
            return {"counterexample_note": "not stored: it is not the input of one call"}
        if _numbers(example) > LARGEST:
            reason = f"the input has more than {LARGEST:,} numbers"
            return {"counterexample_note": f"not stored: {reason}"}
        found = _counterexample(check, result, example, self.options)
        path = self.folder / COUNTEREXAMPLES / file_name(check)
        write_bytes(path, found.to_bytes(), "the counterexample")
        shown = str(path.relative_to(self.cwd) if path.is_relative_to(self.cwd) else path)
        shown = f"./{shown}" if shown.startswith("-") else shown
        command = shlex.join(["conformance", "replay", shown])
        return {"counterexample": shown, "counterexample_replay": command}


def file_name(check: Check) -> str:
    """One file per check: `rope--definition-float32.safetensors`."""
    return f"{check.component.name}--{check.name}-{check.dtype}.safetensors"


def _counterexample(
    check: Check, result: CheckResult, example: Example, options: GradeOptions
) -> Counterexample:
    evidence = result.evidence
    found = Counterexample(
        check=check.id,
        requirement=check.requirement.id,
        component=check.component.name,
        function=check.component.function,
        dtype=check.dtype,
        arguments=example.arguments,
        case=example.case,
        why=example.why,
        how=evidence.how,
        wrt=evidence.wrt,
        cotangent=example.cotangent,
        bounds=example.bounds,
        outcome=str(result.outcome),
        message=result.message[:LONGEST],
        about=evidence.about,
        impl=options.impl,
        options=_stored(options),
    )
    if evidence.reply is None:
        return found
    return replace(found, alone=bool(judge(found, evidence.reply).problem))


def _stored(options: GradeOptions) -> Mapping[str, Any]:
    """The options that repeat the run, as JSON values."""
    whole = replace(options, component=(), check=(), report=None)
    return {
        name: value if isinstance(value, bool | int | float | str | tuple) else str(value)
        for name, value in whole.not_default().items()
    }


def _evaluated(check: Check, example: Example, context: Context) -> Example:
    """The example with exact values and tolerances, where the definition can give them."""
    if example.bounds is not None or size(example.arguments) > EVALUATED:
        return example
    try:
        with np.errstate(all="ignore"):
            return Grader(check.component, check.dtype, context).bounded(example)
    except Exception:  # an input made for another purpose; nothing is claimed about it then
        return example


def _numbers(example: Example) -> int:
    """How many numbers the input has, or what is expected where that is more."""
    expected = example.bounds.result.expected.size if example.bounds else 0
    return max(size(example.arguments), expected)
