"""Checks: functions that test one requirement, marked with its id."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.errors import InternalError
from conformance.spec import Requirement
from conformance.suite.component import Component, component

if TYPE_CHECKING:
    from conformance.suite.grader import Grader

PROFILES = ("quick", "standard", "thorough")
HALF = ("bfloat16", "float16")

CheckFunction = Callable[["Grader"], None]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Mark:
    """What `@check` notes on a function."""

    requirement: str
    dtypes: tuple[str, ...]
    profile: str
    module: str


@dataclass(frozen=True)
class Check:
    """One check: a function, the requirement it tests, and the dtype it is run in.

    `module` names the class that is tested, where it is not the adapter function.
    """

    component: Component
    requirement: Requirement
    name: str
    dtype: str
    profile: str
    function: CheckFunction
    module: str = ""

    @property
    def id(self) -> str:
        """Id in reports: `rmsnorm::eps_inside_root[float32]`."""
        return f"{self.component.name}::{self.name}[{self.dtype}]"


def check(
    requirement: str,
    *,
    dtypes: tuple[str, ...] = ("float32",),
    profile: str = "quick",
    module: str = "",
) -> Callable[[F], F]:
    """Mark a function as a check of a requirement, run once per dtype.

    `profile` is the shortest profile that includes it; `module` names the class that it tests, for
    checks of the module form.
    """
    if profile not in PROFILES:
        raise InternalError(f"unknown profile '{profile}'")

    def mark(function: F) -> F:
        function.check = Mark(requirement, dtypes, profile, module)  # type: ignore[attr-defined]
        return function

    return mark


def check_of(function: Any, component_name: str, dtype: str) -> Check:
    """The check that a marked function is, in one dtype."""
    mark: Mark = function.check
    owner = component(component_name)
    return Check(
        component=owner,
        requirement=owner.requirement(mark.requirement),
        name=function.__name__.removeprefix("test_"),
        dtype=dtype,
        profile=mark.profile,
        function=function,
        module=mark.module,
    )


def checks(component_name: str) -> Iterator[Check]:
    """All checks of a component, in the order in which they are written down."""
    module = importlib.import_module(
        f"conformance.components.{component_name}.test_{component_name}"
    )
    for function in vars(module).values():
        if isinstance(getattr(function, "check", None), Mark):
            for dtype in function.check.dtypes:
                yield check_of(function, component_name, dtype)


def included(check_profile: str, profile: str) -> bool:
    """Whether a check of that profile is run in a run of `profile`."""
    return PROFILES.index(check_profile) <= PROFILES.index(profile)
