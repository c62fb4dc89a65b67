"""What is benchmarked: the inputs of each component at a size, and the least work they ask for.

A component's own part stands in its `cost.py`. Costs are those of the definition, whoever computes
it: a matrix product counts two operations per multiplication, as `torch.utils.flop_counter` does,
everything else one per entry and step; bytes are what has to be read and written at least once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from conformance.errors import InternalError
from conformance.spec import component_names, component_spec

Sizes = Mapping[str, int]
"""Name of a size ("batch", "sequence", "width", "heads", ...) -> number."""

FORWARD = "forward"
BOTH = "forward+backward"
PASSES = (FORWARD, BOTH)


@dataclass(frozen=True)
class Cost:
    """Floating-point operations, those of matrix products by themselves, and bytes moved."""

    matmul: float = 0.0
    pointwise: float = 0.0
    bytes: float = 0.0

    @property
    def flops(self) -> float:
        """All operations."""
        return self.matmul + self.pointwise

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / self.bytes if self.bytes else 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.matmul + other.matmul,
            self.pointwise + other.pointwise,
            self.bytes + other.bytes,
        )

    def times(self, factor: float) -> Cost:
        """So many times the same."""
        return Cost(self.matmul * factor, self.pointwise * factor, self.bytes * factor)


# -- inputs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Floats:
    """Random numbers, anew for each call; `rows`: axis 0 is the batch, entries do not mix."""

    shape: tuple[int, ...]
    scale: float = 1.0
    rows: bool = True


@dataclass(frozen=True)
class Ids:
    """Random integers below `high`, anew for each call."""

    shape: tuple[int, ...]
    high: int
    rows: bool = True


@dataclass(frozen=True)
class Fixed:
    """An array that is the same in every call: a mask, positions in order."""

    array: Any
    rows: bool = False


Spec = Floats | Ids | Fixed | Mapping[str, Floats] | int | float | str | None
Arguments = Mapping[str, Spec]


def weight(*shape: int, scale: float = 1.0) -> Floats:
    """Random numbers that are the same for the whole batch."""
    return Floats(shape, scale, rows=False)


def at_unit_scale(fan_in: int) -> float:
    """The power of two nearest to 1 / sqrt(fan_in): exact in every format."""
    scale = 1.0
    while scale * scale * fan_in > 2.0:
        scale /= 2
    return scale


# -- one component -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Workload:
    """How one component is benchmarked.

    `forward` and `backward` give the cost of each pass from sizes and bytes per number; without
    `backward` only the forward pass is measured, and `no_backward` says why. `axes` are the sizes
    that are swept, each with its points. `note` explains why `reference_impl` is more than three
    times slower than torch's fused operators, where it is.
    """

    component: str
    sizes: Sizes
    gpu_sizes: Sizes
    arguments: Callable[[Sizes], Arguments]
    output: Callable[[Sizes], tuple[int, ...]]
    forward: Callable[[Sizes, int], Cost]
    backward: Callable[[Sizes, int], Cost] | None
    axes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    no_backward: str = ""
    note: str = ""

    @property
    def function(self) -> str:
        """Name of the adapter function."""
        return component_spec(self.component).function

    @property
    def passes(self) -> tuple[str, ...]:
        """The passes that are measured."""
        return PASSES if self.backward is not None else (FORWARD,)

    def at(self, **sizes: int) -> Sizes:
        """The default sizes with some replaced."""
        return {**self.sizes, **sizes}

    def cost(self, sizes: Sizes, itemsize: int, which: str) -> Cost:
        """The cost of a pass."""
        found = self.forward(sizes, itemsize)
        if which == BOTH:
            assert self.backward is not None
            found += self.backward(sizes, itemsize)
        return found


@cache
def workload(name: str) -> Workload:
    """The workload of a component, from its folder under `components/`."""
    component_spec(name)  # a clear message for an unknown name
    found = importlib.import_module(f"conformance.components.{name}.cost").WORKLOAD
    if not isinstance(found, Workload) or found.component != name:
        raise InternalError(f"components/{name}/cost.py does not define its WORKLOAD")
    return found


def workloads() -> list[Workload]:
    """Those of all components, simplest first."""
    return [workload(name) for name in component_names()]


# -- costs that several components share ---------------------------------------------------------


def entries(*shapes: Sequence[int]) -> int:
    """Number of entries of arrays of these shapes, together."""
    total = 0
    for shape in shapes:
        count = 1
        for length in shape:
            count *= length
        total += count
    return total


def product(rows: int, inner: int, columns: int) -> Cost:
    """A matrix product (rows, inner) x (inner, columns), without moving anything."""
    return Cost(matmul=2.0 * rows * inner * columns)


def moved(count: float, itemsize: int) -> Cost:
    """So many numbers read or written once."""
    return Cost(bytes=float(count) * itemsize)


def work(count: float) -> Cost:
    """So many operations on single entries."""
    return Cost(pointwise=float(count))
