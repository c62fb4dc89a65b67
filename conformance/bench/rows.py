"""Measuring one row from beginning to end: check, time, watch, cross-check, judge."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from conformance.bench.ceilings import Ceiling
from conformance.bench.check import (
    Definition,
    against_reference,
    gradient_names,
    peek_differs,
)
from conformance.bench.honesty import Crossed, Watched, flags
from conformance.bench.inputs import Pool, float_names, seeds
from conformance.bench.process import CANDIDATE, FUSED, REFERENCE, BenchWorker, Lost, Sample
from conformance.bench.results import ABSENT, FLAGGED, MEASURED, Row
from conformance.bench.statistics import (
    block_ratios,
    noise,
    quantiles,
    quick_width,
    ratio,
)
from conformance.bench.timing import Asked, Effort, Series, Timer
from conformance.bench.workload import BOTH, Cost, Sizes, Workload
from conformance.candidate.messages import Call, Outcome
from conformance.suite.component import component

SCREENED = 0.12
"""Share of the candidate's samples whose results are compared, at random."""

LEAST_SCREENED, MOST_SCREENED = 3, 10
LEAST_BLOCKS = 5
"""With fewer than these there is no interval to speak of."""

BUSY = 1.5
"""Median over fastest from which on a machine counts as busy."""

TOO_FEW = "too slow, or the machine too busy, for the time there was"

CONTESTANTS = (CANDIDATE, REFERENCE, FUSED)


@dataclass
class Bench:
    """The processes of a run and what they share."""

    worker: BenchWorker
    #: a process in which no candidate was ever imported
    clean: BenchWorker
    threads: int
    device: str
    ceilings: dict[str, Ceiling] = field(default_factory=dict)

    def close(self) -> None:
        """End both processes."""
        self.worker.close()
        self.clean.close()


@dataclass(frozen=True)
class Format:
    """A number format as rows name it: tf32 is float32 with shortened products on a GPU."""

    label: str
    pool: Pool

    @property
    def tf32(self) -> bool:
        """Whether products may be shortened."""
        return self.label == "tf32"


def why_absent(bench: Bench, name: str) -> str:
    """Why a component cannot be benchmarked at all; empty if it can.

    It is asked with its first case, as in grading: a missing function, a stub.
    """
    owner = component(name)
    case = owner.cases[0]
    reply = bench.worker.call(Call(owner.function, case.arguments(case.dtypes[0])))
    if reply.outcome is Outcome.NOT_IMPLEMENTED:
        return f"not implemented: {reply.message}"
    if reply.outcome is not Outcome.PASSED:
        return f"{reply.outcome}: {reply.message}"
    return ""


class Component:
    """All rows of one component in one format."""

    def __init__(
        self,
        bench: Bench,
        workload: Workload,
        fmt: Format,
        *,
        gpu: bool = False,
        sizes: Sizes | None = None,
    ) -> None:
        self.bench = bench
        self.workload = workload
        self.format = fmt
        self.sizes = sizes or (workload.gpu_sizes if gpu else workload.sizes)
        self.passes = workload.passes
        self.definition = Definition(self._asked(self.passes[-1]), fmt.pool)

    def _asked(self, which: str, graph: bool = False) -> Asked:
        return Asked(self.workload, self.sizes, which, self.format.pool.dtype, graph)

    def check(self) -> str:
        """What is wrong on the benchmark's own inputs; empty if it may be measured."""
        asked = self._asked(self.passes[-1])
        worker = self.bench.worker
        try:
            worker.pool(self.format.pool, tf32=self.format.tf32)
            asked.prepare(worker, 2)
            drawn = seeds(2)
            worker.sample(CANDIDATE, drawn, 2)
            output, gradients, _ = worker.outputs(1, gradient_names(asked))
        except Lost as lost:
            return f"{lost.outcome}: {lost.message}"
        problem = self.definition.problem(asked.which, drawn[1], output, gradients)
        return f"wrong on the benchmark's inputs: {problem}" if problem else ""

    def measure(self, which: str, effort: Effort, *, graph: bool = False) -> Row:
        """One row. Whatever the candidate does ends up in it."""
        row = Row(self.workload.component, which, self.format.label, sizes=self.sizes)
        row.mode = "cuda-graph" if graph else "eager"
        try:
            Measurement(self, self._asked(which, graph), effort, row).run()
        except Lost as lost:
            row.status, row.reason = ABSENT, f"{lost.outcome}: {lost.message}"
        return row


class Measurement:
    """One row while it is measured."""

    def __init__(self, owner: Component, asked: Asked, effort: Effort, row: Row) -> None:
        self.owner = owner
        self.bench = owner.bench
        self.asked = asked
        self.row = row
        self.effort = effort
        self.names = gradient_names(asked)
        self.timer = Timer(
            self.bench.worker, owner.format.pool, asked, effort, tf32=owner.format.tf32
        )
        self.seen = Watched(threads=self.bench.threads)
        self._random = random.SystemRandom()

    def run(self) -> None:
        """Measure and judge. Raises Lost."""
        self.timer.calibrate(CONTESTANTS)
        self._prepare_clean()
        busy, began = self.bench.worker.processor_seconds(), time.monotonic()
        series = self.timer.run(_widest, self._watch)
        self.seen.wall = time.monotonic() - began
        self.seen.busy = self.bench.worker.processor_seconds() - busy
        self.seen.children = self.bench.worker.children()
        while self.seen.screened < LEAST_SCREENED and not self.seen.wrong:
            drawn = seeds(series.count)
            calls = series.calls[CANDIDATE]
            self._screen(
                drawn, self.bench.worker.sample(CANDIDATE, drawn, calls, self.timer.peek())
            )
        self._cross_check(series)
        self._conclude(series)

    # -- watching --------------------------------------------------------------------------------

    def _prepare_clean(self) -> None:
        """The same inputs in the process without a candidate."""
        clean = self.bench.clean
        clean.pool(self.owner.format.pool, tf32=self.owner.format.tf32)
        replace(self.asked, graph=False).prepare(clean, self.timer.series.count)

    def _watch(self, who: str, drawn: Sequence[int], sample: Sample) -> None:
        """Compares the results of some samples, which nobody knows beforehand."""
        enough = self.seen.screened >= MOST_SCREENED or self.seen.wrong
        if who == CANDIDATE and not enough and self._random.random() < SCREENED:
            self._screen(drawn, sample)

    def _screen(self, drawn: Sequence[int], sample: Sample) -> None:
        worker, clean = self.bench.worker, self.bench.clean
        output, gradients, _ = worker.outputs(sample.calls - 1, self.names)
        if peek_differs(sample.peek, sample.places, output):
            self.seen.late += 1
        vector = secrets.randbits(52)
        got = worker.digests(vector, self.names)
        alone = clean.sample(REFERENCE, drawn, sample.calls)
        self.seen.clean.append(alone.per_call)
        right = clean.digests(vector, self.names)
        problem = against_reference(got, right, self.asked.dtype)
        if not problem and not self.seen.verified:
            seed = drawn[sample.calls - 1]
            problem = self.owner.definition.problem(self.asked.which, seed, output, gradients)
            self.seen.verified += 1
        self.seen.screened += 1
        if problem:
            again, _, _ = worker.outputs(sample.calls - 1)
            self.seen.late += not np.array_equal(again, output, equal_nan=True)
            self.seen.wrong.append(problem)

    def _cross_check(self, series: Series) -> None:
        """Samples of N and 2N calls on the judge's clock; the same inputs are laid out for both."""
        many = series.count
        claimed = float(np.median(series.per_call(CANDIDATE)))
        crossed = self.seen.crossed = Crossed(many - many // 2)
        while not crossed.enough(claimed):
            few, all_of_them = (
                self.timer.sample(CANDIDATE, calls=calls).judge_seconds
                for calls in (many // 2, many)
            )
            crossed.pairs.append((few, all_of_them))

    # -- judging ---------------------------------------------------------------------------------

    def _conclude(self, series: Series) -> None:
        row = self.row
        row.blocks, row.seconds = len(series.blocks), series.seconds
        ceiling = self.bench.ceilings[self.owner.format.label]
        cost = self.owner.workload.cost(self.asked.sizes, self.asked.itemsize, self.asked.which)
        self.seen.floor = ceiling.floor(cost)
        row.flags = flags(series, self.seen)
        row.status = FLAGGED if row.flags else MEASURED
        row.reason = "; ".join(flag.sentence for flag in row.flags)
        if not row.flags and row.blocks < LEAST_BLOCKS:
            row.status = ABSENT
            row.reason = f"{TOO_FEW}: {row.blocks} blocks in {row.seconds:.1f} s"
            return
        row.calls, row.count = series.calls[CANDIDATE], series.count
        row.screened, row.verified = self.seen.screened, self.seen.verified
        row.times = {who: quantiles(series.per_call(who)) for who in series.calls}
        row.data = series.per_call(CANDIDATE)
        pairs = {who: _pairs(series, who) for who in series.calls}
        if not row.flags:
            others = [who for who in series.calls if who != CANDIDATE]
            row.ratios = {who: ratio(pairs[CANDIDATE], pairs[who]) for who in others}
        if FUSED in pairs and REFERENCE in pairs:
            row.reference_to_fused = ratio(pairs[REFERENCE], pairs[FUSED])
        row.noise = noise(pairs[CANDIDATE])
        row.judge_seconds = self.seen.crossed.per_call if self.seen.crossed else None
        self._add_model(cost, ceiling)
        self._add_notes(series)

    def _add_model(self, cost: Cost, ceiling: Ceiling) -> None:
        row = self.row
        best = ceiling.seconds(cost)
        row.model = {
            "flops": cost.flops,
            "matmul_flops": cost.matmul,
            "bytes": cost.bytes,
            "flops_per_byte": cost.intensity,
            "bound": ceiling.bound(cost),
            "ceiling_seconds": best,
            "floor_seconds": self.seen.floor,
        }
        if row.status == MEASURED:
            taken = row.times[CANDIDATE]["median"]
            row.achieved = {
                "flops_per_second": cost.flops / taken,
                "bytes_per_second": cost.bytes / taken,
                "share_of_ceiling": best / taken,
            }

    def _add_notes(self, series: Series) -> None:
        row = self.row
        if len(series.blocks) < self.effort.min_blocks:
            row.notes.append(f"only {len(series.blocks)} blocks in the time there was")
        row.notes += [f"{who}: {why}" for who, why in series.absent.items()]
        busy = [who for who, times in row.times.items() if times["median"] > BUSY * times["min"]]
        if busy:
            row.notes.append(
                f"the machine was busy: half of the samples of {', '.join(busy)} took more than "
                f"{BUSY:g} times as long as the fastest; longer calls suffer more from that"
            )
        if self.asked.which == BOTH:
            row.notes += self._missing_gradients()
        if row.noise is not None and not row.noise.holds(1.0):
            row.notes.append("the machine was not steady: against itself it is not at 1.00")

    def _missing_gradients(self) -> list[str]:
        """Weights that no gradient reaches: most adapters copy them into modules."""
        wanted = float_names(self.asked.workload.arguments(self.asked.sizes), rows=False)
        if not wanted:
            return []
        self.timer.sample(CANDIDATE)
        _, _, arrived = self.bench.worker.outputs(0)
        missing = len(set(wanted) - set(arrived))
        if not missing:
            return []
        return [f"no gradient reaches {missing} of {len(wanted)} weights that were passed in"]


def _pairs(series: Series, who: str) -> list[tuple[float, float]]:
    return [(a.per_call, b.per_call) for a, b in (block[who] for block in series.blocks)]


def _widest(series: Series) -> float:
    """The widest interval among the candidate's ratios, about."""
    mine = _pairs(series, CANDIDATE)
    others = [who for who in series.calls if who != CANDIDATE]
    widths = [quick_width(block_ratios(mine, _pairs(series, who))) for who in others]
    return max(widths, default=0.0)
