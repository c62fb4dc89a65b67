"""Measures how long a grade of a complete candidate takes, against a bare import of torch.

    python tests/measure_grade.py [--times 5]

Each command once per round, in turn; medians of all rounds and their ratio, as Markdown. What is
graded is `reference_impl`, from the command line to the written report.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
PROFILES = ("quick", "standard")


def seconds(command: list[str]) -> float:
    """Wall clock of a command. Raises CalledProcessError where it fails."""
    began = time.perf_counter()
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as folder:
        grade = [sys.executable, "-m", "conformance", "grade", "reference_impl"]
        commands = {"bare `import torch`": [sys.executable, "-I", "-c", "import torch"]}
        for profile in PROFILES:
            name = f"`conformance grade`, {profile}"
            commands[name] = [*grade, f"--profile={profile}", f"--report={folder}/{profile}"]
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(times):
            for name, command in commands.items():
                taken[name].append(seconds(command))
    base = statistics.median(taken["bare `import torch`"])
    rows = [
        [name, f"{statistics.median(found):.2f}", f"{statistics.median(found) / base:.1f}"]
        for name, found in taken.items()
    ]
    print(
        tabulate(rows, ("command", "median, s", "ratio"), tablefmt="github", disable_numparse=True)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
