"""Whether an answer is right for an argument of an earlier call: something was kept too long."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from conformance.diagnosis.match import Hypothesis
from conformance.diagnosis.observe import Observation
from conformance.suite.component import Component
from conformance.suite.grader import Example

TRIED = 400
"""So many replaced arguments are tried at most."""


def stale_arguments(
    owner: Component, failing: Observation, earlier: Sequence[Example]
) -> tuple[str, ...]:
    """The arguments of which another call's explain a wrong answer; empty when none do.

    One argument at a time, then two: each is replaced by that of another call where it fits.
    """
    arguments = failing.example.arguments
    right = Hypothesis((), owner.oracle)
    tried = 0
    for count in (1, 2):
        for example in earlier:
            for names in itertools.combinations(_other(arguments, example.arguments), count):
                if tried == TRIED:
                    return ()
                tried += 1
                changed = {**arguments, **{name: example.arguments[name] for name in names}}
                if right.fits(replace(failing, example=_with(failing.example, changed))):
                    return names
    return ()


def _with(example: Example, arguments: Mapping[str, Any]) -> Example:
    return replace(example, arguments=arguments)


def _other(arguments: Mapping[str, Any], older: Mapping[str, Any]) -> Iterator[str]:
    """Arguments that both calls have in the same form and that differ."""
    for name, value in arguments.items():
        other = older.get(name)
        if _same_form(value, other) and not _equal(value, other):
            yield name


def _same_form(value: Any, other: Any) -> bool:
    if isinstance(value, np.ndarray) and isinstance(other, np.ndarray):
        return bool(value.shape == other.shape and value.dtype == other.dtype)
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return set(value) == set(other) and all(_same_form(value[k], other[k]) for k in value)
    return isinstance(value, float) and isinstance(other, float)


def _equal(value: Any, other: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_equal(value[key], other[key]) for key in value)
    return bool(np.array_equal(value, other))
