"""How a fault is described and registered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    shows it. hint is a line of thought towards the repair, without code.
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


# Where faults are known from.
SLIP = "a common slip"
SUBMISSIONS = "public course submissions; the course's tests pass it"
CONVENTION = "another convention, right elsewhere"
REPORTS = "bug reports against public libraries"
MISREAD = "a misreading of the paper or of the course text"
PYTORCH = "a trap of PyTorch's own semantics"
SPEED = "a shortcut taken for speed"


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
        name: str,
        sentence: str,
        hint: str,
        *,
        source: str = SLIP,
        level: str = "MUST",
        visible: str = "value",
        at: Where | None = None,
        wrt: tuple[str, ...] = (),
        note: str = "",
    ) -> Function:
        """`at`: keywords (or several) for the default witness, or a function that makes calls."""
        strided = visible == "strides"
        witness = with_strides(default, at, inputs) if strided else calls(default, at)

        def register(function: Any) -> Any:
            entries.append(
                Entry(
                    f"{prefix}-{name}",
                    component,
                    by(function),
                    sentence,
                    hint,
                    source,
                    level,
                    visible,
                    witness,
                    wrt or inputs,
                    note,
                )
            )
            return function

        return register

    return fault
