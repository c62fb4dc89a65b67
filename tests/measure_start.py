"""Measures how long a candidate's process takes to be ready, against a bare import of torch.

    python tests/measure_start.py [--times 20]

From the start of the process to the answer that names what a candidate with one function has; each
way once per round, medians and quartiles of all rounds, as Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tabulate import tabulate

from conformance.candidate.process import Worker
from conformance.candidate.resolve import Submission, resolve
from conformance.errors import SandboxError

CANDIDATE = "def run_silu(in_features):\n    return in_features * in_features.sigmoid()\n"


def bare() -> None:
    """Python and torch, nothing else."""
    subprocess.run([sys.executable, "-I", "-c", "import torch"], check=True)


def cold(submission: Submission, mode: str) -> None:
    """A worker that imports torch itself."""
    with Worker(submission, sandbox=mode) as worker:
        worker.describe()


def forked(worker: Worker) -> None:
    """One more worker, where a fork server runs already."""
    worker._drop()
    worker.describe()
    assert worker._link is not None
    assert worker._link.forked, "the worker was not forked"


def measure(times: int) -> list[list[str]]:
    """Rows of the table. Raises SandboxError where bubblewrap does not work."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "adapters.py").write_text(CANDIDATE, "utf-8")
        submission = resolve(name, cwd=folder)
        with Worker(submission, sandbox="require") as worker:
            worker.describe()
            forked(worker)  # the server starts here
            ways: dict[str, Callable[[], None]] = {
                "bare `import torch`": bare,
                "worker without a sandbox": lambda: cold(submission, "off"),
                "worker in bubblewrap": lambda: cold(submission, "require"),
                "worker in bubblewrap, forked": lambda: forked(worker),
            }
            taken: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(times):
                for way, run in ways.items():
                    began = time.perf_counter()
                    run()
                    taken[way].append(time.perf_counter() - began)
    base = statistics.median(taken["bare `import torch`"])
    rows = []
    for way, seconds in taken.items():
        low, middle, high = statistics.quantiles(seconds, n=4)
        spread = f"{1000 * low:.0f} to {1000 * high:.0f}"
        rows.append([way, f"{1000 * middle:.0f}", spread, f"{middle / base:.2f}"])
    return rows


def main() -> int:
    """Prints the table; 1 where it cannot be measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--times", type=int, default=20)
    try:
        rows = measure(parser.parse_args().times)
    except SandboxError as error:
        print(error)
        return 1
    head = ("start", "median, ms", "middle half, ms", "ratio")
    print(tabulate(rows, head, tablefmt="github", colalign=("left", "right", "right", "right")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
