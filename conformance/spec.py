"""The specification: requirements read from the `spec.toml` of each component folder."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from conformance.errors import InternalError, UsageError

COMPONENTS_FOLDER = Path(__file__).parent / "components"


class Level(StrEnum):
    """How binding a requirement is, with the words of RFC 2119."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


@dataclass(frozen=True)
class Requirement:
    """One sentence of the specification.

    `formula` is the sentence in symbols (may be empty), `source` the paper and equation or the
    handout section it comes from.
    """

    id: str
    component: str
    level: Level
    sentence: str
    formula: str
    source: str


@dataclass(frozen=True)
class ComponentSpec:
    """What is specified about one component; `function` is its name in the adapters module.

    `flags` explain its golden vectors: why a kind of vector exists (`note`) and what failing it
    means (`failing`).
    """

    name: str
    title: str
    function: str
    requirements: Mapping[str, Requirement]
    flags: Mapping[str, Mapping[str, str]]


@cache
def component_names() -> tuple[str, ...]:
    """Names of all components: the folders that hold a `spec.toml`, simplest first."""
    specs = [read_toml(path) for path in COMPONENTS_FOLDER.glob("*/spec.toml")]
    ordered = sorted(specs, key=lambda spec: (int(spec["order"]), spec["component"]))
    return tuple(spec["component"] for spec in ordered)


@cache
def component_spec(name: str) -> ComponentSpec:
    """The specification of one component; UsageError when there is no such component."""
    if name not in component_names():
        known = ", ".join(component_names())
        hint = _hint(name, component_names())
        raise UsageError(f"there is no component '{name}'{hint}; the components are: {known}")
    path = COMPONENTS_FOLDER / name / "spec.toml"
    data = read_toml(path)
    requirements = {}
    for entry in data["requirement"]:
        requirement = Requirement(
            id=entry["id"],
            component=name,
            level=Level(entry["level"]),
            sentence=entry["sentence"],
            formula=entry.get("formula", ""),
            source=entry["source"],
        )
        if requirement.id in requirements:
            raise InternalError(f"requirement {requirement.id} stands twice in {path}")
        requirements[requirement.id] = requirement
    return ComponentSpec(name, data["title"], data["function"], requirements, data.get("flag", {}))


@cache
def all_requirements() -> Mapping[str, Requirement]:
    """Every requirement of every component, by id."""
    return {
        requirement.id: requirement
        for name in component_names()
        for requirement in component_spec(name).requirements.values()
    }


def requirement(requirement_id: str) -> Requirement:
    """One requirement; UsageError that names close ids when there is none of that id."""
    found = all_requirements().get(requirement_id.upper())
    if found is None:
        hint = _hint(requirement_id.upper(), all_requirements())
        hint = hint or "; `conformance explain` lists them all"
        raise UsageError(f"there is no requirement '{requirement_id}'{hint}")
    return found


def _hint(name: str, known: Iterable[str]) -> str:
    """ "; did you mean ...?" for a name that resembles known ones."""
    import difflib

    close = difflib.get_close_matches(name[:100], list(known), n=3)
    return f"; did you mean {', '.join(close)}?" if close else ""


@cache
def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file of ours, read once."""
    with path.open("rb") as file:
        return tomllib.load(file)
