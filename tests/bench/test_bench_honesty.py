"""What speaks against a time, on made-up samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.bench.check import against_reference, peek_differs
from conformance.bench.honesty import MOST_PAIRS, Crossed, Kind, Watched, flags
from conformance.bench.process import CANDIDATE, REFERENCE, Sample
from conformance.bench.timing import Series


def sample(seconds: float, judge: float | None = None, **more: Any) -> Sample:
    """A sample of ten calls, the request of which took 0.2 ms besides."""
    values: dict[str, Any] = {
        "seconds": seconds,
        "calls": 10,
        "processor": seconds,
        "judge_seconds": seconds + 2e-4 if judge is None else judge,
        "peek": None,
        "places": (),
        "threads": 1,
        "replaced": (),
    }
    return Sample(**{**values, **more})


def series(candidate: Sample, reference: Sample, blocks: int = 20) -> Series:
    """Blocks that are all alike."""
    block = {CANDIDATE: (candidate, candidate), REFERENCE: (reference, reference)}
    return Series([block] * blocks, 10, {CANDIDATE: 10, REFERENCE: 10})


def seen(**more: Any) -> Watched:
    """Nothing that speaks against a candidate, and what is given."""
    honest: dict[str, Any] = {"threads": 1, "clean": [1e-4], "wall": 1.0, "busy": 0.9}
    return Watched(**{**honest, **more})


FAIR = sample(1e-3)


def kinds(candidate: Sample, watched: Watched, reference: Sample = FAIR) -> list[Kind]:
    return [flag.kind for flag in flags(series(candidate, reference), watched)]


def test_nothing_speaks_against_an_honest_candidate() -> None:
    crossed = Crossed(5, [(7e-4, 1.2e-3)] * 3)
    assert kinds(FAIR, seen(crossed=crossed, floor=1e-6)) == []


@pytest.mark.parametrize(
    ("candidate", "watched", "kind"),
    [
        (FAIR, {"wrong": ["2 of 10 calls"]}, Kind.WRONG),
        (FAIR, {"late": 1}, Kind.LATE),
        (sample(1e-3, replaced=("time.time",)), {}, Kind.REPLACED),
        (sample(1e-4, judge=1e-3), {}, Kind.CLOCK),
        (FAIR, {"crossed": Crossed(5, [(1e-3, 3e-3)] * MOST_PAIRS)}, Kind.CLOCK),
        (sample(1e-3, processor=2e-3), {}, Kind.PROCESSORS),
        (sample(1e-3, threads=2), {}, Kind.PROCESSORS),
        (FAIR, {"busy": 1.9}, Kind.PROCESSORS),
        (FAIR, {"children": 1}, Kind.PROCESSORS),
        (FAIR, {"clean": [1e-5]}, Kind.DISTURBED),
        (FAIR, {"floor": 1e-3}, Kind.FLOOR),
    ],
)
def test_each_by_itself(candidate: Sample, watched: dict[str, Any], kind: Kind) -> None:
    assert kinds(candidate, seen(**watched)) == [kind]


def test_a_busy_machine_is_nobody_s_fault() -> None:
    """Half of the requests take long, whoever is asked."""
    generator = np.random.default_rng(1)

    def noisy() -> Sample:
        return sample(1e-3, judge=1.2e-3 + 5e-3 * float(generator.random() < 0.5))

    blocks = [{CANDIDATE: (noisy(), noisy()), REFERENCE: (noisy(), noisy())} for _ in range(20)]
    found = flags(Series(blocks, 10, {CANDIDATE: 10, REFERENCE: 10}), seen())
    assert found == []
    one_fits = Crossed(5, [(1e-3, 9e-3)] * 9 + [(1e-3, 1.5e-3)])
    assert one_fits.enough(1e-4)
    assert kinds(FAIR, seen(crossed=one_fits)) == []


def test_results_are_compared_by_products_that_nobody_knew() -> None:
    right = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    assert against_reference(right + 1e-6, right, "float32") == ""
    stale = right.copy()
    stale[2, 0] = 1.0
    assert "1 of 3 calls" in against_reference(stale, right, "float32")
    assert against_reference(right[:2], right, "float32")


def test_an_output_that_changes_later_is_noticed() -> None:
    output = np.arange(10, dtype=np.float32)
    assert not peek_differs(np.array([0.0, 5.0]), (0.0, 0.5), output)
    assert peek_differs(np.array([0.0, 4.0]), (0.0, 0.5), output)
    assert peek_differs(None, (0.0,), output)
    assert not peek_differs(np.array([np.nan]), (0.0,), np.array([np.nan]))
