"""How time and memory grow: one size is swept, the others stay.

The candidate's exponent is told beside those of the reference and of the cost model over the
measured ceilings, on the same points. Growing faster than the work is a finding only where the
reference does not: where arrays outgrow a cache, everybody's time does that.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conformance.bench.inputs import seeds
from conformance.bench.process import CANDIDATE, REFERENCE, BenchWorker, Lost
from conformance.bench.results import Sweep
from conformance.bench.rows import Bench, Format
from conformance.bench.statistics import Interval, exponent
from conformance.bench.timing import Asked
from conformance.bench.workload import FORWARD, Workload

STEEPER = 0.3
"""So much above the model's exponent, with all of the interval, is a finding."""

QUADRATIC = 1.5
"""Memory that grows faster than this along the sequence grows with its square."""

COUNTED_BYTES = 2 << 20
"""Peaks below this are lost in what the allocator keeps for itself."""

KEPT_SHARE = 0.5
KEPT_CALLS = 6
REPEATS = 5


@dataclass(frozen=True)
class Point:
    """One size of a sweep."""

    size: int
    times: tuple[float, ...]
    reference: tuple[float, ...]
    peak: int
    model_seconds: float
    kept: float
    how: str


def sweep(bench: Bench, workload: Workload, fmt: Format, axis: str, seconds: float) -> Sweep:
    """Time and memory along one axis; `seconds` for all points together."""
    found = Sweep(workload.component, FORWARD, fmt.label, axis)
    points: list[Point] = []
    sizes = workload.axes[axis]
    try:
        bench.worker.pool(fmt.pool, tf32=fmt.tf32)
        for size in sizes:
            points.append(_point(bench, workload, fmt, axis, size, seconds / len(sizes)))
    except Lost as lost:
        found.reason = f"{axis} {sizes[len(points)]}: {lost.outcome}: {lost.message}"
    fill(found, points)
    return found


def _point(
    bench: Bench, workload: Workload, fmt: Format, axis: str, size: int, seconds: float
) -> Point:
    asked = Asked(workload, workload.at(**{axis: size}), FORWARD, fmt.pool.dtype)
    worker = bench.worker
    asked.prepare(worker, 2)
    times = _times(worker, CANDIDATE, seconds / 2)
    reference = _times(worker, REFERENCE, seconds / 2)
    asked.prepare(worker, KEPT_CALLS)
    peak, kept, how = worker.memory(CANDIDATE, seeds(KEPT_CALLS))
    cost = workload.cost(asked.sizes, asked.itemsize, FORWARD)
    best = bench.ceilings[fmt.label].seconds(cost)
    return Point(size, times, reference, peak, best, kept, how)


def _times(worker: BenchWorker, who: str, seconds: float) -> tuple[float, ...]:
    """Seconds of one call in several samples; the first ones are for warming up."""
    for _ in range(2):
        first = worker.sample(who, seeds(2), 2).per_call
    repeats = max(3, min(REPEATS * 4, int(seconds / max(4 * first, 1e-3))))
    return tuple(worker.sample(who, seeds(2), 2).per_call for _ in range(repeats))


def fill(found: Sweep, points: Sequence[Point]) -> None:
    """Exponents and findings from the points."""
    found.sizes = [point.size for point in points]
    found.seconds = [statistics.median(point.times) for point in points]
    found.peaks = [point.peak for point in points]
    found.model_seconds = [point.model_seconds for point in points]
    if len(points) < 3:
        found.reason = found.reason or "too few points"
        return
    found.memory_how = points[0].how
    found.time_exponent = _exponent({point.size: point.times for point in points})
    found.reference_exponent = _exponent({point.size: point.reference for point in points})
    found.model_exponent = exponent(found.sizes, found.model_seconds).value
    counted = [(point.size, point.peak) for point in points if point.peak >= COUNTED_BYTES]
    if len(counted) >= 3:
        found.memory_exponent = exponent([s for s, _ in counted], [p for _, p in counted])
    found.kept_bytes = statistics.median(point.kept for point in points)
    found.findings = list(_findings(found, points))


def _quadratic(memory: Interval) -> bool:
    """More than linear beyond doubt, and nearer to the square."""
    return memory.value > QUADRATIC and memory.low > (1.0 + QUADRATIC) / 2


def _exponent(times: Mapping[int, Sequence[float]]) -> Interval:
    """From the faster half of the times of each point: disturbances only ever take time."""
    best = [
        (size, seconds)
        for size, listed in times.items()
        for seconds in sorted(listed)[: (len(listed) + 1) // 2]
    ]
    return exponent([size for size, _ in best], [seconds for _, seconds in best])


def _findings(found: Sweep, points: Sequence[Point]) -> list[str]:
    told = []
    time, memory, model = found.time_exponent, found.memory_exponent, found.model_exponent
    reference = found.reference_exponent
    assert time is not None
    assert reference is not None
    assert model is not None
    if time.low > max(model, reference.high) + STEEPER:
        told.append(
            f"time grows like {found.axis}^{time.value:.2f}, that of reference_impl like "
            f"{found.axis}^{reference.value:.2f}, the work like {found.axis}^{model:.2f}"
        )
    if memory is not None and found.axis == "sequence" and _quadratic(memory):
        told.append(
            f"memory grows like {found.axis}^{memory.value:.2f}: the whole matrix of scores is held"
        )
    if all(p.kept > max(COUNTED_BYTES / 8, KEPT_SHARE * p.peak) for p in points):
        told.append(f"each call leaves {found.kept_bytes / 2**20:.1f} MiB behind that is not freed")
    return told
