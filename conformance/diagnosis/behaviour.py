"""Mistakes that no wrong value shows: memory, state, strides, dtypes, exceptions.

They are known by the requirement that fails while plain values are right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from conformance.diagnosis import words
from conformance.diagnosis.catalogue import faults
from conformance.report import Diagnosis
from conformance.suite.check import Check
from conformance.suite.failure import CheckResult

SIGNS = {
    "purity": r"changed its argument|changed the dictionary|shares memory|changed the result|"
    r"inplace operation|in-place operation",
    "state": r"after calls with other sizes|the result of call|differently when it was asked again",
    "strides": r"non-contiguous|view size|contiguous|stride",
    "dtype": r"the result is \w+ for",
    "crash": r"Error|Exception",
}
"""How the failure of a check reads, by where a fault shows."""

MOST = 3
"""With more faults than this behind one requirement, naming them tells nobody anything."""


def behind(
    check: Check, result: CheckResult, plainly_right: bool, kept: Sequence[str], unsteady: bool
) -> Diagnosis | None:
    """The fault behind a failed requirement of behaviour, None where none can be named.

    `plainly_right` says that plain values are right, `kept` names arguments of an earlier call for
    which a wrong answer is right, `unsteady` that one input is answered in more than one way.
    """
    own = [f for f in faults(check.component.name).values() if not f.pieces]
    if kept:
        possible = [f for f in own if set(f.stale) == set(kept)]
        return words.kept(check.component, kept, possible[:MOST])
    if unsteady:
        changing = [f for f in own if f.visible in ("state", "value") and not f.stale]
        return words.unsteady(check.component, changing if len(changing) <= MOST else [])
    if not plainly_right:
        return None
    possible = [
        f
        for f in own
        if check.requirement.id in f.requirements
        and f.visible in SIGNS
        and re.search(f.message or SIGNS[f.visible], result.message)
    ]
    if not 0 < len(possible) <= MOST:
        return None
    return words.behaves(check.component, possible, result)
