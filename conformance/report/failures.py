"""Sorting failures for a reader: what belongs together is told once.

Wrong values are told requirement by requirement.  Where a candidate gave no answer (it raised,
crashed, ran out of time or memory, or lacks a part), the same message is told once per component,
because it has one cause whatever was asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conformance.candidate.messages import Outcome
from conformance.report.model import LEVELS, CheckRecord, Details


@dataclass(frozen=True)
class Failure:
    """Checks that failed for one reason, as far as that can be told.

    `shown` is told in full: one with a diagnosis if there is any, in float32 if there is one, with
    the smallest input, first by id.  `same` are the other checks with the same message (other
    dtypes, most often), `others` those of the same requirement that say something else.
    """

    component: str
    level: str
    outcome: str
    requirements: tuple[str, ...]
    shown: CheckRecord
    same: tuple[CheckRecord, ...]
    others: tuple[CheckRecord, ...]

    @property
    def size(self) -> int:
        return 1 + len(self.same) + len(self.others)


def group(
    checks: Iterable[CheckRecord], components: Sequence[str], requirements: Sequence[str] = ()
) -> list[Failure]:
    """The failures among the checks: by component, level and requirement, in the given orders.

    Requirements that are not in the given order come last, missing answers first among them.
    """
    groups: dict[tuple[str, ...], list[CheckRecord]] = defaultdict(list)
    for check in checks:
        if check.missed:
            groups[_key(check)].append(check)
    position = {name: index for index, name in enumerate(components)}
    rank = {name: index for index, name in enumerate(requirements)}

    def order(failure: Failure) -> tuple[object, ...]:
        answered = failure.outcome == Outcome.FAILED
        return (
            position.get(failure.component, len(position)),
            failure.component,
            LEVELS.index(failure.level),
            min(rank.get(name, len(rank)) for name in failure.requirements),
            answered,
            "" if answered else failure.outcome,
            failure.requirements,
            failure.shown.id,
        )

    return sorted((_failure(members) for members in groups.values()), key=order)


def _key(check: CheckRecord) -> tuple[str, ...]:
    about = check.requirement if check.outcome == Outcome.FAILED else check.message
    return check.component, check.level, check.outcome, about


def _failure(members: list[CheckRecord]) -> Failure:
    ordered = sorted(members, key=_telling)
    shown, rest = ordered[0], sorted(ordered[1:], key=lambda check: check.id)
    return Failure(
        component=shown.component,
        level=shown.level,
        outcome=shown.outcome,
        requirements=tuple(sorted({check.requirement for check in members})),
        shown=shown,
        same=tuple(check for check in rest if _alike(check, shown)),
        others=tuple(check for check in rest if not _alike(check, shown)),
    )


def _telling(check: CheckRecord) -> tuple[bool, bool, bool, int, str]:
    """Sorting key: the check that tells a reader most comes first, in the most familiar dtype."""
    details = check.details or Details()
    inputs = details.inputs or ""
    familiar = details.dtype == "float32"
    return check.diagnosis is None, not inputs, not familiar, len(inputs), check.id


def _alike(check: CheckRecord, other: CheckRecord) -> bool:
    return (check.message, check.diagnosis) == (other.message, other.diagnosis)
