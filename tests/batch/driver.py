"""A batch with the fake grader, as a process that can be killed: driver.py FOLDER OUT JOBS."""

from __future__ import annotations

import sys
from pathlib import Path

from conformance.batch.find import find
from conformance.batch.run import Batch
from conformance.batch.settings import Settings

HERE = Path(__file__).resolve().parent
START = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    f"sys.path.append({str(HERE)!r}); import fake_grader; sys.exit(fake_grader.main())"
)


def batch(folder: Path, out: Path, jobs: int = 2, limit: float = 5.0, again: bool = False) -> Batch:
    found, _ = find([folder], out)
    return Batch(found, out, Settings.read({}, limit), jobs, again, start=START)


if __name__ == "__main__":
    given, results, many = sys.argv[1:]
    sys.exit(batch(Path(given), Path(results), int(many)).run(lambda text: print(text, flush=True)))
