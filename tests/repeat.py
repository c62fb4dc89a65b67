"""Grades the same submission several times and compares the reports.

    python tests/repeat.py SUBMISSION --times 20 --profile quick

Each grade is a run of its own from the command line, into the same folder, so that nothing differs
but time. Compared are `report.md`, `report.json` and the stored counterexamples, apart from the
times in them. Options that are not known here go to `conformance grade`. The exit status is 1 when
two reports differ, 2 when a grade leaves no report.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TIME = re.compile(r"^\| time \| .*$", re.MULTILINE)
"""The one line of `report.md` that tells when the run was and how long it took."""

SHOWN = 20
"""Lines of a difference that are printed."""

Texts = Mapping[str, str]


def without_times(name: str, data: bytes) -> str:
    """The text of one file of a report without its times; a counterexample as its bytes."""
    if name == "report.md":
        return TIME.sub("| time | |", data.decode("utf-8"))
    if name == "report.json":
        report: dict[str, Any] = json.loads(data)
        for check in report["checks"]:
            del check["seconds"]
        for moment in ("started", "finished"):
            del report["environment"][moment]
        return json.dumps(report, indent=1)
    return data.hex()


def texts(report: Path) -> dict[str, str]:
    """What is compared of the report in that folder, by name of the file."""
    files = [report / "report.md", report / "report.json"]
    files += sorted((report / "counterexamples").glob("*"))
    return {
        path.relative_to(report).as_posix(): without_times(path.name, path.read_bytes())
        for path in files
    }


def differences(first: Texts, other: Texts) -> list[str]:
    """What differs between two reports, as lines to print; empty when nothing does."""
    found: list[str] = []
    for name in sorted(first.keys() | other.keys()):
        if name not in first or name not in other:
            found.append(f"{name}: only in one of the two")
        elif name.startswith("report."):
            lines = (text[name].splitlines() for text in (first, other))
            changed = difflib.unified_diff(*lines, name, name, n=0, lineterm="")
            found += list(changed)[:SHOWN]
        elif first[name] != other[name]:
            found.append(f"{name}: other bytes")
    return found


def graded(submission: str, options: list[str], report: Path) -> dict[str, str]:
    """Grade once. SystemExit with status 2 and the grader's words when there is no report."""
    command = [sys.executable, "-m", "conformance", "grade", submission, "--report", str(report)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if not (report / "report.json").is_file():
        print(done.stdout + done.stderr, file=sys.stderr)
        raise SystemExit(2)
    return texts(report)


def repeated(submission: str, times: int, options: list[str]) -> list[str]:
    """What differs between `times` grades of the same submission."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        first = graded(submission, options, report)
        found: list[str] = []
        for number in range(2, times + 1):
            # Left in place, an old report would hide that a run has written none.
            (report / "report.json").unlink()
            changed = differences(first, graded(submission, options, report))
            found += [f"run {number} differs from run 1:", *changed] if changed else []
    return found


def main() -> int:
    """Command line; prints what differs and how many reports were compared."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("submission")
    parser.add_argument("--times", type=int, default=20)
    options, more = parser.parse_known_args()
    found = repeated(options.submission, options.times, more)
    print(*found, sep="\n", end="\n" if found else "")
    differing = sum(line.startswith("run ") for line in found)
    print(f"{options.times} grades of {options.submission}: {differing} differ from the first")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
