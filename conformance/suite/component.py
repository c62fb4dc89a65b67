"""What the suite knows about one component."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache

from conformance.errors import InternalError
from conformance.numerics.ensemble import Oracle
from conformance.spec import ComponentSpec, Requirement, component_spec
from conformance.suite.case import Case


@dataclass(frozen=True)
class Component:
    """One graded component: its definition and its cases.

    `inputs` are the float arguments whose gradients are demanded, `parameters` the weights.
    `pooled` are the axes of the result over which rounding errors are pooled: (-1,) one tolerance
    per row, () one per entry.
    """

    name: str
    oracle: Oracle
    cases: tuple[Case, ...]
    inputs: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    pooled: tuple[int, ...] = (-1,)

    def __post_init__(self) -> None:
        names = [case.name for case in self.cases]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise InternalError(f"{self.name}: cases of the same name: {sorted(twice)}")

    @property
    def spec(self) -> ComponentSpec:
        """Its requirements."""
        return component_spec(self.name)

    @property
    def function(self) -> str:
        """Name of its adapter function."""
        return self.spec.function

    def requirement(self, requirement_id: str) -> Requirement:
        """One of its requirements."""
        try:
            return self.spec.requirements[requirement_id]
        except KeyError:
            raise InternalError(f"{self.name} has no requirement {requirement_id}") from None

    def case(self, name: str) -> Case:
        """One of its cases."""
        for case in self.cases:
            if case.name == name:
                return case
        raise InternalError(f"{self.name} has no case '{name}'")

    def cases_of(self, requirement_id: str) -> tuple[Case, ...]:
        """The cases that were written for a requirement."""
        return tuple(case for case in self.cases if case.requirement == requirement_id)


@cache
def component(name: str) -> Component:
    """The component of that name, from its folder under `components/`."""
    component_spec(name)  # a clear message for an unknown name
    module = importlib.import_module(f"conformance.components.{name}.cases")
    found = module.COMPONENT
    if not isinstance(found, Component) or found.name != name:
        raise InternalError(f"components/{name}/cases.py does not define its COMPONENT")
    return found
