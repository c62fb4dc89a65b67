"""A policy: which names are allowed and forbidden, for all components and for each of them.

A pattern is a dotted name; it stands for that definition and all below it. A `*` at its end stands
for the rest of a word. The longest pattern that fits a name decides. Of equally long ones that of
the file at hand goes before that of the policy it extends, then that of a component before the
general one, then "allow" before "forbid".
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from conformance.errors import InternalError, UsageError
from conformance.spec import component_names

FILES = {"from-scratch": Path(__file__).with_name("from_scratch.toml")}
"""The policies that come with the suite."""

KEYS = (
    *("extends", "name", "source", "effect", "unexecuted"),
    *("allow", "forbid", "blinding", "components"),
)
COMPONENT_KEYS = ("allow", "forbid", "parts")
SHORT = {"F": "torch.nn.functional", "nn": "torch.nn", "optim": "torch.optim"}
_PATTERN = re.compile(r"[A-Za-z_]\w*(\.\w+)*\*?")


class Effect(StrEnum):
    """What follows from a forbidden use."""

    REPORT = "report"
    """It is reported, and that is all."""
    ZERO = "zero"
    """The component gets no points; the verdict stays."""
    FAIL = "fail"
    """The verdict is non-conforming, and the component gets no points."""


@dataclass(frozen=True)
class Rule:
    """One line of a policy. `layer` is higher for a file than for what it extends."""

    pattern: str
    allows: bool
    layer: int = 0
    component: str = ""

    def fits(self, name: str) -> bool:
        """Whether this rule is about `name`."""
        if self.pattern.endswith("*"):
            return name.startswith(self.pattern[:-1])
        return name == self.pattern or name.startswith(self.pattern + ".")

    @property
    def weight(self) -> tuple[int, int, bool, bool]:
        """The heaviest of the rules that fit decides."""
        return len(self.pattern.rstrip("*")), self.layer, bool(self.component), self.allows


@dataclass(frozen=True)
class Policy:
    """The rules of a course.

    `unexecuted` is the effect of what was only read and not seen to run. `own` are the rules of a
    component without those of its parts. `blinding` are names that would prevent observation.
    `file` is where it was read from, unless it comes with the suite.
    """

    name: str
    source: str = ""
    effect: Effect = Effect.FAIL
    unexecuted: Effect = Effect.REPORT
    general: tuple[Rule, ...] = ()
    own: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    blinding: tuple[str, ...] = ()
    file: Path | None = None

    @classmethod
    def named(cls, name: str) -> Policy:
        """One that comes with the suite; UsageError when there is none of that name."""
        if name not in FILES:
            raise UsageError(f"there is no policy {name!r}; there is {_listed(FILES)}")
        table = _read(FILES[name]).get("policy", {})
        try:
            return cls.from_mapping({"name": name, **table}, f"{FILES[name].name}: [policy]")
        except UsageError as error:
            raise InternalError(f"the policy {name} is broken: {error.message}") from error

    @classmethod
    def load(cls, value: str, folder: Path | None = None) -> Policy:
        """What `--policy VALUE` means: a name, or a TOML file with a table [policy]."""
        if value in FILES:
            return cls.named(value)
        path = (folder or Path()) / Path(value).expanduser()
        if not path.is_file():
            raise UsageError(
                f"--policy {value}: neither a file nor the name of a policy ({_listed(FILES)})"
            )
        table = _read(path).get("policy")
        if not isinstance(table, dict):
            raise UsageError(
                f"--policy {value}: the file has no table [policy]; the shortest one is:\n"
                '[policy]\nextends = "from-scratch"'
            )
        return replace(cls.from_mapping(table, f"{value}: [policy]"), file=path)

    @classmethod
    def from_mapping(cls, table: Mapping[str, Any], where: str) -> Policy:
        """The policy of a table [policy]; UsageError for a bad one, that begins with `where`."""
        _known_keys(table, KEYS, where)
        base = _base(table, where)
        layer = 1 + max((rule.layer for rule in base.rules()), default=-1)
        policy = replace(
            base,
            name=_text(table, "name", where) or base.name or "own rules",
            source=_text(table, "source", where) or base.source,
            effect=_effect(table, "effect", base.effect, where),
            unexecuted=_effect(table, "unexecuted", base.unexecuted, where),
            general=(*base.general, *_rules(table, where, layer)),
            blinding=(*base.blinding, *_patterns(table, "blinding", where)),
        )
        components = table.get("components", {})
        if not isinstance(components, Mapping):
            raise UsageError(f"{where} components: give one table for each component")
        for name, entry in components.items():
            policy = policy._with_component(name, entry, where, layer)
        policy._must_end(where)
        return policy

    def _with_component(self, name: str, entry: Any, where: str, layer: int) -> Policy:
        place = f"{where} components.{name}"
        _known_component(name, place)
        if not isinstance(entry, Mapping):
            raise UsageError(f"{place}: give a table with allow, forbid or parts")
        _known_keys(entry, COMPONENT_KEYS, place)
        parts = _texts(entry, "parts", place)
        for part in parts:
            _known_component(part, f"{place} parts")
        rules = (*self.own.get(name, ()), *_rules(entry, place, layer, name))
        known = {**self.parts, name: (*self.parts.get(name, ()), *parts)} if parts else self.parts
        return replace(self, own={**self.own, name: rules}, parts=known)

    def _must_end(self, place: str) -> None:
        """UsageError when a component is a part of itself."""
        for name in self.parts:
            if name in self._all_parts(*self.parts[name]):
                raise UsageError(f"{place}: {name} is a part of itself")

    def _all_parts(self, *names: str) -> dict[str, None]:
        found: dict[str, None] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found[name] = None
                waiting += self.parts.get(name, ())
        return found

    def rules(self, component: str = "") -> tuple[Rule, ...]:
        """The general rules, with those of a component and of its parts."""
        owners = self._all_parts(component) if component else {}
        return (*self.general, *(rule for name in owners for rule in self.own.get(name, ())))

    def rule(self, name: str, component: str = "") -> Rule | None:
        """The rule that decides about `name` in a component; None if none fits."""
        fitting = (rule for rule in self.rules(component) if rule.fits(name))
        return max(fitting, key=lambda rule: rule.weight, default=None)

    def blinds(self, name: str) -> str:
        """The entry of `blinding` that fits a name, or nothing."""
        fitting = [p for p in self.blinding if Rule(p, False).fits(name)]
        return max(fitting, key=len, default="")


# -- reading a table -----------------------------------------------------------------------------


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from None


def _base(table: Mapping[str, Any], place: str) -> Policy:
    name = _text(table, "extends", place)
    if not name:
        return Policy("")
    try:
        return Policy.named(name)
    except UsageError as error:
        raise UsageError(f"{place} extends: {error.message}") from None


def _rules(
    table: Mapping[str, Any], place: str, layer: int, component: str = ""
) -> tuple[Rule, ...]:
    return tuple(
        Rule(pattern, key == "allow", layer, component)
        for key in ("allow", "forbid")
        for pattern in _patterns(table, key, place)
    )


def _patterns(table: Mapping[str, Any], key: str, place: str) -> tuple[str, ...]:
    """Dotted names; the abbreviations that people import by are refused, they name nothing."""
    found = _texts(table, key, place)
    for pattern in found:
        if not _PATTERN.fullmatch(pattern):
            raise UsageError(
                f"{place} {key}: {pattern!r} is no dotted name such as torch.nn.functional.softmax"
            )
        head, dot, rest = pattern.partition(".")
        if head in SHORT:
            raise UsageError(f"{place} {key}: write {pattern!r} in full, {SHORT[head]}{dot}{rest}")
    return found


def _texts(table: Mapping[str, Any], key: str, place: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise UsageError(f'{place} {key}: give a list of names, as in ["torch.nn.Linear"]')
    return tuple(dict.fromkeys(value))


def _text(table: Mapping[str, Any], key: str, place: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise UsageError(f"{place} {key}: give a text")
    return value


def _effect(table: Mapping[str, Any], key: str, default: Effect, place: str) -> Effect:
    value = table.get(key, default)
    if value not in tuple(Effect):
        raise UsageError(f"{place} {key} = {value!r}: choose one of {_listed(Effect)}")
    return Effect(value)


def _known_keys(table: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    for key in table:
        if key not in known:
            raise UsageError(
                f"{place}: unknown key {key!r}{_near(key, known)}; known are {_listed(known)}"
            )


def _known_component(name: str, place: str) -> None:
    if name not in component_names():
        raise UsageError(f"{place}: there is no component {name!r}{_near(name, component_names())}")


def _near(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word[:100], list(known), n=1)
    return f", did you mean {close[0]!r}?" if close else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
