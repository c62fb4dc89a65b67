"""Timing one row: warm up, choose how many calls make a sample, then paired blocks in turn.

A block holds two samples of every contestant, in an order and back again (A B C C B A), so that a
steady drift of the machine cancels within it. Samples are short: what disturbs a machine for
milliseconds then spoils single samples and not the comparison. Two blocks in a row share an order,
the next two have another one: everyone comes after everyone else equally often.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.bench.inputs import Pool, nbytes, seeds
from conformance.bench.process import CANDIDATE, BenchWorker, Lost, Sample
from conformance.bench.workload import BOTH, Sizes, Workload
from conformance.candidate.messages import Outcome
from conformance.numerics.dtypes import FORMATS

RING_BYTES = 96 << 20
"""Memory of the inputs that are laid out for one sample."""

STEADY = 0.15
"""Warm-up ends when a sample differs from the one before by less than this."""


LONGEST = 10
"""The slowest contestant's samples take so many times what a sample should take, at most."""

MOST_CALLS = 1000


@dataclass(frozen=True)
class Effort:
    """How much is measured: `seconds` bound one row; blocks end when the interval is narrow."""

    seconds: float
    min_blocks: int = 15
    max_blocks: int = 400
    width: float = 0.02
    sample_seconds: float = 1e-3
    warm_up: int = 8


@dataclass(frozen=True)
class Asked:
    """One row: a component at a size, a pass, a format."""

    workload: Workload
    sizes: Sizes
    which: str
    dtype: str
    graph: bool = False

    @property
    def itemsize(self) -> int:
        """Bytes of one number."""
        return FORMATS[self.dtype].numpy.itemsize

    @property
    def cotangent(self) -> tuple[int, ...] | None:
        """Shape of the cotangent; None where nothing is differentiated."""
        return self.workload.output(self.sizes) if self.which == BOTH else None

    def slot_bytes(self) -> int:
        """Memory of the inputs of one call."""
        arguments = self.workload.arguments(self.sizes)
        return max(1, nbytes(arguments, self.itemsize, self.cotangent))

    def prepare(self, worker: BenchWorker, count: int) -> None:
        """Lay out inputs for `count` calls."""
        arguments = self.workload.arguments(self.sizes)
        output = self.workload.output(self.sizes)
        function = self.workload.function
        worker.prepare(function, arguments, output, self.which, count, graph=self.graph)


Block = Mapping[str, tuple[Sample, Sample]]
"""Two samples of every contestant."""


@dataclass
class Series:
    """The blocks of one row."""

    blocks: list[Block] = field(default_factory=list)
    count: int = 2
    calls: Mapping[str, int] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def samples(self, who: str) -> list[Sample]:
        """All samples of a contestant, in order."""
        return [sample for block in self.blocks for sample in block[who]]

    def per_call(self, who: str) -> list[float]:
        """Seconds of one call, for every sample of a contestant."""
        return [sample.per_call for sample in self.samples(who)]


Watch = Callable[[str, Sequence[int], Sample], None]
"""Is shown every sample right after it, with the seeds of its inputs."""


class Timer:
    """Times one row in one process."""

    def __init__(
        self, worker: BenchWorker, pool: Pool, asked: Asked, effort: Effort, *, tf32: bool = False
    ) -> None:
        self.worker = worker
        self.asked = asked
        self.effort = effort
        self.series = Series()
        self._random = random.Random()
        worker.pool(pool, tf32=tf32)

    def calibrate(self, contestants: Sequence[str]) -> None:
        """Warm everybody up and choose the number of calls in a sample.

        Contestants that do not answer are left out, with the reason; Lost for the candidate.
        """
        self.asked.prepare(self.worker, 2)
        single: dict[str, float] = {}
        absent: dict[str, str] = {}
        for who in contestants:
            try:
                single[who] = self._warm(who)
            except Lost as lost:
                if who == CANDIDATE or lost.outcome is not Outcome.NOT_IMPLEMENTED:
                    raise
                absent[who] = "torch has no fused operator for it"
        largest = max(2, RING_BYTES // self.asked.slot_bytes())
        wanted = min(
            self.effort.sample_seconds / min(single.values()),
            LONGEST * self.effort.sample_seconds / max(single.values()),
        )
        # the same number for everyone: the first call of a sample is slower than those after it
        number = max(1, min(largest, round(wanted), MOST_CALLS))
        self.series.calls, self.series.absent = dict.fromkeys(single, number), absent
        self.series.count = max(2, number)
        self.asked.prepare(self.worker, self.series.count)
        for who in single:
            self.sample(who)

    def _warm(self, who: str) -> float:
        """Seconds of a call once they are steady; at most `warm_up` samples."""
        before = after = float("inf")
        for _ in range(self.effort.warm_up):
            before, after = after, self.worker.sample(who, seeds(2), 2, self.peek()).per_call
            if abs(after - before) < STEADY * after:
                break
        return max(1e-7, min(before, after))

    def peek(self) -> list[float]:
        """Places in the output to look at when the clock has stopped."""
        return [self._random.random() for _ in range(48)]

    def sample(self, who: str, watch: Watch | None = None, calls: int = 0) -> Sample:
        """One sample on fresh inputs."""
        drawn = seeds(self.series.count)
        made = self.worker.sample(who, drawn, calls or self.series.calls[who], self.peek())
        if watch is not None:
            watch(who, drawn, made)
        return made

    def run(self, narrow: Callable[[Series], float], watch: Watch | None = None) -> Series:
        """Blocks until the time is over or `narrow` says that the interval is narrow enough."""
        began = time.monotonic()
        orders = itertools.cycle(self._orders())
        blocks = self.series.blocks
        while len(blocks) < self.effort.max_blocks:
            order = next(orders)
            for _ in range(2):
                blocks.append(self._block(order, watch))
            self.series.seconds = time.monotonic() - began
            if self.series.seconds > self.effort.seconds:
                break
            enough = len(blocks) >= self.effort.min_blocks and len(blocks) % 6 == 0
            if enough and narrow(self.series) <= self.effort.width:
                break
        return self.series

    def _orders(self) -> list[tuple[str, ...]]:
        orders = list(itertools.permutations(self.series.calls))
        self._random.shuffle(orders)
        return orders

    def _block(self, order: Sequence[str], watch: Watch | None) -> Block:
        first = {who: self.sample(who, watch) for who in order}
        second = {who: self.sample(who, watch) for who in reversed(order)}
        return {who: (first[who], second[who]) for who in order}
