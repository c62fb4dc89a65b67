"""The rules of a course in the record of a run: what was used, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from conformance.report import shape
from conformance.report.shape import Convert, encode

EFFECTS = ("report", "zero", "fail")
"""What follows from a use: nothing, no points for the component, a non-conforming verdict."""

RAN, READ = "run time", "read"
"""How a use was seen: while the candidate ran, or by reading its source files."""


@dataclass(frozen=True)
class PolicyUse:
    """One use that the policy forbids.

    `component` is empty for code that no selected component was found to reach. `file` is relative
    to the submission; `line` is 0 where it is not known. `rule` is the entry of the policy.
    """

    component: str
    name: str
    file: str
    line: int
    rule: str
    seen: str
    effect: str

    @classmethod
    def from_json(cls, value: Any) -> PolicyUse:
        return cls(**shape.read_fields(value, _USE))

    def to_json(self) -> dict[str, Any]:
        return {field.name: encode(getattr(self, field.name)) for field in fields(self)}

    @property
    def place(self) -> str:
        """ "model.py:12"."""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True)
class PolicyRecord:
    """What the policy found in the whole run.

    `observed` is the number of calls of each selected component in which it was watched to the end.
    `remarks` are sentences that accuse nobody.
    """

    kind: ClassVar[str] = "policy"

    name: str
    source: str
    effect: str
    unexecuted: str
    observed: Mapping[str, int]
    uses: tuple[PolicyUse, ...]
    remarks: tuple[str, ...]

    @classmethod
    def from_json(cls, value: Any) -> PolicyRecord:
        return cls(**shape.read_fields(value, _RECORD))

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.plain()}

    def plain(self) -> dict[str, Any]:
        """The same without the kind, as `report.json` has it."""
        return {
            "name": self.name,
            "source": self.source,
            "effect": self.effect,
            "unexecuted": self.unexecuted,
            "observed": dict(self.observed),
            "uses": [use.to_json() for use in self.uses],
            "remarks": list(self.remarks),
        }

    @property
    def counting(self) -> tuple[PolicyUse, ...]:
        """The uses that have an effect."""
        return tuple(use for use in self.uses if use.effect != "report")

    def failing(self) -> tuple[PolicyUse, ...]:
        """The uses that make the verdict non-conforming."""
        return tuple(use for use in self.uses if use.effect == "fail")

    def effect_on(self, component: str) -> str:
        """The gravest effect on a component; "report" where there is none."""
        mine = [use.effect for use in self.uses if use.component == component]
        return max(mine, key=EFFECTS.index, default="report")

    def forfeits(self, component: str) -> str:
        """By what a component has lost its points, in words; empty where it has not."""
        mine = [use for use in self.counting if use.component == component]
        if not mine:
            return ""
        more = f" and {len(mine) - 1} more" if len(mine) > 1 else ""
        return f"against the rules of {self.name}: {mine[0].name} in {mine[0].place}{more}"


def broken_rules(policy: PolicyRecord, selected: Sequence[str]) -> str:
    """Which components break the rules, in a sentence without its full stop; empty for none."""
    failing = policy.failing()
    if not failing:
        return ""
    by_component: dict[str, PolicyUse] = {}
    for use in failing:
        by_component.setdefault(use.component, use)
    known = [name for name in selected if name in by_component]
    first = by_component[known[0]] if known else failing[0]
    where = ", ".join(known) or "code that no component was found to reach"
    return f"the rules of {policy.name} are broken in {where} ({first.name} in {first.place})"


def not_watched(policy: PolicyRecord, implemented: Sequence[str]) -> list[str]:
    """The components that were never watched to the end of a call."""
    return [name for name in implemented if not policy.observed.get(name)]


def _uses(value: Any) -> tuple[PolicyUse, ...]:
    if not isinstance(value, list | tuple):
        raise shape.RecordError("not a list")
    return tuple(PolicyUse.from_json(entry) for entry in value)


def _observed(value: Any) -> Mapping[str, int]:
    return {str(name): shape.count(number) for name, number in shape.mapping(value).items()}


_USE: Mapping[str, Convert] = {
    "component": shape.text,
    "name": shape.name,
    "file": shape.text,
    "line": shape.count,
    "rule": shape.text,
    "seen": shape.one_of((RAN, READ)),
    "effect": shape.one_of(EFFECTS),
}
_RECORD: Mapping[str, Convert] = {
    "name": shape.name,
    "source": shape.text,
    "effect": shape.one_of(EFFECTS),
    "unexecuted": shape.one_of(EFFECTS),
    "observed": _observed,
    "uses": _uses,
    "remarks": shape.texts,
}
