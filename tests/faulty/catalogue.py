"""How a fault is described and registered."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .. import witnesses

Function = Callable[..., Any]
Arguments = dict[str, Any]
Where = Mapping[str, Any] | Sequence[Mapping[str, Any]] | Callable[[], Any]


@dataclass(frozen=True)
class Entry:
    """One implementation of one component that is wrong in exactly one way.

    level is that of the requirement it breaks, MUST or SHOULD. visible says where it shows:
    - "value": another number comes out;
    - "gradient": the value is right, a derivative is wrong, missing, or cannot be computed;
    - "shape": the answer has another shape;
    - "dtype": the answer has another dtype;
    - "state": only a call that follows another one is wrong;
    - "purity": an argument is overwritten, or the answer shares memory with an argument or with
      an earlier answer;
    - "strides": only an input that is not contiguous shows it;
    - "crash": a legal input raises.

    witness returns calls (arguments by keyword), made in this order, the last of which shows it.
    wrt names the arguments (`weights.ln1.weight` for an entry of a dictionary) whose gradient
    shows it. The words (sentence, hint, source, level, visible) stand in the `faults.toml` of the
    component: hint is a line of thought towards the repair, without code.
    """

    id: str
    component: str
    function: Function
    sentence: str
    hint: str
    source: str
    level: str
    visible: str
    witness: Callable[[], list[Arguments]]
    wrt: tuple[str, ...] = ()
    note: str = ""


DESCRIBED = ("id", "sentence", "hint", "source", "level", "visible")
DESCRIPTIONS = Path(__file__).parents[2] / "conformance" / "components"


@cache
def described(component: str) -> Mapping[str, Mapping[str, Any]]:
    """What the suite's own catalogue says of the faults of a component, by id."""
    text = (DESCRIPTIONS / component / "faults.toml").read_text(encoding="utf-8")
    return {fault["id"]: fault for fault in tomllib.loads(text)["fault"]}


def calls(default: Function, where: Where | None) -> Callable[[], list[Arguments]]:
    """Witness calls from keywords for the component's default input, or from a function."""

    def make() -> list[Arguments]:
        if callable(where):
            found = where()
            return found if isinstance(found, list) else [found]
        if isinstance(where, Mapping):
            return [default(**where)]
        return [default(**one) for one in where or [{}]]

    return make


def with_strides(
    default: Function, where: Where | None, names: Sequence[str]
) -> Callable[[], list[Arguments]]:
    """The same calls with the named inputs stored in another order."""

    def make() -> list[Arguments]:
        plain = calls(default, where)()
        return [one | {name: witnesses.strided(one[name]) for name in names} for one in plain]

    return make


def registrar(entries: list[Entry], component: str, prefix: str, by: Function) -> Function:
    """A decorator factory for the faults of one component.

    Args:
        entries: the module's list, which every decorated function joins.
        by: turns a short function (or pieces) into one with the adapter's signature.
    """
    default = witnesses.DEFAULT[component]
    inputs = witnesses.INPUTS[component]

    def fault(
        name: str, *, at: Where | None = None, wrt: tuple[str, ...] = (), note: str = ""
    ) -> Function:
        """`at`: keywords (or several) for the default witness, or a function that makes calls."""
        words = described(component)[f"{prefix}-{name}"]
        strided = words["visible"] == "strides"
        witness = with_strides(default, at, inputs) if strided else calls(default, at)

        def register(function: Any) -> Any:
            entries.append(
                Entry(
                    **{field: words[field] for field in DESCRIBED},
                    component=component,
                    function=by(function),
                    witness=witness,
                    wrt=wrt or inputs,
                    note=note,
                )
            )
            return function

        return register

    return fault
