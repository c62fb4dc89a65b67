"""Candidates written in a test, asked and explained as in a run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import corpus
import torch

from conformance.candidate.inprocess import local_caller
from conformance.candidate.messages import Call, ModuleCall, Outcome, Reply
from conformance.diagnosis.doctor import Doctor
from conformance.golden.load import GoldenStore, fixtures_folder
from conformance.report import Diagnosis
from conformance.spec import Level, component_spec
from conformance.suite.check import Check, checks, included
from conformance.suite.failure import CheckResult
from conformance.suite.grader import Context
from conformance.suite.profile import PROFILE
from conformance.suite.run import run_check

parts = corpus.module("parts")
adapting = corpus.module("adapting")

STORE = GoldenStore(fixtures_folder())


class Counting:
    """A caller that counts what it is asked."""

    def __init__(self, functions: dict[str, Callable[..., Any]]) -> None:
        self.calls = 0
        self._caller = local_caller(functions)

    def call(self, call: Call | ModuleCall) -> Reply:
        """The reply to one call."""
        self.calls += 1
        return self._caller.call(call)


@dataclass(frozen=True)
class Failure:
    """A check that was not passed, and what is said about it."""

    check: Check
    result: CheckResult
    diagnosis: Diagnosis | None


class Candidate:
    """Functions by component, with a doctor of their own."""

    def __init__(self, **functions: Callable[..., Any]) -> None:
        torch.set_num_threads(1)
        named = {component_spec(name).function: by for name, by in functions.items()}
        self.caller = Counting(named)
        self.context = Context(self.caller, PROFILE["quick"], golden=STORE)
        self.doctor = Doctor(self.caller, STORE)

    def results(
        self, component: str, requirement: str = "", profile: str = "quick"
    ) -> Iterator[tuple[Check, CheckResult]]:
        """How the checks of the adapter function end, of all that a run of that profile asks."""
        for check in checks(component):
            if check.module or check.requirement.level is Level.MAY:
                continue
            if requirement in ("", check.requirement.id) and included(check.profile, profile):
                yield check, run_check(check, self.context)

    def failures(
        self, component: str, requirement: str = "", profile: str = "quick"
    ) -> Iterator[Failure]:
        """The checks that are not passed, each explained before the next is run."""
        for check, result in self.results(component, requirement, profile):
            if result.outcome is not Outcome.PASSED:
                yield Failure(check, result, self.doctor.explain(check, result))

    def diagnosis(self, component: str, requirement: str = "") -> Diagnosis:
        """What is said about the first failed check about which anything is said."""
        for failure in self.failures(component, requirement):
            if failure.diagnosis is not None:
                return failure.diagnosis
        raise AssertionError("nothing is said")
