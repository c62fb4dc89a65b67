"""How much is asked: profiles, and what happens when the time of a run is used up."""

from __future__ import annotations

import time

import torch

from conformance.candidate.inprocess import local_caller
from conformance.suite.check import checks
from conformance.suite.grader import Context
from conformance.suite.profile import PROFILE
from conformance.suite.run import run_check


class Counting:
    """A caller that counts what it is asked."""

    def __init__(self) -> None:
        self.calls = 0
        self._caller = local_caller({"run_silu": _silu})

    def call(self, call):  # type: ignore[no-untyped-def]
        self.calls += 1
        return self._caller.call(call)


def _silu(in_features: torch.Tensor) -> torch.Tensor:
    return in_features * torch.sigmoid(in_features)


def _asked(profile: str, deadline: float | None = None) -> tuple[int, list[str]]:
    caller = Counting()
    context = Context(caller, PROFILE[profile], deadline=deadline)
    found = [run_check(check, context) for check in checks("silu") if check.profile == "quick"]
    assert {result.outcome for result in found} == {"passed"}
    return caller.calls, [note for result in found for note in result.notes]


def test_longer_profiles_ask_more() -> None:
    assert _asked("quick")[0] < _asked("standard")[0]


def test_when_the_time_is_used_up_every_check_still_runs_but_asks_little() -> None:
    calls, notes = _asked("thorough", deadline=time.monotonic() - 1)
    assert calls == _asked("quick")[0]
    assert any("time of the run was used up" in note for note in notes)
