"""Mistakes that no wrong value shows: memory, state, strides, dtypes, exceptions.

They are known by the requirement that fails while plain values are right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.candidate.messages import Outcome
from conformance.diagnosis import words
from conformance.diagnosis.catalogue import Fault, faults
from conformance.report import Diagnosis
from conformance.suite.check import Check
from conformance.suite.failure import CheckResult

SIGNS = {
    "purity": r"changed its argument|changed the dictionary|shares memory|changed the result",
    "state": r"after calls with other sizes|the result of call|differently when it was asked again",
    "strides": r"non-contiguous|view size|contiguous|stride",
    "dtype": r"the result is \w+ for",
    "crash": r"Error|Exception",
}
"""How the failure of a check reads, by where a fault shows."""

IN_PLACE = r"inplace operation|in-place operation"
"""How torch words that an operation in place has overwritten what the backward pass needs."""

UNSTEADY = r"^$|the result of call"
"""The `message` of faults that answer an input in another way when it is asked again at once."""

MOST = 3
"""With more faults than this behind one requirement, naming them tells nobody anything."""


@dataclass(frozen=True)
class Signs:
    """What was seen beside the failed check itself.

    `wrong`: plain values are wrong; `raises`: plain inputs raise; `kept`: arguments of an earlier
    call for which a wrong answer is right; `unsteady`: one input is answered in different ways.
    """

    wrong: bool = False
    raises: bool = False
    kept: Sequence[str] = ()
    unsteady: bool = False


def behind(check: Check, result: CheckResult, signs: Signs) -> Diagnosis | None:
    """The fault behind a failed requirement of behaviour, None where none can be named."""
    own = [f for f in faults(check.component.name).values() if not f.pieces]
    if signs.unsteady:
        changing = [f for f in own if f.visible in ("state", "value") and not f.stale]
        changing = [f for f in changing if re.search(UNSTEADY, f.message)]
        return words.unsteady(check.component, changing if len(changing) <= MOST else [])
    if signs.kept:
        possible = [f for f in own if set(f.stale) == set(signs.kept)]
        return words.kept(check.component, signs.kept, possible[:MOST])
    if signs.wrong:
        return None
    if result.outcome is Outcome.RAISED and re.search(IN_PLACE, result.message):
        possible = [f for f in own if f.visible == "purity" and "dictionary" not in f.message]
        possible = possible or [f for f in own if f.visible == "gradient"]
    else:
        possible = [f for f in own if check.requirement.id in f.requirements]
        possible = [f for f in possible if _reads_like(f, result, signs.raises)]
    if not 0 < len(possible) <= MOST:
        return None
    return words.behaves(check.component, possible, result)


def _reads_like(fault: Fault, result: CheckResult, raises: bool) -> bool:
    """Whether the message is one of this fault, which shows where it says and nowhere else."""
    if fault.visible not in SIGNS or (raises and fault.visible != "crash"):
        return False
    return re.search(fault.message or SIGNS[fault.visible], result.message) is not None
