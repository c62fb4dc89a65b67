"""Whether an answer is right for an argument of an earlier call: something was kept too long."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.diagnosis.match import Hypothesis
from conformance.diagnosis.observe import Observation, equal, same_form
from conformance.suite.component import Component
from conformance.suite.grader import Example

TRIED = 400
"""So many replaced arguments are tried at most."""


def stale_arguments(
    owner: Component, failing: Observation, earlier: Sequence[Example]
) -> tuple[str, ...]:
    """The arguments of which another call's explain a wrong answer; empty when none do.

    One argument at a time, then all weights, then two: each is replaced by that of another call
    where it fits.
    """
    arguments = failing.example.arguments
    right = Hypothesis((), owner.oracle)
    if right.fits(failing):  # too small an error to tell one argument from another by
        return ()
    ways = (_one, lambda names: _weights(owner, names), _two)
    tried = ((names, e) for way in ways for e in earlier for names in way(_other(arguments, e)))
    for names, example in itertools.islice(tried, TRIED):
        if right.fits(_with(failing, names, example)):
            others = (_with(failing, names, e) for e in earlier if _far(names, example, e))
            return () if any(right.fits(other) for other in others) else names
    return ()


def _with(failing: Observation, names: Sequence[str], older: Example) -> Observation:
    """The wrong answer, as one to the same question with arguments of another call."""
    taken = {name: older.arguments[name] for name in names}
    example = replace(failing.example, arguments={**failing.example.arguments, **taken})
    return replace(failing, example=example)


def _far(names: Sequence[str], one: Example, other: Example) -> bool:
    """Whether the only argument is a number that is quite another there.

    An answer that is right for two such numbers does not depend on the number, as one from which
    eps is missing, and nothing shows that an earlier one was kept.
    """
    first, second = (example.arguments.get(names[0]) for example in (one, other))
    if len(names) > 1 or not (isinstance(first, float) and isinstance(second, float)):
        return False
    small, large = sorted((abs(first), abs(second)))
    return large > 2 * small


def _one(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return ((name,) for name in names)


def _two(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return itertools.combinations(names, 2)


def _weights(owner: Component, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    weights = tuple(name for name in names if name in owner.parameters)
    if len(weights) > 2:
        yield weights


def _other(arguments: Mapping[str, Any], older: Example) -> Sequence[str]:
    """Arguments that both calls have in the same form and that differ; no lengths."""
    return [
        name
        for name, value in arguments.items()
        if not isinstance(value, int)
        and same_form(value, other := older.arguments.get(name))
        and not equal(value, other)
    ]
