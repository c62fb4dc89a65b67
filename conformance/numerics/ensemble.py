"""Tolerances: how far a correct implementation may be from the exact value, on this very input.

The definition is evaluated exactly (float64), eight times in Monte Carlo arithmetic and a few times
with honest rounding in the orders that the definition leaves open; the algebraic forms rotate. The
largest deviation from the exact value in a row, times `MULTIPLE`, is the tolerance of that row.
Sources: Parker 1997 (Monte Carlo arithmetic); Denis, de Oliveira Castro and Petit 2016
(Verificarlo); Higham and Mary 2019 (probabilistic bounds). `docs/tolerances.md` has the measurement
that fixes the multiple.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from conformance.errors import InternalError
from conformance.numerics import array as m
from conformance.numerics.arithmetic import ORDERS, Arithmetic, Honest, Perturbed
from conformance.numerics.array import Array
from conformance.numerics.dtypes import FLOAT32, FloatArray, Format, format_of, is_float

MULTIPLE = 8.0
"""Tolerance over the largest deviation seen in the ensemble (measured, see docs/tolerances.md)."""

PERTURBED_RUNS = 8
FLOOR_MULTIPLE = 1.0
"""Below the smallest normal number nothing is promised: units flush such results to zero."""


@dataclass(frozen=True)
class Bound:
    """An exact value (float64) and how far from it a correct result may lie (same shape)."""

    expected: FloatArray
    tolerance: FloatArray


@dataclass(frozen=True)
class Bounds:
    """Bound of the result and of the gradients asked for."""

    result: Bound
    gradients: Mapping[str, Bound] = field(default_factory=dict)


Oracle = Callable[..., Array]


def members() -> Iterator[Arithmetic]:
    """The evaluations of one ensemble, the exact one excluded; the same every time."""
    for run in range(PERTURBED_RUNS):
        yield Perturbed(seed=run + 1, form=run)
    for run, order in enumerate(ORDERS):
        yield Honest(order, form=run, wide_accumulator=order != "running")


@dataclass(frozen=True)
class Question:
    """What is to be evaluated: arguments as sent to a candidate, and what to differentiate.

    `working` is the format of the evaluation; by default that of the arguments. A wider argument is
    then rounded first: float64 input answered at float32 accuracy. `pooled` are the axes over which
    deviations are pooled: (-1,) makes a tolerance per row, () one per entry.
    """

    oracle: Oracle
    arguments: Mapping[str, Any]
    working: Format | None = None
    wrt: tuple[str, ...] = ()
    cotangent: FloatArray | None = None
    pooled: tuple[int, ...] = (-1,)


def bounds(question: Question) -> Bounds:
    """Exact value and tolerance of the result and of every gradient that is asked for.

    Raises InternalError when an honest evaluation overflows although the exact value is finite: the
    inputs are then unfit for the format, and the tolerance would mean nothing.
    """
    exact = evaluate(question, Arithmetic())
    spread = [evaluate(question, arithmetic) for arithmetic in members()]
    result, *grads = [
        _bound(
            [exact[place], *(run[place] for run in spread)],
            _output_format(question),
            question.pooled,
        )
        for place in range(len(exact))
    ]
    return Bounds(result, dict(zip(question.wrt, grads, strict=True)))


def evaluate(
    question: Question, arithmetic: Arithmetic, formats: Mapping[str, Format] | None = None
) -> list[Any]:
    """The result and the gradients in one arithmetic.

    `formats` gives the format of each float argument where its numbers do not tell.
    """
    leaves: dict[str, Array] = {}
    formats = formats if formats is not None else _formats(question.arguments)
    wrap = _Wrapper(question, arithmetic, formats, leaves)
    wrapped = {name: wrap(value, name) for name, value in question.arguments.items()}
    output = apply_oracle(question.oracle, wrapped, arithmetic)
    values = [np.asarray(output.value)]
    if question.wrt:
        assert question.cotangent is not None
        wrt = [leaves[name] for name in question.wrt]
        values += m.gradients(output, question.cotangent, wrt)
    return values


def apply_oracle(oracle: Oracle, wrapped: Mapping[str, Any], arithmetic: Arithmetic) -> Array:
    """Evaluate a definition on wrapped arguments.

    A definition without any float argument takes the arithmetic as the keyword `arithmetic`.
    """
    if _takes_arithmetic(oracle):
        return oracle(**wrapped, arithmetic=arithmetic)
    return oracle(**wrapped)


@cache
def _takes_arithmetic(oracle: Oracle) -> bool:
    return "arithmetic" in inspect.signature(oracle).parameters


def evaluate_digits(question: Question, digits: int) -> list[Any]:
    """The result and the gradients with that many decimal digits (mpmath numbers; slow).

    Confirms the float64 evaluation; `docs` of the golden vectors say which are confirmed.
    """
    import mpmath

    def widen(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: widen(item) for key, item in value.items()}
        if is_float(value):
            digits_of = np.frompyfunc(mpmath.mpf, 1, 1)
            return np.asarray(digits_of(value.astype(np.float64)), dtype=object)
        return value

    with mpmath.workdps(digits):
        arguments = {name: widen(value) for name, value in question.arguments.items()}
        formats = _formats(question.arguments)
        exact = Arithmetic()
        exact.numbers = object
        return evaluate(replace(question, arguments=arguments), exact, formats)


def _formats(arguments: Mapping[str, Any], prefix: str = "") -> dict[str, Format]:
    """The format of every float array, by argument name."""
    found: dict[str, Format] = {}
    for name, value in arguments.items():
        if isinstance(value, Mapping):
            found |= _formats(value, f"{prefix}{name}.")
        elif is_float(value):
            found[f"{prefix}{name}"] = format_of(value)
    return found


@dataclass(frozen=True)
class _Wrapper:
    """Turns float arrays (also inside a dictionary of weights) into differentiable arrays."""

    question: Question
    arithmetic: Arithmetic
    formats: Mapping[str, Format]
    leaves: dict[str, Array]

    def __call__(self, value: Any, name: str) -> Any:
        if isinstance(value, Mapping):
            return {key: self(item, f"{name}.{key}") for key, item in value.items()}
        fmt = self.formats.get(name)
        if fmt is None:
            return value
        numbers = value if value.dtype == object else value.astype(np.float64)
        wanted = name in self.question.wrt
        leaf = Array(numbers, fmt, self.arithmetic, needs_gradient=wanted)
        self.leaves[name] = leaf
        working = self.question.working
        if working is not None and working.unit > fmt.unit:
            return m.cast(leaf, working)
        return leaf


def _output_format(question: Question) -> Format:
    if question.working is not None:
        return question.working
    formats = _formats(question.arguments).values()
    return max(formats, key=lambda fmt: fmt.unit, default=FLOAT32)


def _bound(runs: Sequence[FloatArray], fmt: Format, pooled: tuple[int, ...]) -> Bound:
    exact = runs[0]
    largest = np.zeros(exact.shape)
    finite = np.isfinite(exact)
    for run in runs[1:]:
        with np.errstate(invalid="ignore"):
            deviation = np.where(finite, np.abs(run - exact), 0.0)
        largest = np.maximum(largest, deviation)
    if not np.isfinite(largest).all():
        raise InternalError(
            "an honest evaluation overflows on an input whose exact result is finite: "
            f"the case is unfit for {fmt.name}"
        )
    axes = tuple(axis for axis in pooled if -axis <= exact.ndim)
    if axes and exact.size:
        largest = np.broadcast_to(largest.max(axis=axes, keepdims=True), exact.shape)
    return Bound(exact, MULTIPLE * largest + FLOOR_MULTIPLE * fmt.tiny)


def law_tolerance(
    quantity: Callable[[Arithmetic], FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Exact value of a quantity and its tolerance, entry by entry pooled over everything.

    `quantity` evaluates something composed of several oracle results (a norm, a score, a
    difference) in a given arithmetic.
    """
    exact = quantity(Arithmetic())
    spread = max(
        (float(np.max(np.abs(quantity(a) - exact), initial=0.0)) for a in members()), default=0.0
    )
    return exact, np.full(exact.shape, MULTIPLE * spread)
