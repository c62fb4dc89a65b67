"""Whether the answer to one stored input is right by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.candidate.messages import Outcome, Reply
from conformance.counterexample.form import Counterexample
from conformance.numerics.compare import Difference, compare
from conformance.numerics.ensemble import Bound


@dataclass(frozen=True)
class Judgement:
    """What came of one input: `problem` is empty when it is right.

    `what` was compared with `bound`, and how it differs; of several right values the one with the
    least room left. Without a bound nothing could be compared.
    """

    problem: str = ""
    what: str = "the result"
    bound: Bound | None = None
    got: Any = None
    difference: Difference = field(default_factory=Difference)

    @property
    def open(self) -> bool:
        """An answer came, and nobody knows what would be right."""
        return not self.problem and self.bound is None


def judge(asked: Counterexample, reply: Reply) -> Judgement:
    """The answer against the expected values, and against what the check looked at beside them."""
    if reply.outcome is not Outcome.PASSED:
        return Judgement(f"{reply.outcome}: {reply.message}")
    seen = list(_compared(asked, reply))
    wrong = next((one for one in seen if one.problem), None)
    if wrong is not None:
        return wrong
    closest = max(seen, key=lambda one: one.difference.margin or 0.0, default=Judgement())
    kind, *names = asked.about or ("",)
    problem = FACTS[kind](asked, reply, names) if kind in FACTS else ""
    if problem:
        return Judgement(problem, bound=closest.bound, got=closest.got)
    return closest


def _compared(asked: Counterexample, reply: Reply) -> Iterator[Judgement]:
    if asked.bounds is None:
        return
    for number, output in enumerate(reply.outputs, start=1):
        what = "the result" if number == 1 else f"the result of call {number}"
        yield _one(what, asked.bounds.result, output)
    passes = {"": reply.gradients, "second ": reply.second_gradients}
    for which, gradients in passes.items():
        for name in asked.wrt if gradients or not which else ():
            what = f"the {which}gradient with respect to {name}"
            yield _one(what, asked.bounds.gradients[name], gradients.get(name))


def _one(what: str, bound: Bound, got: Any) -> Judgement:
    if got is None:
        return Judgement(f"{what} is missing: nothing of the result reaches it", what, bound)
    difference = compare(got, bound, what)
    return Judgement(difference.problem, what, bound, got, difference)


def _dtype(asked: Counterexample, reply: Reply, names: list[str]) -> str:
    wrong = reply.dtype != asked.dtype
    return f"the result is {reply.dtype} for {asked.dtype} input" if wrong else ""


def _changed(asked: Counterexample, reply: Reply, names: list[str]) -> str:
    found = [name for name in reply.modified if name.partition(".")[0] in names]
    return f"the call changed {', '.join(found)}" if found else ""


def _dictionary(asked: Counterexample, reply: Reply, names: list[str]) -> str:
    found = [name for name in reply.modified if name.partition("[")[0] in names and "[" in name]
    return f"the call changed the dictionary it was given: {', '.join(found)}" if found else ""


def _shared(asked: Counterexample, reply: Reply, names: list[str]) -> str:
    found = [name for name in reply.aliased if name.partition(".")[0] in names]
    return f"the result shares memory with {', '.join(found)}" if found else ""


def _overwritten(asked: Counterexample, reply: Reply, names: list[str]) -> str:
    return "a second call changed the result of the first" if reply.overwritten else ""


FACTS: Mapping[str, Callable[[Counterexample, Reply, list[str]], str]] = {
    "dtype": _dtype,
    "changed": _changed,
    "dictionary": _dictionary,
    "shared": _shared,
    "overwritten": _overwritten,
}
"""First word of `about` -> the sentence that is true of a wrong reply, empty for a right one.

The further words are the arguments concerned.
"""
