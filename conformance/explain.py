"""Requirements as text for the terminal."""

from __future__ import annotations

import textwrap

from tabulate import tabulate  # type: ignore[import-untyped]  # it has no annotations

from conformance.spec import (
    Requirement,
    all_requirements,
    component_names,
    component_spec,
    requirement,
)


def explain_text(name: str | None) -> str:
    """A requirement with its checks and vectors, a component's requirements, or the whole list.

    Raises UsageError for an unknown name.
    """
    if name is None:
        return _listing(list(all_requirements().values()))
    if name in component_names():
        return _listing(list(component_spec(name).requirements.values()))
    return _one(requirement(name))


def _listing(found: list[Requirement]) -> str:
    rows = [(r.id, str(r.level), textwrap.fill(r.sentence, 72)) for r in found]
    return str(tabulate(rows, headers=("requirement", "level", "sentence")))


def _one(found: Requirement) -> str:
    from conformance.suite.check import checks
    from conformance.suite.component import component

    owner = component(found.component)
    named = [c.id for c in checks(owner.name) if c.requirement.id == found.id]
    cases = [f"{case.name}: {case.why}" for case in owner.cases_of(found.id)]
    parts = [
        f"{found.id} ({found.level}), component {found.component}, function {owner.function}",
        textwrap.fill(found.sentence, 88),
        f"formula: {found.formula}" if found.formula else "",
        f"source:  {found.source}",
        "checks:\n" + "\n".join(f"  {check}" for check in named),
        "cases:\n" + "\n".join(_indented(case) for case in cases) if cases else "",
        f"run:     conformance grade IMPL --check '{named[0]}'" if named else "",
    ]
    return "\n".join(part for part in parts if part)


def _indented(text: str) -> str:
    return textwrap.fill(text, 88, initial_indent="  ", subsequent_indent="    ")
