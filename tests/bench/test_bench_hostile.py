"""Candidates that want to look fast are found out, each through a real process."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.bench.honesty import Kind
from conformance.bench.results import ABSENT, FLAGGED, MEASURED
from conformance.bench.workload import BOTH


def flagged(row: Any, *kinds: Kind) -> bool:
    """It is not believed for one of these reasons, and no ratio of it can be read."""
    assert row.status == FLAGGED, row.reason
    assert row.reason
    assert not row.ratios
    assert not row.achieved
    return bool({*kinds} & {flag.kind for flag in row.flags})


@pytest.mark.parametrize("component", ["silu", "rotation", "softmax", "linear"])
def test_what_is_remembered_skipped_or_overwritten_is_wrong(lab: Any, component: str) -> None:
    """By shape, by place and content, one buffer for all, every second call."""
    assert flagged(lab.row("tricks", component), Kind.WRONG)


def test_work_left_to_a_thread_comes_too_late(lab: Any) -> None:
    """It has changed when it is looked at again, or is still wrong then."""
    assert flagged(lab.row("tricks", "rmsnorm"), Kind.LATE, Kind.WRONG)


def test_a_tensor_of_its_own_class_is_not_measured(lab: Any) -> None:
    row = lab.row("tricks", "glu")
    assert row.status == ABSENT
    assert "Later instead of a plain one" in row.reason


def test_more_threads_than_everybody_else(lab: Any) -> None:
    assert flagged(lab.row("tricks", "swiglu"), Kind.PROCESSORS)


def test_an_honest_component_beside_them_is_measured(lab: Any) -> None:
    row = lab.row("tricks", "embedding")
    assert row.status == MEASURED, row.reason
    assert set(row.ratios) == {"reference", "fused"}
    assert row.screened >= 3
    assert row.verified >= 1


def test_the_same_tricks_are_right_where_they_are_not_played(lab: Any) -> None:
    row = lab.row("tricks", "softmax", BOTH)
    assert row.status == MEASURED, row.reason


def test_a_replaced_clock_changes_nothing_and_is_told(lab: Any) -> None:
    row = lab.row("clocks", "silu")
    assert flagged(row, Kind.REPLACED)
    assert "time.perf_counter" in row.reason


def test_the_clock_of_the_measurement_itself_is_not_the_only_one(lab: Any) -> None:
    assert flagged(lab.row("clocks", "softmax"), Kind.CLOCK)


def test_a_comparison_that_was_slowed_down(lab: Any) -> None:
    assert flagged(lab.row("slows_others", "silu"), Kind.DISTURBED)


def test_a_stub_is_left_out_with_the_reason(lab: Any) -> None:
    row = lab.row("clocks", "rope")
    assert row.status == ABSENT
    assert row.reason.startswith("not implemented")
