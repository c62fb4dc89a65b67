"""A batch with the fake grader, as a process that can be killed.

driver.py FOLDER OUT JOBS [EXECUTOR]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from conformance.batch.find import find
from conformance.batch.run import Batch
from conformance.batch.settings import Settings

HERE = Path(__file__).resolve().parent
START = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    f"sys.path.append({str(HERE)!r}); import fake_grader; sys.exit(fake_grader.main())"
)


def batch(
    folder: Path,
    out: Path,
    jobs: int | None = 2,
    limit: float = 5.0,
    again: bool = False,
    executor: str = "local",
) -> Batch:
    found, _ = find([folder], out)
    settings = replace(Settings.read({}, limit), forks=False)  # the fake grader has no worker
    return Batch(found, out, settings, jobs, again, executor, start=START)


if __name__ == "__main__":
    given, results, many, *carrier = sys.argv[1:]
    made = batch(Path(given), Path(results), int(many), 5.0, False, *carrier)
    sys.exit(made.run(lambda text: print(text, flush=True)))
