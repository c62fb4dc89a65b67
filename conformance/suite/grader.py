"""The grader: asks a candidate, compares with the definition, and keeps the evidence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from conformance.candidate.messages import Call, ModuleCall, Outcome, Reply
from conformance.golden.load import GoldenStore
from conformance.hidden import HiddenSeed
from conformance.numerics import ensemble
from conformance.numerics.arithmetic import Arithmetic
from conformance.numerics.array import Array
from conformance.numerics.compare import Difference, compare
from conformance.numerics.draw import Draw
from conformance.numerics.dtypes import FLOAT64, FORMATS, Format, format_of, is_float
from conformance.numerics.ensemble import Bound, Bounds, Question
from conformance.suite.case import Arguments, Case, cast_arguments, describe, size
from conformance.suite.component import Component
from conformance.suite.failure import CheckFailure, Evidence
from conformance.suite.profile import PROFILE, Profile

FATAL = (Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY)
"""Outcomes after which the same question is not asked again to find a smaller input."""

UNMEASURED = "cannot be measured: not both are finite numbers"

HINT = {
    Outcome.NOT_IMPLEMENTED: "says it is not implemented for this input",
    Outcome.FAILED: "did not return one dense tensor of floats",
}


class Caller(Protocol):
    """Who answers: a worker process, or a candidate in this process for tests."""

    def call(self, call: Call | ModuleCall) -> Reply:
        """Answer one call; never raises for anything the candidate does."""
        ...


@dataclass
class Context:
    """What a whole run shares: who answers, how much is asked, from which seed."""

    caller: Caller
    profile: Profile
    seed: int = 0
    golden: GoldenStore = field(default_factory=GoldenStore)
    device: str = "cpu"
    deadline: float | None = None
    hidden: HiddenSeed | None = None

    def order(self, what: object, count: int) -> list[int]:
        """The numbers below `count` in an order that the seeds decide, another for each `what`."""
        return [int(n) for n in self.draw("order", what).permutation(count)]

    def draw(self, *key: object) -> Draw:
        """A stream of random numbers that the seeds decide, the hidden one too if there is one."""
        return Draw(*key, self.seed, self.hidden.seed(0) if self.hidden else "")

    def effort(self) -> Profile:
        """How much to ask now: once the time of the run is used up, as little as `quick` does.

        No check is left out, so that a bounded run still has a verdict.
        """
        late = self.deadline is not None and time.monotonic() > self.deadline
        return PROFILE["quick"] if late else self.profile


@dataclass(frozen=True)
class Example:
    """Concrete arguments, and where they come from."""

    arguments: Arguments
    case: str
    why: str
    wrt: tuple[str, ...] = ()
    cotangent: Any = None
    bounds: Bounds | None = None
    hidden: bool = False


class Grader:
    """Grades one component in one dtype for one check; checks get it as their argument."""

    def __init__(self, component: Component, dtype: str, context: Context, key: str = "") -> None:
        self.component = component
        self.dtype = dtype
        self.context = context
        self.key = key
        self.margin: float | None = None
        self.notes: list[str] = []
        self._fatal: CheckFailure | None = None
        self._how: dict[str, Any] = {}
        self._wrt: tuple[str, ...] = ()

    # ------------------------------------------------------------ asking

    def ask(self, arguments: Arguments, **how: Any) -> Reply:
        """Send one call to the candidate, whatever comes back."""
        self._how = {k: v for k, v in how.items() if k not in ("wrt", "cotangent")}
        self._wrt = tuple(how.get("wrt", ()))
        return self.context.caller.call(
            Call(function=self.component.function, arguments=arguments, **how)
        )

    def answer(self, example: Example, **how: Any) -> Reply:
        """Send one call; CheckFailure when no tensor comes back."""
        if self._fatal is not None:
            raise self._fatal
        reply = self.ask(example.arguments, **how)
        if reply.outcome is not Outcome.PASSED:
            failure = self._no_answer(reply, example)
            if reply.outcome in FATAL:
                self._fatal = failure
            raise failure
        return reply

    def _no_answer(self, reply: Reply, example: Example) -> CheckFailure:
        outcome = reply.outcome
        message = reply.message
        if outcome is Outcome.NOT_IMPLEMENTED:  # the component is implemented, this input is not
            outcome, message = Outcome.RAISED, f"{HINT[reply.outcome]}: {reply.message}"
        return CheckFailure(outcome, message, self.evidence(example, reply))

    # ------------------------------------------------------------ examples

    def examples(self, case: Case, dtype: str | None = None) -> Iterator[Example]:
        """The golden draw of a case, then as many fresh draws as the profile asks for."""
        for seed in self._seeds():
            yield self.example(case, dtype, seed)

    def _seeds(self) -> list[int | str]:
        """Of the golden draw, of fresh ones, and of those that nobody has seen, if there are any.

        The latter are drawn in every profile, and also when the time of the run is used up.
        """
        fresh = range(self.effort().fresh_draws)
        public = [1 + self.context.seed * 1000 + draw for draw in fresh]
        hidden = self.context.hidden
        unseen = [hidden.seed(1 + draw) for draw in fresh or (0,)] if hidden else []
        return [0, *public, *unseen]

    def in_some_order(self, cases: Sequence[Case]) -> Iterator[tuple[int, Example]]:
        """Every draw of every case with its place in the list, in an order of the seeds."""
        wanted = [(case, seed) for case in cases for seed in self._seeds()]
        for place in self.context.order(self.key, len(wanted)):
            case, seed = wanted[place]
            if seed == 0 or isinstance(seed, str) or self.effort().fresh_draws:
                yield place, self.example(case, seed=seed)

    def example(self, case: Case, dtype: str | None = None, seed: int | str = 0) -> Example:
        """One draw of a case; its bounds are worked out when they are needed.

        Draw 0 comes with its bounds where it is stored as a golden vector. Text is a hidden seed.
        """
        dtype = dtype or self.dtype
        if seed == 0:
            stored = self.context.golden.get(self.component.name, case.name, dtype)
            if stored is not None:
                return Example(
                    stored.arguments, case.name, case.why, case.wrt, stored.cotangent, stored.bounds
                )
        hidden = isinstance(seed, str)
        return Example(case.arguments(dtype, seed), case.name, case.why, case.wrt, hidden=hidden)

    def made(self, arguments: Arguments, case: str, why: str = "", **more: Any) -> Example:
        """An example made on the spot; float64 arrays are rounded to the dtype that is graded."""
        return Example(cast_arguments(arguments, self.dtype), case, why, **more)

    def bounded(self, example: Example, working: Format | None = None) -> Example:
        """The example with cotangent, exact values and tolerances."""
        if example.bounds is not None and working is None:
            return example
        cotangent = example.cotangent
        if example.wrt and cotangent is None:
            cotangent = self.cotangent(example)
        bounds = ensemble.bounds(self._question(example, cotangent, working))
        return replace(example, cotangent=cotangent, bounds=bounds)

    def cotangent(self, example: Example) -> Any:
        """A random cotangent of the result's shape, exact in every format."""
        return cotangent_for(self.component, example.arguments, example.case)

    def _question(self, example: Example, cotangent: Any, working: Format | None) -> Question:
        return Question(
            oracle=self.component.oracle,
            arguments=example.arguments,
            working=working,
            wrt=example.wrt,
            cotangent=cotangent,
            pooled=self.component.pooled,
        )

    # ------------------------------------------------------------ comparing

    def matches_definition(
        self,
        *cases: Case,
        working: Format | None = None,
        may_decline: bool = False,
        **how: Any,
    ) -> None:
        """Every draw of every case is answered within tolerance, gradients included.

        `working` allows the accuracy of a narrower format than that of the arguments. With
        `may_decline` an exception is noted and not failed (another requirement judges it). The
        failure that is raised is that of the smallest failing input.
        """
        failures: list[tuple[tuple[bool, int, int], CheckFailure]] = []
        answered = 0
        for place, example in self.in_some_order(cases):
            try:
                self.example_matches(example, working=working, **how)
                answered += 1
            except CheckFailure as failure:
                if may_decline and failure.outcome is Outcome.RAISED:
                    reason = "an exception" if example.hidden else failure.message
                    self.note(f"{example.case}: no answer in {self.dtype} ({reason})")
                    continue
                # one that everybody may see tells more
                rank = failure.evidence.hidden, failure.evidence.size, place
                failures.append((rank, failure))
                if failure.outcome in FATAL:
                    raise
        if failures:
            raise min(failures, key=lambda ranked: ranked[0])[1]
        if not answered and not may_decline:
            raise AssertionError("a value check without any case cannot fail")

    def example_matches(self, example: Example, working: Format | None = None, **how: Any) -> Reply:
        """One example is answered within tolerance; returns the answer."""
        example = self.bounded(example, working)
        assert example.bounds is not None
        reply = self.answer(example, wrt=example.wrt, cotangent=example.cotangent, **how)
        for number, output in enumerate(reply.outputs):
            what = "the result" if number == 0 else f"the result of call {number + 1}"
            self.within(output, example.bounds.result, example, reply, what)
        self.gradients_match(example, reply)
        return reply

    def gradients_match(self, example: Example, reply: Reply) -> None:
        """Every gradient that was asked for is within tolerance."""
        assert example.bounds is not None
        for name in example.wrt:
            got = reply.gradients.get(name)
            bound = example.bounds.gradients[name]
            what = f"the gradient with respect to {name}"
            if got is None:
                raise CheckFailure(
                    Outcome.FAILED,
                    f"no gradient reaches {name}: the graph is cut between it and the result",
                    self.evidence(example, reply),
                )
            self.within(got, bound, example, reply, what)

    def within(
        self, got: Any, bound: Bound, example: Example, reply: Reply | None, what: str
    ) -> None:
        """An array is within its bound; otherwise CheckFailure with the worst entry."""
        difference = compare(got, bound, what)
        if difference.margin is not None:
            self.margin = max(self.margin or 0.0, difference.margin)
        if difference.problem:
            evidence = self.evidence(example, reply, difference, got, bound)
            raise CheckFailure(Outcome.FAILED, _sentence(difference), evidence, difference.margin)

    def holds(
        self,
        condition: bool,
        message: str,
        example: Example,
        reply: Reply,
        about: tuple[str, ...] = (),
    ) -> None:
        """CheckFailure with that message unless the condition holds.

        `about` names a fact that any single reply shows, see `counterexample.judge`.
        """
        if not condition:
            evidence = replace(self.evidence(example, reply), about=about)
            raise CheckFailure(Outcome.FAILED, message, evidence)

    def note(self, text: str) -> None:
        """Something a reader of the report should know although nothing failed."""
        if text not in self.notes:
            self.notes.append(text)

    def evidence(
        self,
        example: Example,
        reply: Reply | None = None,
        difference: Difference | None = None,
        got: Any = None,
        bound: Bound | None = None,
    ) -> Evidence:
        """What a reader needs to see, as text."""
        found = difference or Difference()
        return Evidence(
            case=example.case,
            why=example.why,
            inputs=describe(example.arguments),
            expected=_shown(found.expected, bound.expected if bound else None, found.index),
            got=_shown(found.got, got, found.index),
            where=str(list(found.index)) if found.index is not None else "",
            error=UNMEASURED if found.special else found.error,
            tolerance=found.tolerance,
            printed=reply.printed if reply else "",
            traceback=reply.traceback if reply else "",
            size=size(example.arguments),
            example=example,
            reply=reply,
            how=self._how,
            wrt=self._wrt,
            hidden=example.hidden,
        )

    # ------------------------------------------------------------ laws

    def for_all(self, strategy: Any, test: Callable[[Any], None]) -> None:
        """`test` holds for every example of a Hypothesis strategy; shrinks what fails."""
        from conformance.suite.explore import explore

        explore(strategy, test, self.effort().examples, f"{self.key}/{self.context.seed}")

    def effort(self) -> Profile:
        """How much to ask now; noted where that is less than the profile says."""
        effort = self.context.effort()
        if effort.name != self.context.profile.name:
            self.note(f"asked as in the {effort.name} profile: the time of the run was used up")
        return effort

    def law(
        self,
        example: Example,
        left: Callable[[Subject], Array],
        right: Callable[[Subject], Array],
        claim: str,
        anchored: bool = False,
    ) -> None:
        """`left` equals `right` for the candidate, up to the rounding of correct implementations.

        Both sides are functions of a `Subject`: the component, applied to arguments. The tolerance
        is what the two sides spread when the definition itself is evaluated in perturbed and
        honestly rounded arithmetic. Zeros satisfy many laws; `anchored` also holds `left` against
        the definition, so that nothing passes that only keeps the law.
        """
        candidate = Subject(lambda arguments: self._applied(example, arguments), Arithmetic())
        got_left, got_right = left(candidate).value, right(candidate).value
        exact, tolerance_left = ensemble.law_tolerance(lambda a: self._side(left, a))
        _, tolerance_right = ensemble.law_tolerance(lambda a: self._side(right, a))
        shape = np.broadcast_shapes(got_left.shape, got_right.shape)
        tiny = FORMATS[self.dtype].tiny
        bound = Bound(
            np.broadcast_to(got_right, shape),
            np.broadcast_to(tolerance_left + tolerance_right + tiny, shape),
        )
        got = np.broadcast_to(got_left, shape)
        self.within(got, bound, example, None, claim)
        if anchored:
            self.within(got_left, Bound(exact, tolerance_left + tiny), example, None, "the result")

    def _side(self, side: Callable[[Subject], Array], arithmetic: Arithmetic) -> Any:
        def apply(arguments: Arguments) -> Array:
            wrapped = wrap(arguments, arithmetic)
            return ensemble.apply_oracle(self.component.oracle, wrapped, arithmetic)

        return np.asarray(side(Subject(apply, arithmetic)).value)

    def _applied(self, example: Example, arguments: Arguments) -> Array:
        reply = self.answer(replace(example, arguments=arguments))
        output = reply.outputs[0]
        arithmetic = Arithmetic()
        wrapped = wrap(arguments, arithmetic)
        exact = ensemble.apply_oracle(self.component.oracle, wrapped, arithmetic).value
        # Any finite value of the right shape will do here: the law itself judges it.
        difference = compare(output, Bound(exact, np.full(exact.shape, np.inf)))
        if difference.problem:
            raise CheckFailure(
                Outcome.FAILED, difference.problem, self.evidence(example, reply, difference)
            )
        return Array(output.astype(np.float64), FLOAT64, Arithmetic())


class Subject:
    """What laws are written about: the candidate, or the definition in some arithmetic."""

    def __init__(self, apply: Callable[[Arguments], Array], arithmetic: Arithmetic) -> None:
        self._apply = apply
        self._arithmetic = arithmetic

    def __call__(self, **arguments: Any) -> Array:
        """The component's result for these arguments (NumPy arrays and numbers)."""
        return self._apply(arguments)

    def array(self, value: Any) -> Array:
        """An exact constant to compute with."""
        return Array(np.asarray(value).astype(np.float64), FLOAT64, self._arithmetic)


def wrap(arguments: Mapping[str, Any], arithmetic: Arithmetic) -> dict[str, Any]:
    """Float arrays as differentiable arrays of that arithmetic; everything else as it is."""

    def one(value: Any) -> Any:
        if isinstance(value, Mapping):
            return wrap(value, arithmetic)
        if is_float(value):
            return Array(value.astype(np.float64), format_of(value), arithmetic)
        return value

    return {name: one(value) for name, value in arguments.items()}


def cotangent_for(component: Component, arguments: Arguments, key: str) -> Any:
    """A reproducible cotangent of the result's shape: small multiples of 1/4, exact everywhere."""
    exact = Arithmetic()
    shape = ensemble.apply_oracle(component.oracle, wrap(arguments, exact), exact).shape
    return Draw("cotangent", component.name, key).integers(-8, 9, *shape).astype(np.float64) / 4


def _sentence(difference: Difference) -> str:
    text = difference.problem
    if difference.error is not None and difference.margin is not None and difference.tolerance:
        text += (
            f"; worst at {list(difference.index or ())}: expected {difference.expected:.7g}, "
            f"got {difference.got:.7g}, {difference.margin:.3g} times the tolerance "
            f"of {difference.tolerance:.2g}"
        )
    return text


def _shown(value: float | None, array: Any, index: tuple[int, ...] | None) -> str:
    """The worst entry and the row it stands in."""
    if value is None:
        return ""
    text = f"{value:.9g}"
    if array is None or not index:
        return text
    row = np.asarray(array[index[:-1]]).astype(np.float64).reshape(-1)
    numbers = ", ".join(f"{number:.6g}" for number in row[:8])
    more = ", ..." if row.size > 8 else ""
    return f"{text} in row [{numbers}{more}]"
