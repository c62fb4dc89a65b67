"""Statistics on made-up series whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from conformance.bench import statistics
from conformance.bench.statistics import Interval


def times(
    generator: np.random.Generator, count: int, mean: float, burst: float = 0.0
) -> list[tuple[float, float]]:
    """Pairs around `mean` with 3 % noise; a share `burst` of them takes several times longer."""
    values = mean * np.exp(0.03 * generator.standard_normal((count, 2)))
    values *= np.where(generator.random((count, 2)) < burst, 4.0, 1.0)
    return [(float(a), float(b)) for a, b in values]


def covered(ratio: float, burst: float, runs: int = 60) -> float:
    """Share of runs whose interval contains the true ratio."""
    generator = np.random.default_rng(5)
    hits = 0
    for _ in range(runs):
        slow = times(generator, 40, ratio * 1e-3, burst)
        hits += statistics.ratio(slow, times(generator, 40, 1e-3, burst)).holds(ratio)
    return hits / runs


@pytest.mark.parametrize("burst", [0.0, 0.2])
def test_the_interval_of_a_thing_against_itself_holds_one(burst: float) -> None:
    assert covered(1.0, burst) >= 0.9


def test_a_ratio_is_found_whatever_disturbs_single_samples() -> None:
    assert covered(1.25, 0.2) >= 0.9
    generator = np.random.default_rng(1)
    found = statistics.ratio(times(generator, 60, 1.05), times(generator, 60, 1.0))
    assert found.low > 1.0
    assert found.width < 0.05


def test_drift_over_a_run_cancels() -> None:
    generator = np.random.default_rng(2)
    drift = np.linspace(1.0, 3.0, 60)
    first = [(a * d, b * d) for (a, b), d in zip(times(generator, 60, 1.0), drift, strict=True)]
    second = [(a * d, b * d) for (a, b), d in zip(times(generator, 60, 1.0), drift, strict=True)]
    found = statistics.ratio(first, second)
    assert found.holds(1.0)
    assert found.width < 0.05


def test_noise_is_the_thing_against_itself() -> None:
    """Four samples of two blocks in the same order, the outer two against the inner two."""
    steady = [(1.0, 2.0), (2.0, 1.0)] * 4
    assert statistics.self_ratios(steady) == [0.5] * 4
    even = statistics.noise([(1.0, 1.0)] * 8)
    assert even == Interval(1.0, 1.0, 1.0)
    assert statistics.noise([(1.0, 1.0)] * 4) is None


def test_the_same_series_gives_the_same_interval() -> None:
    values = list(np.random.default_rng(3).lognormal(0.0, 0.1, 30))
    assert statistics.median_interval(values) == statistics.median_interval(values)
    assert statistics.quick_width(values) == pytest.approx(
        statistics.median_interval(values).width, rel=1.0
    )
    assert statistics.quick_width(values[:5]) == math.inf


def test_exponents() -> None:
    sizes = [64, 128, 256, 512]
    assert statistics.exponent(sizes, [s**2 for s in sizes]).value == pytest.approx(2.0)
    noisy = [s**1.0 * f for s, f in zip(sizes, (1.05, 0.97, 1.02, 0.99), strict=True)]
    found = statistics.exponent(sizes, noisy)
    assert found.holds(1.0)
    assert not found.holds(2.0)


def test_a_quotient_is_as_unsure_as_both_of_its_parts() -> None:
    change = statistics.quotient(Interval(1.2, 1.1, 1.3), Interval(1.0, 0.9, 1.1))
    assert change.value == pytest.approx(1.2)
    assert change.low < 1.1
    assert change.high > 1.3


def test_quantiles() -> None:
    found = statistics.quantiles([3.0, 1.0, 2.0])
    assert (found["min"], found["median"]) == (1.0, 2.0)
    assert list(found) == ["min", "q05", "q25", "median", "q75", "q95"]
