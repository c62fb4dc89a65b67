"""How a correct variant is described and registered."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Entry:
    """One correct implementation of one component.

    level says how much may be asked of it:
    - "full": everything, at every level and dtype;
    - "must-only": all that is a MUST, but not every SHOULD; `note` says what it lacks, "copies
      weights" being the usual reason: float32 modules filled with the given weights, so no
      gradient for the weights and no other dtype;
    - "open": right by its formula and stable, but less accurate in some tail than the common
      forms; whether tolerances admit it is a matter to look at, not a failure.
    """

    id: str
    component: str
    function: Function
    sentence: str
    source: str
    level: str = "full"
    note: str = ""


# Where variants are known from.
TEXTBOOK = "the formula as printed"
PRACTICE = "common practice in PyTorch code"
COURSES = "style of course submissions"
LIBRARIES = "public model libraries"
TORCH = "torch.nn.functional"
NUMERICS = "numerical analysis"
COPIES = "copies weights"
FLOAT32 = "float32 inside: float64 input is answered at float32 accuracy"


def registrar(
    entries: list[Entry], component: str, prefix: str, by: Function
) -> Callable[..., Callable[[Function], Function]]:
    """A decorator factory: `variant(name, sentence, source)` above a short function.

    Args:
        entries: the module's list, which every decorated function joins.
        by: turns the short function into one with the adapter's signature.
    """

    def variant(
        name: str, sentence: str, source: str, level: str = "full", note: str = ""
    ) -> Callable[[Function], Function]:
        def register(function: Function) -> Function:
            adapter = by(function)
            entries.append(
                Entry(f"{prefix}-{name}", component, adapter, sentence, source, level, note)
            )
            return function

        return register

    return variant
