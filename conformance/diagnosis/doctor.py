"""Explains the failures of a candidate: which known mistake, in which part, and how sure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from conformance.candidate.messages import Call, Outcome
from conformance.diagnosis import behaviour, words
from conformance.diagnosis.catalogue import Fault, wrong
from conformance.diagnosis.conditions import condition
from conformance.diagnosis.match import Hypothesis, Match
from conformance.diagnosis.observe import LARGEST, LARGEST_FAILING, Observation, observe, pool
from conformance.diagnosis.search import expressible, fitting, narrowed, pairs, singles, used_pieces
from conformance.diagnosis.stale import stale_arguments
from conformance.errors import InternalError
from conformance.golden.load import GoldenStore
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.report import Diagnosis
from conformance.spec import component_names
from conformance.suite.case import size
from conformance.suite.check import Check
from conformance.suite.component import Component, component
from conformance.suite.failure import CheckResult, Evidence
from conformance.suite.grader import Caller, Context, Example, Grader
from conformance.suite.profile import PROFILE

SEARCHES = 3
"""So often the catalogue is searched for inputs that fail in a component that is right on others.

Where plain inputs fail already it is searched once: with them and the first failing input.
"""

EXPLAINED = (Outcome.FAILED, Outcome.RAISED)
"""Outcomes that have a cause in what the candidate computes; the others explain themselves."""

AS_WELL = 4
"""So many other wrong answers are looked at, whether they are those to an earlier call too."""


@dataclass
class Chart:
    """What is known about one component of the candidate."""

    owner: Component
    dtype: str
    observations: list[Observation] = field(default_factory=list)
    found: list[list[Match]] = field(default_factory=list)
    built_on: list[tuple[Hypothesis, Diagnosis]] = field(default_factory=list)
    searches: int = 0
    steady: dict[int, bool] = field(default_factory=dict)
    kept: dict[int, tuple[str, ...]] = field(default_factory=dict)

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
        self._charts: dict[tuple[str, str], Chart] = {}

    def explain(self, check: Check, result: CheckResult) -> Diagnosis | None:
        """The likely mistake behind a check that did not pass; None where nothing can be said."""
        if result.outcome not in EXPLAINED:
            return None
        if check.module:
            return words.raised(check.component.name, result, "")
        chart = self.chart(check.component)
        if not chart.wrong and check.dtype != chart.dtype:
            chart = self.chart(check.component, check.dtype)
        failing = self._failing(check, result.evidence)
        found = None
        if failing is not None or chart.wrong:
            found = self._named(chart, failing)
        if found is None:
            found = self._behaviour(chart, failing, check, result)
        if found is None and result.outcome is Outcome.RAISED:
            found = words.raised(chart.owner.name, result, self._where(chart, failing))
        if found is None:
            seen, where = self._seen(chart, failing), self._where(chart, failing)
            found = words.described(chart.owner.name, seen, where)
        return found

    # ------------------------------------------------------------ observing

    def chart(self, owner: Component, dtype: str = "float32") -> Chart:
        """What is known about a component in one dtype; asks its small cases the first time."""
        key = owner.name, dtype
        if key not in self._charts:
            chart = self._charts[key] = Chart(owner, dtype)
            for case in pool(owner, dtype):
                example = self._grader(owner, dtype).example(case)
                if size(example.arguments) > LARGEST:
                    continue
                observation = self._ask(owner, dtype, example)
                if observation is None:
                    break
                chart.observations.append(observation)
        return self._charts[key]

    def _grader(self, owner: Component, dtype: str) -> Grader:
        context = Context(self.caller, PROFILE["quick"], golden=self.golden, device=self.device)
        return Grader(owner, dtype, context)

    def _ask(
        self, owner: Component, dtype: str, example: Example, **how: Any
    ) -> Observation | None:
        bounded = self._grader(owner, dtype).bounded(example)
        return observe(self.caller, owner.function, bounded, **how)

    def _failing(self, check: Check, evidence: Evidence) -> Observation | None:
        """The input of the failed check and the answer to it, where values can be looked at."""
        example, reply = evidence.example, evidence.reply
        if example is None or reply is None:
            return None
        if reply.outcome is Outcome.PASSED and not reply.outputs:
            return None
        if size(example.arguments) > LARGEST_FAILING or not _complete(check.component, example):
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
        for hypothesis, told in chart.built_on:
            if failing is None or hypothesis.fits(failing):
                return told
        if chart.searches == (1 if chart.wrong else SEARCHES) or self._changes(chart, failing):
            return None
        chart.searches += 1
        seen = observations = [*chart.observations, *self._plain(chart)]
        if failing is not None and not any(failing.repeats(o) for o in chart.observations):
            observations = [*seen, failing]
        matches = self._search(chart, observations)
        if not matches and observations is not seen and chart.wrong and not chart.found:
            matches = self._search(chart, seen)
        if not matches:
            return self._from_parts(chart, observations)
        chart.found.append(matches)
        return self._told(chart, matches)

    def _plain(self, chart: Chart) -> list[Observation]:
        """What was seen in float32, where another dtype is looked at: a mistake shows there too.

        Without it an exception that comes of the dtype alone would be taken for one of a mistake
        that refuses everything.
        """
        return [] if chart.dtype == "float32" else self.chart(chart.owner).observations

    def _search(self, chart: Chart, observations: list[Observation]) -> list[Match]:
        """What fits: faults found in parts before, any single fault, any two."""
        if not any(o.wrong for o in observations):
            return []
        owner, known = chart.owner, self._diagnosed(chart.owner)
        matches = fitting((Hypothesis.of(owner, f) for f in known), owner, observations)
        matches = matches or singles(owner, observations)
        if len(matches) > 1:
            matches = narrowed(
                matches,
                owner,
                chart.dtype,
                chart.observations,
                lambda example: self._ask(owner, chart.dtype, example),
            )
        return matches or pairs(owner, observations, known)

    def _diagnosed(self, owner: Component) -> list[Fault]:
        """The faults that were found in parts of a component before."""
        used = used_pieces(owner)
        found = {
            fault.id: fault
            for chart in self._charts.values()
            for matches in chart.found
            if chart.owner is not owner and len(matches) == 1
            for fault in matches[0].hypothesis.faults
            if set(fault.pieces) <= used
        }
        return list(found.values())

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
                told = words.part(part, found)
                chart.built_on.append((hypothesis, told))
                return told
        return self._beside_parts(chart, observations, broken)

    def _beside_parts(
        self, chart: Chart, observations: list[Observation], broken: Sequence[Component]
    ) -> Diagnosis | None:
        """A part that is wrong by itself, and a mistake of the component's own beside it."""
        own = [f for f in expressible(chart.owner) if f.component == chart.owner.name]
        for part in broken:
            asked = self._own(part)
            matches = fitting(
                (
                    Hypothesis((f,), wrong(chart.owner.oracle, {**f.pieces, part.name: asked}))
                    for f in own
                    if part.name not in f.pieces and f.visible != "gradient"
                ),
                chart.owner,
                observations,
            )
            if matches:
                told = words.beside(chart.owner, part, matches)
                chart.built_on.append((matches[0].hypothesis, told))
                return told
        return None

    def _own(self, part: Component) -> Callable[..., Array]:
        """A piece that asks the candidate: its own adapter in the place of a definition."""

        def call(**keywords: Any) -> Array:
            if any(callable(value) for value in keywords.values()):
                raise ValueError("a function cannot be sent")
            like = next(value for value in keywords.values() if isinstance(value, Array))
            arguments = {name: _numbers(value) for name, value in keywords.items()}
            reply = self.caller.call(Call(function=part.function, arguments=arguments))
            if reply.outcome is not Outcome.PASSED:
                raise ValueError(reply.message)
            return m.constant(reply.outputs[0].astype(np.float64), like)

        return call

    # ------------------------------------------------------------ behaviour

    def _changes(self, chart: Chart, failing: Observation | None) -> bool:
        """Whether answers change from call to call, so that no definition can predict them."""
        wrong_values = [o for o in self._seen(chart, failing) if o.wrong_value]
        return bool(wrong_values) and self._unsteady(chart, _typical(wrong_values))

    def _behaviour(
        self, chart: Chart, failing: Observation | None, check: Check, result: CheckResult
    ) -> Diagnosis | None:
        """A mistake that shows in what happens between or around calls."""
        wrong_values = [o for o in self._seen(chart, failing) if o.wrong_value]
        raises = any(o.raised for o in chart.observations)
        plain = any(not o.how.get("layouts") for o in wrong_values)
        signs = behaviour.Signs(wrong=plain, raises=raises)
        if wrong_values:
            if self._unsteady(chart, _typical(wrong_values)):
                signs = replace(signs, unsteady=True)
            else:
                smallest = min(wrong_values, key=lambda o: o.size)
                signs = replace(signs, kept=self._kept(chart, smallest))
        return behaviour.behind(check, result, signs)

    def _unsteady(self, chart: Chart, observation: Observation) -> bool:
        """Whether the same input is answered in another way when it is asked again."""
        key = id(observation.example)
        if key not in chart.steady:
            # two calls in one request: random numbers start anew with each request
            how = {**observation.how, "repeat": 2}
            again = self._ask(chart.owner, chart.dtype, observation.example, **how)
            outputs = again.reply.outputs if again is not None else ()
            chart.steady[key] = all(
                np.array_equal(output, observation.reply.outputs[-1], equal_nan=True)
                for output in outputs
            )
        return not chart.steady[key]

    def _kept(self, chart: Chart, observation: Observation) -> tuple[str, ...]:
        """Arguments of another call that explain a wrong answer, where most others are like it."""
        key = id(observation.example)
        if key not in chart.kept:
            charts = [c for (name, _), c in self._charts.items() if name == chart.owner.name]
            others = [o.example for c in charts for o in c.observations]
            names = stale_arguments(chart.owner, observation, others)
            more = [
                o for o in chart.wrong if o.wrong_value and o.example is not observation.example
            ]
            more = sorted(more, key=lambda o: o.size)[:AS_WELL]
            alike = [bool(stale_arguments(chart.owner, o, others)) for o in more] if names else []
            if 2 * sum(alike) < len(alike):
                names = ()
            chart.kept[key] = names
        return chart.kept[key]

    # ------------------------------------------------------------ describing

    def _seen(self, chart: Chart, failing: Observation | None) -> list[Observation]:
        """The wrong answers that a description is about."""
        return chart.wrong or ([failing] if failing is not None else [])

    def _where(self, chart: Chart, failing: Observation | None) -> str:
        bad = chart.wrong
        if failing is not None and all(o.example is not failing.example for o in bad):
            bad = [*bad, failing]
        return condition(bad, chart.right)


def _typical(observations: Sequence[Observation]) -> Observation:
    """Neither the smallest, on which chance hides, nor a large one."""
    return sorted(observations, key=lambda o: o.size)[len(observations) // 2]


def _numbers(value: Any) -> Any:
    """An argument of a definition as one of a call."""
    if isinstance(value, Array):
        return np.asarray(value.value).astype(value.format.numpy)
    if isinstance(value, Mapping):
        return {key: _numbers(entry) for key, entry in value.items()}
    return value


def _complete(owner: Component, example: Example) -> bool:
    """Whether the example holds the arguments of the adapter (a law may hold other things)."""
    return set(owner.cases[0].arguments(owner.cases[0].dtypes[0])) >= set(example.arguments)
