"""The catalogue of faults: named mistakes, described in `faults.toml`, computed in `faults.py`.

`faults.toml` of a component folder says in words what each mistake is, how to think about it,
where it is known from, where it shows and which requirements it breaks. `faults.py` beside it holds
the mistakes that a wrong definition can express. The others (memory, state, strides, dtypes,
exceptions) are known by the requirement that they break.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from conformance.definitions import Pieces, replaced
from conformance.errors import InternalError
from conformance.numerics.array import Array
from conformance.numerics.ensemble import Oracle
from conformance.spec import COMPONENTS_FOLDER, Level, component_names, read_toml

VISIBLE = ("value", "gradient", "shape", "dtype", "state", "purity", "strides", "crash")
NOTHING: Pieces = MappingProxyType({})


@dataclass(frozen=True)
class Fault:
    """One mistake of one component.

    `visible` says where it shows (one of `VISIBLE`), `requirements` which requirements state that
    it is wrong, `message` (a regular expression) how the failure of one of them reads where several
    faults break the same ones. `stale` names the arguments of which an earlier call's are used.
    `alone` marks a mistake that means nothing inside a larger component.
    `same_as` names the fault that this one is: one of a part, seen from a component that is built
    on it, or one of the same component that gives the same numbers. `pieces` are the functions that
    replace pieces of the definition; without any it cannot be expressed as a wrong definition.
    """

    id: str
    component: str
    sentence: str
    hint: str
    source: str
    level: Level
    visible: str
    requirements: tuple[str, ...] = ()
    message: str = ""
    stale: tuple[str, ...] = ()
    alone: bool = False
    same_as: str = ""
    pieces: Pieces = field(default_factory=lambda: NOTHING, compare=False)

    def inside(self, oracle: Oracle) -> Oracle:
        """A definition with this mistake in it, wherever it uses the pieces concerned."""
        return wrong(oracle, self.pieces)


def wrong(oracle: Oracle, pieces: Pieces) -> Oracle:
    """A definition evaluated with other pieces."""

    def evaluate(**arguments: Any) -> Array:
        with replaced(pieces):
            return oracle(**arguments)

    evaluate.__wrapped__ = oracle  # type: ignore[attr-defined]  # it takes the same arguments
    return evaluate


class Mistakes:
    """The wrong pieces of one component, registered in its `faults.py`."""

    def __init__(self, component: str) -> None:
        self.component = component
        self.pieces: dict[str, Pieces] = {}

    def fault(self, identifier: str, *names: str) -> Callable[[Any], Any]:
        """Decorator: the function replaces the named pieces; the component itself when none is."""

        def register(function: Any) -> Any:
            self.combined(identifier, **dict.fromkeys(names or (self.component,), function))
            return function

        return register

    def combined(self, identifier: str, **pieces: Callable[..., Any]) -> None:
        """A fault that replaces several pieces, each by a function of its own."""
        if identifier in self.pieces:
            raise InternalError(f"fault {identifier} is registered twice")
        self.pieces[identifier] = pieces


@cache
def faults(component: str) -> Mapping[str, Fault]:
    """The faults of a component by id, in the order in which they are written down."""
    described = read_toml(COMPONENTS_FOLDER / component / "faults.toml")["fault"]
    mistakes = dict(_mistakes(component))
    found: dict[str, Fault] = {}
    for entry in described:
        own = mistakes.pop(entry["id"], NOTHING)
        fault = _fault(component, entry, own)
        if fault.id in found:
            raise InternalError(f"fault {fault.id} stands twice in the catalogue of {component}")
        found[fault.id] = fault
    if mistakes:
        raise InternalError(f"{component}: faults without a description: {', '.join(mistakes)}")
    return found


def _mistakes(component: str) -> Mapping[str, Pieces]:
    module = importlib.import_module(f"conformance.components.{component}.faults")
    found: Mistakes = module.MISTAKES
    return found.pieces


def _fault(component: str, entry: Mapping[str, Any], pieces: Pieces) -> Fault:
    same_as = entry.get("same_as", "")
    if same_as:
        if pieces:
            raise InternalError(f"fault {entry['id']} is {same_as} and has pieces of its own")
        other = fault_of(same_as)
        pieces, same_as = other.pieces, other.same_as or other.id
    if entry["visible"] not in VISIBLE:
        raise InternalError(f"fault {entry['id']}: visible in '{entry['visible']}'?")
    return Fault(
        id=entry["id"],
        component=component,
        sentence=entry["sentence"],
        hint=entry["hint"],
        source=entry["source"],
        level=Level(entry["level"]),
        visible=entry["visible"],
        requirements=tuple(entry.get("requirements", ())),
        message=entry.get("message", ""),
        stale=tuple(entry.get("stale", ())),
        alone=bool(entry.get("alone", False)),
        same_as=same_as,
        pieces=pieces,
    )


@cache
def fault_of(identifier: str) -> Fault:
    """The fault of that id; InternalError when no component has it."""
    for component in component_names():
        entries = read_toml(COMPONENTS_FOLDER / component / "faults.toml")["fault"]
        for entry in entries:
            if entry["id"] == identifier:
                own = _mistakes(component).get(identifier, NOTHING)
                return _fault(component, entry, own)
    raise InternalError(f"there is no fault {identifier}")
