"""What is made of the times: ratios with intervals, the noise of a thing against itself, exponents.

In a block each contestant has two samples, and the faster of the two stands for it: a disturbance
takes time and never gives any. The ratio of a block is that of two such times, and the result is
the median over the blocks with a bootstrap interval. What else was tried, and how often each held
the truth on a busy machine, stands in docs/benchmarks.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
ASKED = 0.99
"""Level that the bootstrap is asked for: its intervals of a median are a little too narrow."""

RESAMPLES = 1999
BOUND_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Interval:
    """A value and where it lies with 95 % confidence."""

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Relative to the value."""
        return (self.high - self.low) / self.value if self.value else math.inf

    def holds(self, value: float) -> bool:
        """Is the value possible?"""
        return self.low <= value <= self.high

    def to_json(self) -> dict[str, float]:
        """As in bench.json."""
        return {"value": self.value, "low": self.low, "high": self.high}


Pair = tuple[float, float]
"""Seconds of one call in the two samples of a block."""


def block_ratios(first: Sequence[Pair], second: Sequence[Pair]) -> list[float]:
    """For each block the ratio of the first to the second."""
    return [min(a) / max(min(b), 1e-12) for a, b in zip(first, second, strict=True)]


def ratio(first: Sequence[Pair], second: Sequence[Pair]) -> Interval:
    """How many times longer the first takes than the second: median of the blocks, interval."""
    return median_interval(block_ratios(first, second))


def self_ratios(pairs: Sequence[Pair]) -> list[float]:
    """A thing against itself within one run: two blocks of the same order give one ratio.

    The outer two of four samples against the inner two, which lie around the same moment.
    """
    return [
        min(first[0], second[1]) / max(min(first[1], second[0]), 1e-12)
        for first, second in zip(pairs[::2], pairs[1::2], strict=False)
    ]


def noise(pairs: Sequence[Pair]) -> Interval | None:
    """The interval of a thing against itself; None with too few blocks."""
    ratios = self_ratios(pairs)
    return median_interval(ratios) if len(ratios) >= 3 else None


def median_interval(values: Sequence[float], seed: int = 0) -> Interval:
    """Median with its bootstrap interval (percentiles of the logarithms)."""
    logs = np.log(np.asarray(values, dtype=np.float64))
    value = float(np.median(logs))
    if len(logs) < 2 or np.ptp(logs) == 0:
        return Interval(math.exp(value), math.exp(value), math.exp(value))
    from scipy.stats import bootstrap

    found = bootstrap(
        (logs,),
        np.median,
        n_resamples=RESAMPLES,
        confidence_level=ASKED,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(math.exp(value), math.exp(float(found.low)), math.exp(float(found.high)))


def quick_width(values: Sequence[float]) -> float:
    """About the relative width of that interval, from order statistics: to decide when to stop."""
    count = len(values)
    if count < 8:
        return math.inf
    ordered = sorted(values)
    reach = 1.08 * math.sqrt(count)
    low = ordered[max(0, math.floor(count / 2 - reach))]
    high = ordered[min(count - 1, math.ceil(count / 2 + reach))]
    middle = ordered[count // 2]
    return (high - low) / middle if middle else math.inf


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Minimum and quantiles of times, as in bench.json."""
    found = np.quantile(np.asarray(values, dtype=np.float64), BOUND_QUANTILES)
    names = ("q05", "q25", "median", "q75", "q95")
    return {"min": min(values), **{n: float(v) for n, v in zip(names, found, strict=True)}}


def exponent(sizes: Sequence[float], values: Sequence[float]) -> Interval:
    """The p of `value = c * size^p` by least squares of the logarithms, 95 % (Student's t)."""
    from scipy.stats import linregress, t

    x, y = np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(values, dtype=float))
    if len(x) < 2:
        return Interval(math.nan, math.nan, math.nan)
    fit = linregress(x, y)
    slope, error = float(fit.slope), float(fit.stderr)
    reach = float(t.ppf(0.5 + CONFIDENCE / 2, max(1, len(x) - 2))) * error if len(x) > 2 else 0.0
    return Interval(slope, slope - reach, slope + reach)


def quotient(after: Interval, before: Interval) -> Interval:
    """The change from one independent measurement to another, from their intervals."""
    value = after.value / before.value
    below = math.hypot(_log(after.value, after.low), _log(before.high, before.value))
    above = math.hypot(_log(after.high, after.value), _log(before.value, before.low))
    return Interval(value, value * math.exp(-below), value * math.exp(above))


def _log(larger: float, smaller: float) -> float:
    return math.log(larger / smaller) if larger > 0 and smaller > 0 else math.inf
