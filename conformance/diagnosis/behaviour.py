"""Mistakes that no wrong value shows: memory, state, strides, dtypes, exceptions.

They are known by the requirement that fails while plain values are right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from conformance.candidate.messages import Outcome
from conformance.diagnosis import words
from conformance.diagnosis.catalogue import Fault, faults
from conformance.diagnosis.observe import Observation
from conformance.report import Diagnosis
from conformance.suite.check import Check
from conformance.suite.failure import CheckResult

KINDS = ("purity", "state", "strides", "dtype", "crash")
MOST = 3
"""With more faults than this behind one requirement, naming them tells nobody anything."""


def behind(
    check: Check, result: CheckResult, observations: Sequence[Observation]
) -> Diagnosis | None:
    """The fault behind a failed requirement of behaviour; None unless plain values are right."""
    if any(o.wrong_value or o.wrong_gradients for o in observations):
        return None
    possible = [
        fault
        for fault in faults(check.component.name).values()
        if fault.visible in KINDS
        and check.requirement.id in fault.requirements
        and _speaks(fault, result)
    ]
    if not 0 < len(possible) <= MOST:
        return None
    return words.behaves(check.component, possible, result)


def _speaks(fault: Fault, result: CheckResult) -> bool:
    """Whether the outcome and its message are those of the fault."""
    raised = result.outcome is Outcome.RAISED
    if raised != (fault.visible in ("crash", "strides")) and fault.visible != "state":
        return False
    return not fault.message or re.search(fault.message, result.message) is not None
