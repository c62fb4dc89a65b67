"""Explains the failures of a candidate: which known mistake, in which part, and how sure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformance.candidate.messages import Call, Outcome
from conformance.diagnosis import behaviour, words
from conformance.diagnosis.catalogue import Fault, wrong
from conformance.diagnosis.conditions import condition
from conformance.diagnosis.match import Hypothesis, Match
from conformance.diagnosis.observe import LARGEST, Observation, observe, pool
from conformance.diagnosis.search import fitting, narrowed, pairs, singles, used_pieces
from conformance.errors import InternalError
from conformance.golden.load import GoldenStore
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.report import Diagnosis
from conformance.spec import Level, component_names
from conformance.suite.case import size
from conformance.suite.check import Check
from conformance.suite.component import Component, component
from conformance.suite.failure import CheckResult, Evidence
from conformance.suite.grader import Caller, Context, Example, Grader
from conformance.suite.profile import PROFILE

EXPLAINED = (Outcome.FAILED, Outcome.RAISED)
"""Outcomes that have a cause in what the candidate computes; the others explain themselves."""


@dataclass
class Chart:
    """What is known about one component of the candidate."""

    owner: Component
    observations: list[Observation] = field(default_factory=list)
    found: list[list[Match]] = field(default_factory=list)
    searched: set[tuple[int, ...]] = field(default_factory=set)
    part: str = ""

    @property
    def wrong(self) -> list[Observation]:
        """Inputs that are answered wrongly."""
        return [o for o in self.observations if o.wrong]

    @property
    def right(self) -> list[Observation]:
        """Inputs that are answered rightly."""
        return [o for o in self.observations if not o.wrong]


class Doctor:
    """Explains one failed check after the other, and keeps what it has learnt on the way."""

    def __init__(self, caller: Caller, golden: GoldenStore, device: str = "cpu") -> None:
        self.caller = caller
        self.golden = golden
        self.device = device
        self._charts: dict[str, Chart] = {}

    def explain(self, check: Check, result: CheckResult) -> Diagnosis | None:
        """The likely mistake behind a check that did not pass; None where nothing can be said."""
        if result.outcome not in EXPLAINED:
            return None
        if check.module:
            return words.raised(check.component.name, result, "")
        chart = self.chart(check.component)
        failing = self._failing(check, result.evidence)
        if failing is not None or chart.wrong:
            named = self._named(chart, failing)
            if named is not None:
                return named
        found = behaviour.behind(check, result, chart.observations)
        if found is not None:
            return found
        if result.outcome is Outcome.RAISED:
            return words.raised(check.component.name, result, self._where(chart, failing))
        return words.described(
            check.component.name, self._seen(chart, failing), self._where(chart, failing)
        )

    # ------------------------------------------------------------ observing

    def chart(self, owner: Component) -> Chart:
        """What is known about a component; asks its small cases the first time."""
        if owner.name not in self._charts:
            chart = self._charts[owner.name] = Chart(owner)
            binding = frozenset(
                identifier
                for identifier, requirement in owner.spec.requirements.items()
                if requirement.level is Level.MUST
            )
            for case in pool(owner, binding):
                grader = self._grader(owner, "float32")
                example = grader.example(case)
                if size(example.arguments) > LARGEST:
                    continue
                observation = self._ask(owner, grader.bounded(example))
                if observation is None:
                    break
                chart.observations.append(observation)
        return self._charts[owner.name]

    def _grader(self, owner: Component, dtype: str) -> Grader:
        context = Context(self.caller, PROFILE["quick"], golden=self.golden, device=self.device)
        return Grader(owner, dtype, context)

    def _ask(self, owner: Component, example: Example) -> Observation | None:
        bounded = self._grader(owner, "float32").bounded(example)
        return observe(self.caller, owner.function, bounded)

    def _failing(self, check: Check, evidence: Evidence) -> Observation | None:
        """The input of the failed check and the answer to it, where values can be looked at."""
        example, reply = evidence.example, evidence.reply
        if example is None or reply is None:
            return None
        if reply.outcome is Outcome.PASSED and not reply.outputs:
            return None
        if size(example.arguments) > LARGEST or not _complete(check.component, example):
            return None
        try:
            bounded = self._grader(check.component, check.dtype).bounded(example)
        except InternalError:  # an input made for another purpose: it has no tolerance
            return None
        observation = Observation(bounded, reply, evidence.how)
        return observation if observation.wrong else None

    # ------------------------------------------------------------ naming

    def _named(self, chart: Chart, failing: Observation | None) -> Diagnosis | None:
        """A mistake of the catalogue, or a part that is wrong by itself."""
        for matches in chart.found:
            if failing is None or matches[0].hypothesis.fits(failing):
                return self._told(chart, matches)
        observations = [*chart.observations, *([failing] if failing is not None else [])]
        key = tuple(sorted(id(o.example) for o in observations if o.wrong))
        if key in chart.searched:
            return None
        chart.searched.add(key)
        matches = self._search(chart, observations)
        if not matches and failing is not None and chart.wrong and not chart.found:
            matches = self._search(chart, chart.observations)
        if not matches:
            return self._from_parts(chart, observations)
        chart.found.append(matches)
        return self._told(chart, matches)

    def _search(self, chart: Chart, observations: list[Observation]) -> list[Match]:
        if not any(o.wrong for o in observations):
            return []
        owner = chart.owner
        matches = singles(owner, observations) or pairs(owner, observations, self._diagnosed())
        if len(matches) > 1:
            matches = narrowed(
                matches, owner, chart.observations, lambda example: self._ask(owner, example)
            )
        return matches

    def _diagnosed(self) -> list[Fault]:
        """The faults that were found in other components before."""
        return [
            fault
            for chart in self._charts.values()
            for matches in chart.found
            if len(matches) == 1
            for fault in matches[0].hypothesis.faults
        ]

    def _told(self, chart: Chart, matches: Sequence[Match]) -> Diagnosis:
        root = component(matches[0].hypothesis.faults[0].component)
        alone = root.name == chart.owner.name or self._provides_wrong(root)
        return words.matched(chart.owner, matches, alone)

    def _provides_wrong(self, part: Component) -> bool:
        """The candidate's own adapter of a part is wrong as well (or there is none)."""
        chart = self.chart(part)
        return not chart.observations or bool(chart.wrong)

    # ------------------------------------------------------------ parts

    def _from_parts(self, chart: Chart, observations: list[Observation]) -> Diagnosis | None:
        """The definition with the candidate's own part in it gives the candidate's answers."""
        used = used_pieces(chart.owner)
        parts = [
            component(name)
            for name in component_names()
            if name in used and name != chart.owner.name
        ]
        broken = [part for part in parts if self.chart(part).wrong]
        for part in broken:
            pieces = {part.name: self._own(part)}
            hypothesis = Hypothesis((), wrong(chart.owner.oracle, pieces))
            if fitting([hypothesis], chart.owner, observations):
                found = self._named(self.chart(part), None)
                return words.part(chart.owner, part, found)
        return None

    def _own(self, part: Component) -> Callable[..., Array]:
        """A piece that asks the candidate: its own adapter in the place of a definition."""

        def call(**keywords: Any) -> Array:
            like = next(value for value in keywords.values() if isinstance(value, Array))
            arguments = {name: _numbers(value) for name, value in keywords.items()}
            reply = self.caller.call(Call(function=part.function, arguments=arguments))
            if reply.outcome is not Outcome.PASSED:
                raise ValueError(reply.message)
            return m.constant(reply.outputs[0].astype(np.float64), like)

        return call

    # ------------------------------------------------------------ describing

    def _seen(self, chart: Chart, failing: Observation | None) -> list[Observation]:
        """The wrong answers that a description is about."""
        return chart.wrong or ([failing] if failing is not None else [])

    def _where(self, chart: Chart, failing: Observation | None) -> str:
        bad = chart.wrong
        if failing is not None and all(o.example is not failing.example for o in bad):
            bad = [*bad, failing]
        return condition(bad, chart.right)


def _numbers(value: Any) -> Any:
    """An argument of a definition as one of a call."""
    if isinstance(value, Array):
        return np.asarray(value.value).astype(value.format.numpy)
    return value


def _complete(owner: Component, example: Example) -> bool:
    """Whether the example holds the arguments of the adapter (a law may hold other things)."""
    return set(owner.cases[0].arguments(owner.cases[0].dtypes[0])) >= set(example.arguments)
