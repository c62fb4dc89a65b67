"""What a candidate does on a set of inputs: the facts that an explanation has to fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from conformance.candidate.messages import Call, Outcome, Reply
from conformance.numerics.compare import compare
from conformance.numerics.ensemble import Bounds
from conformance.spec import Level
from conformance.suite.case import Case, size
from conformance.suite.component import Component
from conformance.suite.grader import Caller, Example

LARGEST = 4000
"""Inputs with more numbers than this are not asked for a diagnosis: small ones tell more."""

LARGEST_FAILING = 200_000
"""An input that failed is looked at up to this size."""

ANSWERED = (Outcome.PASSED, Outcome.RAISED)
"""Outcomes after which it makes sense to go on asking."""

Bounded = Callable[[Example], Example]


@dataclass(frozen=True)
class Observation:
    """One input, what is right for it, and what the candidate made of it."""

    example: Example
    reply: Reply
    how: Mapping[str, Any] = field(default_factory=dict)

    @property
    def raised(self) -> bool:
        """No answer came, but an exception."""
        return self.reply.outcome is not Outcome.PASSED

    @property
    def bounds(self) -> Bounds:
        """What is right."""
        assert self.example.bounds is not None
        return self.example.bounds

    @property
    def output(self) -> Any:
        """The last answer to this input, as float64; the only one unless it was asked again."""
        return self.reply.outputs[-1].astype(np.float64)

    @property
    def size(self) -> int:
        """How many numbers the input has."""
        return size(self.example.arguments)

    @property
    def empty(self) -> bool:
        """An array of its input has an axis of length 0."""
        return any(
            isinstance(a, np.ndarray) and not a.size for a in self.example.arguments.values()
        )

    @cached_property
    def wrong_value(self) -> bool:
        """An answer came and its value or shape is wrong."""
        if self.raised:
            return False
        return bool(compare(self.reply.outputs[-1], self.bounds.result).problem)

    @cached_property
    def wrong_gradients(self) -> tuple[str, ...]:
        """Arguments whose gradient is wrong or missing."""
        if self.raised:
            return ()
        return tuple(
            name
            for name in self.example.wrt
            if name in self.bounds.gradients and not self._right_gradient(name)
        )

    def repeats(self, other: Observation) -> bool:
        """The same was asked in the same way, so that nothing new is seen."""
        asked, before = self.example, other.example
        return (
            self.how == other.how
            and asked.wrt == before.wrt
            and same_form(asked.arguments, before.arguments)
            and equal(asked.arguments, before.arguments)
        )

    def _right_gradient(self, name: str) -> bool:
        got = self.reply.gradients.get(name)
        return got is not None and not compare(got, self.bounds.gradients[name]).problem

    @property
    def wrong(self) -> bool:
        """Anything is not as it should be."""
        return self.raised or self.wrong_value or bool(self.wrong_gradients)

    def gradient(self, name: str) -> Any:
        """The gradient that came back, as float64; zeros where none did."""
        got = self.reply.gradients.get(name)
        if got is None:
            return np.zeros(self.bounds.gradients[name].expected.shape)
        return got.astype(np.float64)


def same_form(value: Any, other: Any) -> bool:
    """Two arguments, or two dictionaries of them, that could stand for each other."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return set(value) == set(other) and all(same_form(value[k], other[k]) for k in value)
    if isinstance(value, np.ndarray) and isinstance(other, np.ndarray):
        return bool(value.shape == other.shape and value.dtype == other.dtype)
    return type(value) is type(other)


def equal(value: Any, other: Any) -> bool:
    """Whether two arguments of the same form are the same."""
    if isinstance(value, Mapping):
        return all(equal(value[key], other[key]) for key in value)
    return bool(np.array_equal(value, other))


def pool(owner: Component, dtype: str) -> Iterator[Case]:
    """The cases that a component is asked with in one dtype.

    In float32 those of requirements that bind every implementation; an answer in another dtype is
    a favour in many components.
    """
    for case in owner.cases:
        level = owner.requirement(case.requirement).level
        if dtype in case.dtypes and (level is Level.MUST or dtype != "float32"):
            yield case


def observe(caller: Caller, function: str, example: Example, **how: Any) -> Observation | None:
    """Ask for one example; None when the candidate hangs, crashes or gives something odd."""
    reply = caller.call(
        Call(
            function=function,
            arguments=example.arguments,
            wrt=example.wrt,
            cotangent=example.cotangent,
            **how,
        )
    )
    if reply.outcome not in ANSWERED or (reply.outcome is Outcome.PASSED and not reply.outputs):
        return None
    return Observation(example, reply, how)
