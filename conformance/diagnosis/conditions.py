"""On which inputs something goes wrong: the simplest condition that tells them from the others."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from conformance.diagnosis.observe import Observation
from conformance.numerics.dtypes import is_float

ENOUGH = 2
"""A condition is told when it holds for so many inputs that fail, and fails for as many others.

Inputs that differ in nothing but their numbers count once.
"""

Test = Callable[[Mapping[str, Any]], bool | None]
Condition = tuple[str, Test]
Compare = Callable[[Any, Any], bool]


def condition(bad: Sequence[Observation], good: Sequence[Observation]) -> str:
    """ "only where ..." in words, for the inputs that fail; empty when no simple condition fits.

    A condition is a property of one input (a length, a number of axes, an argument that is left
    out) that holds on all inputs that fail and on none that is answered rightly. The first in the
    list of properties wins, so that the plainest one is told.
    """
    failing = [observation.example.arguments for observation in bad]
    passing = [observation.example.arguments for observation in good]
    if any(len(set(map(_form, inputs))) < ENOUGH for inputs in (failing, passing)):
        return ""
    for words, holds in _conditions(failing, passing):
        if all(holds(a) is True for a in failing) and all(holds(a) is False for a in passing):
            return words
    return ""


def _form(value: Any) -> Hashable:
    """All that a condition can be about: what is given, shapes, dtypes, orders of magnitude."""
    if isinstance(value, Mapping):
        return tuple((name, _form(part)) for name, part in value.items())
    if not isinstance(value, np.ndarray):
        return str(value)
    large = f"{_magnitude(value):.0e}".partition("e")[2] if is_float(value) else ""
    return value.shape, str(value.dtype), large


def _conditions(
    failing: Sequence[Mapping[str, Any]], passing: Sequence[Mapping[str, Any]]
) -> Iterator[Condition]:
    everything = [*failing, *passing]
    names = list(dict.fromkeys(name for arguments in everything for name in arguments))
    for name in names:
        yield from _of_one(name, everything)
    arrays = [n for n in names if any(isinstance(a.get(n), np.ndarray) for a in everything)]
    for name in arrays:
        yield from _of_axes(name, everything)
    for first, second in itertools.combinations(_numbers(everything), 2):
        yield f"where {first} and {second} differ", _differ(first, second)
        yield f"where {first} and {second} are equal", _equal(first, second)


def _of_one(name: str, everything: Sequence[Mapping[str, Any]]) -> Iterator[Condition]:
    values = [arguments.get(name) for arguments in everything]
    if any(value is None for value in values):
        yield f"where {name} is not given", lambda a: a.get(name) is None
        yield f"where {name} is given", lambda a: a.get(name) is not None
    numbers = sorted({v for v in values if isinstance(v, int | float) and not isinstance(v, bool)})
    for number in numbers:
        yield f"where {name} is {number:g}", _is(name, number)
    for number in numbers:
        yield f"where {name} is not {number:g}", _is_not(name, number)
    for low, high in itertools.pairwise(numbers):
        yield f"where {name} is {high:g} or more", _at_least(name, high)
        yield f"where {name} is {low:g} or less", _at_most(name, low)


def _of_axes(name: str, everything: Sequence[Mapping[str, Any]]) -> Iterator[Condition]:
    arrays = [a[name] for a in everything if isinstance(a.get(name), np.ndarray)]
    counts = sorted({array.ndim for array in arrays})
    for count in counts:
        yield f"where {name} has {_axes(count)}", _rank(name, operator.eq, count)
    for low, high in itertools.pairwise(counts):
        yield f"where {name} has {high} axes or more", _rank(name, operator.ge, high)
        yield f"where {name} has {_axes(low)} or less", _rank(name, operator.le, low)
    for count in counts:
        words = f"where {name} has other than {_axes(count)}"
        yield words, _rank(name, operator.ne, count)
    yield f"where {name} is empty", _shape(name, lambda s: 0 in s)
    for back in (2, 3, 1):
        which = {1: "last", 2: "last but one", 3: "third last"}[back]
        lengths = sorted({array.shape[-back] for array in arrays if array.ndim >= back})
        for length in lengths:
            words = f"where the {which} axis of {name} has length {length}"
            yield words, _length(name, back, operator.eq, length)
        for low, high in itertools.pairwise(lengths):
            words = f"where the {which} axis of {name} is {high} or longer"
            yield words, _length(name, back, operator.ge, high)
            words = f"where the {which} axis of {name} is {low} or shorter"
            yield words, _length(name, back, operator.le, low)
    yield f"where {name} has an axis of length 1", _shape(name, lambda s: 1 in s)
    dtypes = {str(array.dtype) for array in arrays}
    if len(dtypes) > 1:
        for dtype in sorted(dtypes):
            yield f"where {name} is {dtype}", _dtype(name, dtype)
    if all(is_float(array) for array in arrays):
        sizes = sorted({_magnitude(array) for array in arrays})
        for low, high in itertools.pairwise(sizes):
            if low > 0 and high > 4 * low:
                words = f"where {name} holds numbers as large as {high:.2g}"
                yield words, _holds(name, operator.ge, high)
                words = f"where all numbers of {name} are {low:.2g} or smaller"
                yield words, _holds(name, operator.le, low)


def _axes(count: int) -> str:
    return "no axes" if not count else "one axis" if count == 1 else f"{count} axes"


def _magnitude(array: Any) -> float:
    finite = np.abs(array.astype(np.float64))
    finite = finite[np.isfinite(finite)]
    return float(finite.max(initial=0.0))


def _numbers(everything: Sequence[Mapping[str, Any]]) -> list[str]:
    """Arguments that are lengths, by name."""
    return [
        name
        for name, value in everything[0].items()
        if isinstance(value, int) and not isinstance(value, bool)
    ]


def _is(name: str, number: float) -> Test:
    return lambda a: a.get(name) == number


def _is_not(name: str, number: float) -> Test:
    return lambda a: a.get(name) != number


def _at_least(name: str, number: float) -> Test:
    return lambda a: None if a.get(name) is None else bool(a[name] >= number)


def _at_most(name: str, number: float) -> Test:
    return lambda a: None if a.get(name) is None else bool(a[name] <= number)


def _differ(first: str, second: str) -> Test:
    return lambda a: bool(a.get(first) != a.get(second))


def _equal(first: str, second: str) -> Test:
    return lambda a: bool(a.get(first) == a.get(second))


def _array(name: str, holds: Callable[[Any], bool]) -> Test:
    def test(arguments: Mapping[str, Any]) -> bool | None:
        value = arguments.get(name)
        return bool(holds(value)) if isinstance(value, np.ndarray) else None

    return test


def _shape(name: str, holds: Callable[[tuple[int, ...]], bool]) -> Test:
    return _array(name, lambda array: holds(tuple(array.shape)))


def _rank(name: str, compare: Compare, count: int) -> Test:
    return _shape(name, lambda shape: compare(len(shape), count))


def _length(name: str, back: int, compare: Compare, length: int) -> Test:
    return _array(name, lambda x: x.ndim >= back and compare(x.shape[-back], length))


def _dtype(name: str, dtype: str) -> Test:
    return _array(name, lambda x: str(x.dtype) == dtype)


def _holds(name: str, compare: Compare, number: float) -> Test:
    return _array(name, lambda x: compare(_magnitude(x), number))
