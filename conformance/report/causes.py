"""What lies behind the failures: one mistake often fails many checks, in several components.

A reader wants the mistakes, not the checks. Failed checks with the same diagnosis are one cause,
told once with what it explains.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conformance.report.model import CERTAINTIES, CheckRecord, Diagnosis


@dataclass(frozen=True)
class Cause:
    """A named mistake and the failed checks that it explains.

    `diagnosis` is the surest of those that name it. `components` are those whose checks it fails,
    in the given order.
    """

    diagnosis: Diagnosis
    checks: tuple[CheckRecord, ...]
    components: tuple[str, ...]

    @property
    def place(self) -> str:
        """The component in which the mistake is."""
        return self.diagnosis.component


def causes(checks: Iterable[CheckRecord], components: Sequence[str]) -> list[Cause]:
    """The mistakes that are named, those that explain most checks first."""
    groups: dict[tuple[str, str], list[CheckRecord]] = {}
    for check in checks:
        found = check.diagnosis
        if check.missed and found is not None and found.fault:
            groups.setdefault((found.component, found.fault), []).append(check)
    position = {name: index for index, name in enumerate(components)}
    found_causes = [_cause(members, position) for members in groups.values()]
    return sorted(
        found_causes,
        key=lambda c: (-len(c.checks), position.get(c.place, len(position)), c.diagnosis.fault),
    )


def _cause(members: Sequence[CheckRecord], position: dict[str, int]) -> Cause:
    told = [check.diagnosis for check in members if check.diagnosis is not None]
    surest = min(told, key=lambda d: (CERTAINTIES.index(d.certainty), len(d.sentence), d.sentence))
    names = sorted({check.component for check in members}, key=lambda n: position.get(n, 99))
    ordered = sorted(members, key=lambda check: check.id)
    return Cause(surest, tuple(ordered), tuple(names))
