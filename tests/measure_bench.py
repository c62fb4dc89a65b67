"""Measures the benchmark's own method: what it calls equal, and what slowdown it finds.

    python tests/measure_bench.py                    all of it, about ten minutes
    python tests/measure_bench.py --load             while another process keeps one core busy
    python tests/measure_bench.py --runs 4 --component rmsnorm

The candidate is `reference_impl` under another name, so that it is compared with itself; slowed
down, it waits after each call for a share of what the call took.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from conformance.bench.inputs import Pool
from conformance.bench.process import CANDIDATE, REFERENCE, BenchWorker
from conformance.bench.rows import _pairs, _widest
from conformance.bench.statistics import Interval, ratio
from conformance.bench.timing import Asked, Effort, Timer
from conformance.bench.workload import FORWARD, workload
from conformance.candidate.resolve import resolve

ROOT = Path(__file__).resolve().parent.parent
COMPONENTS = tuple(
    sorted(path.parent.name for path in (ROOT / "conformance" / "components").glob("*/cost.py"))
)
SLOWDOWNS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2)

ADAPTERS = '''
import time
from functools import wraps
from textbook import adapters as textbook

clock = time.perf_counter


def slowed(function):
    @wraps(function)
    def call(*args, **keywords):
        began = clock()
        output = function(*args, **keywords)
        until = began + (clock() - began) * (1.0 + {share})
        while clock() < until:
            pass
        return output

    return call if {share} else function


for name, value in vars(textbook).items():
    if name.startswith("run_"):
        globals()[name] = slowed(value)


def run_none():
    """So that this is found."""


{stubs}
'''


@dataclass(frozen=True)
class Run:
    """One interval for one slowdown."""

    component: str
    slowdown: float
    found: Interval
    blocks: int


def write_candidate(folder: Path, share: float) -> Path:
    """A submission that is the textbook, slowed down by a share."""
    shutil.copytree(ROOT / "reference_impl", folder / "textbook")
    names = (path.stem for path in (ROOT / "conformance" / "components").iterdir())
    stubs = "\n".join(
        f"if 0:\n    def {workload(name).function}(): ...\n"
        for name in sorted(names)
        if (ROOT / "conformance" / "components" / name / "cost.py").exists()
    )
    (folder / "adapters.py").write_text(ADAPTERS.format(share=share, stubs=stubs), "utf-8")
    return folder


def measured(share: float, options: argparse.Namespace) -> Iterator[Run]:
    """`options.runs` intervals for every component."""
    with tempfile.TemporaryDirectory() as folder:
        made = write_candidate(Path(folder) / "candidate", share)
        with BenchWorker(resolve(str(made), cwd=ROOT)) as worker:
            for name in options.component or COMPONENTS:
                for _ in range(options.runs):
                    yield one_run(worker, name, share, options.seconds)


def one_run(worker: BenchWorker, name: str, share: float, seconds: float) -> Run:
    """One row as it is measured in a benchmark."""
    one = workload(name)
    effort = Effort(seconds=seconds, width=0.005)
    asked = Asked(one, one.sizes, FORWARD, "float32")
    timer = Timer(worker, Pool.draw("float32"), asked, effort)
    timer.calibrate((CANDIDATE, REFERENCE))
    series = timer.run(_widest)
    found = ratio(_pairs(series, CANDIDATE), _pairs(series, REFERENCE))
    return Run(name, share, found, len(series.blocks))


def summary(runs: list[Run]) -> str:
    """For every slowdown: how often it is found, and how often the truth is in the interval."""
    table = []
    for share in sorted({run.slowdown for run in runs}):
        here = [run for run in runs if run.slowdown == share]
        widths = sorted(run.found.width for run in here)
        table.append(
            (
                f"{100 * share:g} %",
                len(here),
                _share(run.found.low > 1.0 for run in here),
                _share(run.found.holds(1.0 + share) for run in here),
                _share(run.found.holds(1.0) for run in here),
                f"{100 * widths[len(widths) // 2]:.1f} %",
                sorted(run.blocks for run in here)[len(here) // 2],
            )
        )
    heads = ("slowdown", "runs", "found", "holds truth", "holds 1.00", "median width", "blocks")
    text = str(tabulate(table, headers=heads, tablefmt="github", disable_numparse=True))
    return f"{text}\n\nSmallest slowdown found in 9 of 10 runs: {smallest(runs)}"


def smallest(runs: list[Run]) -> str:
    """The smallest slowdown from which on at least nine of ten runs find it."""
    answer = "none of these"
    for share in sorted({run.slowdown for run in runs if run.slowdown}, reverse=True):
        here = [run for run in runs if run.slowdown == share]
        if sum(run.found.low > 1.0 for run in here) < 0.9 * len(here):
            break
        answer = f"{100 * share:g} %"
    return answer


def _share(values: Iterator[bool]) -> str:
    listed = list(values)
    return f"{sum(listed)}/{len(listed)}"


def _spin() -> None:
    while True:
        sum(range(1000))


@contextmanager
def busy_core(wanted: bool) -> Iterator[None]:
    """Another process that never rests."""
    process = multiprocessing.Process(target=_spin, daemon=True) if wanted else None
    if process is not None:
        process.start()
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.join()


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--component", action="append")
    parser.add_argument("--runs", type=int, default=6, help="for each component and slowdown")
    parser.add_argument("--seconds", type=float, default=2.0, help="for one run")
    parser.add_argument("--slowdown", type=float, action="append")
    parser.add_argument("--load", action="store_true", help="keep one core busy meanwhile")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors, load {load:.2f}, {options.seconds:g} s a run")
    with busy_core(options.load):
        shares = options.slowdown or SLOWDOWNS
        runs = [run for share in shares for run in measured(share, options)]
    print(summary(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
