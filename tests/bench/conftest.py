"""Processes that run benchmarks, started once; small sizes, few blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from conformance.bench.ceilings import Ceiling
from conformance.bench.inputs import Pool
from conformance.bench.process import BenchWorker
from conformance.bench.results import Row
from conformance.bench.rows import Bench, Component, Format, why_absent
from conformance.bench.timing import Effort
from conformance.bench.workload import FORWARD, workload
from conformance.candidate.resolve import resolve

collect_ignore = ["candidates"]

HERE = Path(__file__).parent
FEW = Effort(seconds=120.0, min_blocks=6, max_blocks=6, width=0.0, sample_seconds=5e-4, warm_up=4)
"""So many blocks, however long they take: nothing here depends on the machine's speed."""

SMALL = {"batch": 4, "sequence": 64, "width": 256, "hidden": 256, "heads": 2, "vocabulary": 256}


class Lab:
    """Measures single rows of candidates."""

    def __init__(self) -> None:
        self.format = Format("float32", Pool.draw("float32"))
        self._clean: BenchWorker | None = None
        self._benches: dict[str, Bench] = {}

    def bench(self, candidate: str) -> Bench:
        """The processes for a candidate of the folder `candidates`, or of that name."""
        if candidate not in self._benches:
            path = HERE / "candidates" / f"{candidate}.py"
            found = str(path) if path.exists() else candidate
            worker = BenchWorker(resolve(found, cwd=HERE))
            worker.start()
            if self._clean is None:
                self._clean = BenchWorker(resolve("reference_impl", cwd=HERE))
                self._clean.start()
            slow = Ceiling("float32", 1e12, {1 << 20: 1e13})
            self._benches[candidate] = Bench(worker, self._clean, 1, "cpu", {"float32": slow})
        return self._benches[candidate]

    def component(self, candidate: str, name: str) -> Component:
        """One of its components at a small size."""
        one = workload(name)
        sizes = {key: min(value, SMALL.get(key, value)) for key, value in one.sizes.items()}
        return Component(self.bench(candidate), one, self.format, sizes=sizes)

    def row(self, candidate: str, name: str, which: str = FORWARD, effort: Effort = FEW) -> Row:
        """One measured row; a component that may not be measured is absent with the reason."""
        row = Row(name, which, "float32")
        row.reason = why_absent(self.bench(candidate), name)
        owner = self.component(candidate, name)
        row.reason = row.reason or owner.check()
        return row if row.reason else owner.measure(which, effort)

    def close(self) -> None:
        """End all processes."""
        for bench in self._benches.values():
            bench.close()


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """One for all tests."""
    made = Lab()
    yield made
    made.close()


def kinds(row: Row) -> Sequence[str]:
    """What a row is flagged for."""
    return [str(flag.kind) for flag in row.flags]
