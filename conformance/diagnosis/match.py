"""Whether a wrong definition predicts what a candidate answers, on every input that was asked."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformance.diagnosis.catalogue import Fault, wrong
from conformance.diagnosis.observe import Observation
from conformance.errors import InternalError
from conformance.numerics import ensemble
from conformance.numerics.arithmetic import Arithmetic
from conformance.numerics.compare import compare
from conformance.numerics.dtypes import FLOAT32, FORMATS, Format
from conformance.numerics.ensemble import Bound, Oracle, Question
from conformance.suite.component import Component
from conformance.suite.grader import Example

NEARBY = 0.02
"""A first look lets a prediction miss by this share of the error that it is to explain."""

SLACK = 4.0
"""A mistake may be written in more ways than the definition: its tolerance is that much wider."""

CONFIRMED_ON = 3
"""On so many inputs a match is confirmed with the derived tolerance of the wrong definition."""

MISSED = 8
"""A prediction may miss one in so many of the wrong answers.

In float32 a mistake can go its own way on extreme inputs: overflow early, or cancel.
"""

REFUSES = "refuses"
"""The prediction that an input raises an exception."""


@dataclass
class Hypothesis:
    """One or several faults together, as a wrong definition of a component."""

    faults: tuple[Fault, ...]
    oracle: Oracle
    _known: dict[int, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, owner: Component, *faults: Fault) -> Hypothesis:
        """The definition of `owner` with these faults in it."""
        pieces = {name: by for fault in faults for name, by in fault.pieces.items()}
        return cls(faults, wrong(owner.oracle, pieces))

    @property
    def gradients_only(self) -> bool:
        """It changes no value, only derivatives."""
        return bool(self.faults) and all(fault.visible == "gradient" for fault in self.faults)

    @property
    def refuses(self) -> bool:
        """It is about inputs that raise. Of other mistakes an exception alone proves nothing."""
        return any(fault.visible == "crash" for fault in self.faults)

    def predict(self, example: Example) -> Any:
        """Result and gradients, exactly; REFUSES where the wrong definition cannot be evaluated."""
        key = id(example)
        if key not in self._known:
            self._known[key] = (example, self._evaluate(example))  # keeps the id from being reused
        return self._known[key][1]

    def _evaluate(self, example: Example) -> Any:
        wrt = example.wrt if self.gradients_only else ()
        question = Question(self.oracle, example.arguments, wrt=wrt, cotangent=example.cotangent)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ensemble.evaluate(question, Arithmetic())
        except InternalError:
            raise
        except Exception:  # whatever NumPy says to shapes that do not fit
            return REFUSES

    def shows(self, observation: Observation) -> bool:
        """Whether it predicts anything but what is right."""
        predicted = self.predict(observation.example)
        if isinstance(predicted, str):
            return True
        right = observation.bounds
        if compare(predicted[0], right.result).problem:
            return True
        names = observation.example.wrt if self.gradients_only else ()
        return any(
            name in right.gradients and compare(got, right.gradients[name]).problem
            for name, got in zip(names, predicted[1:], strict=True)
        )

    def fits(self, observation: Observation) -> bool:
        """Whether the candidate answers what it predicts, at a first look."""
        predicted = self.predict(observation.example)
        if isinstance(predicted, str) or observation.raised:
            return isinstance(predicted, str) and observation.raised
        if not near(
            observation.output, predicted[0], observation.bounds.result, _unit(observation)
        ):
            return False
        if not self.gradients_only:
            return True
        unit = _unit(observation)
        return all(
            near(observation.gradient(name), got, observation.bounds.gradients[name], unit)
            for name, got in zip(observation.example.wrt, predicted[1:], strict=True)
            if name in observation.bounds.gradients
        )

    def confirmed(self, observation: Observation, pooled: tuple[int, ...]) -> bool:
        """Whether the answer lies within the derived tolerance of the wrong definition."""
        if observation.raised:
            return True
        wrt = observation.example.wrt if self.gradients_only else ()
        question = Question(
            self.oracle,
            observation.example.arguments,
            wrt=wrt,
            cotangent=observation.example.cotangent,
            pooled=pooled,
        )
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                bounds = ensemble.bounds(question)
        except (InternalError, ValueError, IndexError, FloatingPointError):
            return True  # no tolerance can be had here: the first look has to do
        if not _within(observation.output, bounds.result):
            return False
        return all(_within(observation.gradient(name), bounds.gradients[name]) for name in wrt)


def _within(got: Any, bound: Bound) -> bool:
    wider = Bound(bound.expected, SLACK * bound.tolerance)
    return not compare(got, wider).problem


def _unit(observation: Observation) -> float:
    """Unit roundoff of the answer."""
    found: Format = FORMATS.get(observation.reply.dtype, FLOAT32)
    return found.unit


def near(got: Any, predicted: Any, right: Bound, unit: float) -> bool:
    """A first look: the prediction accounts for all but a small share of the error."""
    if got.shape != predicted.shape:
        return False
    finite = np.isfinite(predicted)
    if (np.isfinite(got) != finite).any() or (np.isnan(got) != np.isnan(predicted)).any():
        return False
    if not got.size:
        return True
    largest = np.abs(np.where(finite, predicted, 0.0)).max(axis=-1, keepdims=True, initial=0.0)
    allowed = 64 * unit * largest if predicted.ndim else 64 * unit * np.abs(predicted)
    if right.expected.shape == predicted.shape:
        with np.errstate(invalid="ignore"):
            gap = np.where(np.isfinite(right.expected), np.abs(predicted - right.expected), 0.0)
        allowed = allowed + 8 * right.tolerance + NEARBY * np.where(np.isfinite(gap), gap, 0.0)
    with np.errstate(invalid="ignore"):
        return bool(
            (np.abs(got - predicted)[finite] <= np.broadcast_to(allowed, got.shape)[finite]).all()
        )


@dataclass(frozen=True)
class Match:
    """A hypothesis that fits: on how many inputs it shows, and how many wrong ones it misses."""

    hypothesis: Hypothesis
    shown: int
    unexplained: int


def match(
    hypothesis: Hypothesis, observations: Sequence[Observation], pooled: tuple[int, ...]
) -> Match | None:
    """The hypothesis with its count, or None when the answers contradict it.

    An exception that it does not predict is no contradiction, it may have a cause of its own; it is
    counted as unexplained. So are wrong answers that differ from the prediction, while they are
    few.
    """
    wrong_values = sum(o.wrong and not o.raised for o in observations)
    if not hypothesis.refuses and not wrong_values:
        return None
    shown: list[Observation] = []
    unexplained = missed = 0
    for observation in observations:
        if hypothesis.fits(observation):
            if hypothesis.shows(observation):
                shown.append(observation)
        elif observation.raised:
            unexplained += 1
        elif observation.wrong and (missed + 1) * MISSED <= wrong_values and missed <= len(shown):
            missed += 1
        else:
            return None
    if not shown or (all(o.raised for o in shown) and not hypothesis.refuses):
        return None
    telling = sorted((o for o in shown if not o.raised), key=lambda o: o.size)[:CONFIRMED_ON]
    if not all(hypothesis.confirmed(observation, pooled) for observation in telling):
        return None
    return Match(hypothesis, len(shown), unexplained + missed)
