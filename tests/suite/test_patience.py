"""When a component that hangs or crashes is not asked any more."""

from __future__ import annotations

from conformance.candidate.messages import Outcome
from conformance.session import PATIENCE, Losses


def test_what_hangs_in_checks_that_do_not_count_fails_none_that_do() -> None:
    losses = Losses()
    for _ in range(PATIENCE + 3):
        losses.add(Outcome.TIMED_OUT, binding=False)
    assert losses.hopeless(binding=False)
    assert not losses.hopeless(binding=True)


def test_a_component_whose_verdict_is_clear_is_not_asked_for_ever() -> None:
    losses = Losses()
    for _ in range(PATIENCE):
        assert not losses.hopeless(binding=True)
        losses.add(Outcome.CRASHED, binding=True)
    assert losses.hopeless(binding=True)
    assert losses.hopeless(binding=False)
    assert losses.last is Outcome.CRASHED
