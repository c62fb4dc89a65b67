"""How a check ends other than by passing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.candidate.messages import Outcome, Reply

if TYPE_CHECKING:
    from conformance.suite.grader import Example


HIDDEN = {outcome: f"{outcome} on a hidden input" for outcome in Outcome}
HIDDEN[Outcome.FAILED] = "a hidden input is answered wrongly"
HIDDEN[Outcome.RAISED] = "an exception is raised for a hidden input"


@dataclass(frozen=True)
class Evidence:
    """What a reader needs to understand and repeat a failure, as text.

    Beside it, for the diagnosis and to ask again, the example itself, the reply to it, how it was
    asked (what else the call said: layouts, mode, repetitions), the arguments that were
    differentiated (`wrt`), what the check looked at where that is not a value (`about`), and
    whether the input was drawn from a hidden seed.
    """

    case: str = ""
    why: str = ""
    inputs: str = ""
    expected: str = ""
    got: str = ""
    where: str = ""
    error: float | str | None = None
    tolerance: float | None = None
    printed: str = ""
    traceback: str = ""
    size: int = 0
    example: Example | None = field(default=None, repr=False, compare=False)
    reply: Reply | None = field(default=None, repr=False, compare=False)
    how: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    wrt: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    hidden: bool = False


class CheckFailure(Exception):
    """A check that did not pass: its outcome, one sentence, and the evidence."""

    def __init__(
        self,
        outcome: Outcome,
        message: str,
        evidence: Evidence | None = None,
        margin: float | None = None,
    ) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message
        self.evidence = evidence or Evidence()
        self.margin = margin


@dataclass(frozen=True)
class CheckResult:
    """How one check ended, with its margin (largest error over its tolerance) and notes."""

    outcome: Outcome
    message: str = ""
    margin: float | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def shown(self) -> str:
        """The message for everybody: of a hidden input it holds nothing."""
        return HIDDEN[self.outcome] if self.evidence.hidden else self.message

    def details(self, extra: Mapping[str, Any]) -> dict[str, Any]:
        """The evidence as plain values for the record, merged with `extra`."""
        e = self.evidence
        told = {"hidden_message": self.message} if e.hidden else {}
        return {
            "case": e.case,
            "note": e.why,
            "inputs": e.inputs,
            "expected": e.expected,
            "got": e.got,
            "where": e.where,
            "error": e.error,
            "tolerance": e.tolerance,
            "printed": e.printed,
            "traceback": e.traceback,
            **told,
            **extra,
        }
