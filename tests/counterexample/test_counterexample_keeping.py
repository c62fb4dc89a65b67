"""What a run keeps of failed checks, and that it is wrong again when it is asked again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.candidate.inprocess import local_caller
from conformance.candidate.messages import Outcome
from conformance.counterexample import keep
from conformance.counterexample.form import Counterexample, from_head
from conformance.counterexample.head import read_head
from conformance.counterexample.judge import judge
from conformance.counterexample.keep import Keeper, file_name
from conformance.options import GradeOptions
from conformance.suite.check import Check, checks
from conformance.suite.component import component
from conformance.suite.failure import CheckResult
from conformance.suite.grader import Context
from conformance.suite.profile import PROFILE
from conformance.suite.run import run_check
from reference_impl import adapters


@dataclass
class Run:
    """A wrong candidate in this process, and the folder where its counterexamples go."""

    cwd: Path
    change: Callable[..., Any]
    options: GradeOptions

    def context(self, name: str) -> Context:
        """A run of the quick profile against the changed function of one component."""
        function = component(name).function
        right = getattr(adapters, function)
        changed = {function: lambda **arguments: self.change(right, arguments)}
        return Context(local_caller(changed), PROFILE["quick"])

    def keep(self, check: Check, result: CheckResult, context: Context) -> dict[str, str]:
        return Keeper(self.options, self.cwd / "out", self.cwd).keep(check, result, context)

    def failed(self, name: str) -> list[tuple[Check, CheckResult, Context]]:
        """Every check of the component that did not pass."""
        context = self.context(name)
        found = [(check, run_check(check, context), context) for check in _quick(name)]
        return [one for one in found if one[1].outcome is not Outcome.PASSED]


def _quick(name: str) -> list[Check]:
    return [check for check in checks(name) if check.profile == "quick" and not check.module]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Run]:
    def made(change: Callable[..., Any], **options: Any) -> Run:
        return Run(tmp_path, change, GradeOptions("my folder", **options))

    return made


def _read(path: Path) -> Counterexample:
    return from_head(read_head(path))


def half_as_much_again(right: Any, arguments: Any) -> Any:
    return 1.5 * right(**arguments)


def nothing_for_batches(right: Any, arguments: Any) -> Any:
    if any(getattr(value, "ndim", 0) > 2 for value in arguments.values()):
        raise ValueError("too many axes")
    return right(**arguments)


WRONG = [
    *((half_as_much_again, name) for name in ("silu", "rope", "embedding", "next_token")),
    *((nothing_for_batches, name) for name in ("silu", "rope", "embedding", "transformer_block")),
]


@pytest.mark.parametrize(("change", "name"), WRONG)
def test_what_fails_is_wrong_again(change: Any, name: str, run: Any) -> None:
    mine = run(change, seed=7)
    failed = mine.failed(name)
    assert failed
    for check, result, context in failed:
        details = mine.keep(check, result, context)
        if result.evidence.example is None:
            assert not details
            continue
        path = mine.cwd / details["counterexample"]
        assert details["counterexample_replay"] == f"conformance replay {details['counterexample']}"
        assert path.parent == mine.cwd / "out" / "counterexamples"
        found = _read(path)
        assert (found.check, found.requirement) == (check.id, check.requirement.id)
        assert (found.impl, found.options) == ("my folder", {"seed": 7})
        assert (found.outcome, found.message) == (str(result.outcome), result.message[:4000])
        assert found.bounds is not None, "the definition knows what is right"
        again = judge(found, context.caller.call(found.call))
        assert bool(again.problem) or not found.alone, check.id
    kept = {path.name for path in (mine.cwd / "out" / "counterexamples").iterdir()}
    assert kept == {file_name(c) for c, result, _ in failed if result.evidence.example is not None}


def test_most_failures_show_in_one_call(run: Any) -> None:
    mine = run(half_as_much_again)
    found = []
    for check, result, context in mine.failed("rope"):
        details = mine.keep(check, result, context)
        found.append(_read(mine.cwd / details["counterexample"]).alone)
    assert sum(found) > len(found) * 0.7


def test_the_right_answer_is_right(run: Any) -> None:
    mine = run(half_as_much_again)
    right = local_caller(adapters)
    for check, result, context in mine.failed("scaled_dot_product_attention"):
        found = _read(mine.cwd / mine.keep(check, result, context)["counterexample"])
        judgement = judge(found, right.call(found.call))
        assert not judgement.problem, check.id
        assert not judgement.open


def in_float32(right: Any, arguments: Any) -> Any:
    return right(**arguments).float()


def changes_its_input(right: Any, arguments: Any) -> Any:
    result = right(**arguments).clone()
    arguments["in_features"].detach().mul_(2.0)
    return result


def shares_its_input(right: Any, arguments: Any) -> Any:
    arguments["in_features"].detach().copy_(right(**arguments).detach())
    return arguments["in_features"]


FACTS = {
    "half_precision[bfloat16]": (in_float32, "the result is float32 for bfloat16 input"),
    "input_unchanged[float32]": (changes_its_input, "the call changed in_features"),
    "result_is_fresh[float32]": (shares_its_input, "the result shares memory with in_features"),
}


@pytest.mark.parametrize("name", FACTS)
def test_what_is_no_value_is_judged_as_well(name: str, run: Any) -> None:
    change, words = FACTS[name]
    mine = run(change)
    ((check, result, context),) = [
        one for one in mine.failed("silu") if one[0].id == f"silu::{name}"
    ]
    found = _read(mine.cwd / mine.keep(check, result, context)["counterexample"])
    assert found.alone
    assert judge(found, context.caller.call(found.call)).problem == words
    assert not judge(found, local_caller(adapters).call(found.call)).problem


@pytest.fixture
def failure(run: Any) -> Any:
    mine = run(half_as_much_again)
    return mine, mine.failed("silu")[0]


def test_a_large_input_is_not_kept_and_the_report_says_so(failure: Any, monkeypatch: Any) -> None:
    mine, (check, result, context) = failure
    monkeypatch.setattr(keep, "LARGEST", 3)
    details = mine.keep(check, result, context)
    assert details == {"counterexample_note": "not stored: the input has more than 3 numbers"}
    assert not (mine.cwd / "out").exists()


def test_a_folder_that_cannot_be_written_takes_nothing_from_the_verdict(failure: Any) -> None:
    mine, (check, result, context) = failure
    (mine.cwd / "out").write_text("a file", "utf-8")
    details = mine.keep(check, result, context)
    assert details["counterexample_note"].startswith("not stored: cannot write the counterexample")


def test_what_is_no_input_of_the_function_is_not_kept(failure: Any) -> None:
    mine, (check, result, context) = failure
    example = replace(result.evidence.example, arguments={"in_features": np.ones(2), "more": 1})
    other = replace(result, evidence=replace(result.evidence, example=example))
    assert "not the input of one call" in mine.keep(check, other, context)["counterexample_note"]
    assert mine.keep(replace(check, module="SiLU"), result, context) == {}
    assert mine.keep(check, replace(result, outcome=Outcome.CRASHED), context) == {}


def test_paths_are_quoted_and_seen_from_the_folder_of_the_run(failure: Any) -> None:
    mine, (check, result, context) = failure
    keeper = Keeper(mine.options, mine.cwd / "-my reports", mine.cwd)
    details = keeper.keep(check, result, context)
    path = f"./-my reports/counterexamples/{file_name(check)}"
    assert details["counterexample"] == path
    assert details["counterexample_replay"] == f"conformance replay '{path}'"
