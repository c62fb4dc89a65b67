"""`conformance bench`: a benchmark from the command line, with its own words."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conformance.errors import ConformanceError, ExitCode
from conformance.options import Option

TAKEN = (
    *("component", "dtype", "device", "report", "python", "import-timeout", "memory"),
    *("sandbox", "require-sandbox", "threads", "max-seconds"),
)
"""Options of grading that mean the same here."""

BENCH_OPTIONS = (
    Option(
        "profile",
        "NAME",
        "how long it may take: quick (1 minute), standard (5 minutes) or thorough (30 minutes)",
        default="standard",
    ),
)

HELP = {
    "component": "measure only this component",
    "dtype": "measure in this dtype (default: float32; on a GPU float32, tf32, bfloat16, float16)",
    "device": "cpu, cuda or cuda:1",
    "report": "where the reports go (default: reports/CANDIDATE)",
    "threads": "threads for everyone who is measured",
    "max-seconds": "the most for one component (default: 4, 15 or 90, by the profile)",
}
"""What they mean here, where the words differ."""


def run_bench(
    impl: str,
    given: Mapping[str, Any],
    cwd: Path,
    command: str,
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
) -> ExitCode:
    """Benchmark a candidate and write the reports.

    CONFORMING when everything that is implemented was measured, NOT_CONFORMING when something was
    wrong or is not believed, INTERNAL when it did not come to its end. UsageError, LoadError.
    """
    from conformance.bench.results import ABSENT
    from conformance.bench.run import BenchRun
    from conformance.opening import forget_paths, resolved
    from conformance.options import GradeOptions

    options = GradeOptions.parse(impl, given, command)
    submission = resolved(impl, cwd)
    forget_paths(submission.root)
    folder = bench_folder(options, submission.name, cwd)
    complete = False
    with BenchRun.open(options, submission, cwd) as run:
        try:
            run.begin()
            for planned in run.plan():
                row = run.measure(*planned)
                told = row.reason if row.status == ABSENT else ""
                say(f"{row.id}: {row.status}{f' ({told[:160]})' if told else ''}")
            for what in run.sweeps():
                say(f"scaling: {what}")
            complete = True
        except KeyboardInterrupt:
            say("conformance: interrupted; what was measured so far is reported")
        result = run.finish(complete)
    if not result.header:
        raise ConformanceError("interrupted before anything was measured")
    return conclude(result, folder, cwd, print)


def conclude(result: Any, folder: Path, cwd: Path, tell: Callable[[str], object]) -> ExitCode:
    """Write the reports, show the table, decide the exit code."""
    from conformance.bench.report import terminal_table, write_bench
    from conformance.bench.results import FLAGGED, MARKDOWN_NAME

    write_bench(result, folder)
    tell(terminal_table(result.to_json()))
    for row in result.rows:
        if row.status == FLAGGED:
            tell(f"NOT BELIEVED {row.id}: {row.reason}")
    shown = folder.relative_to(cwd) if folder.is_relative_to(cwd) else folder
    tell(f"Report: {shown / MARKDOWN_NAME}")
    if not result.complete:
        return ExitCode.INTERNAL
    return ExitCode.NOT_CONFORMING if unsound(result) else ExitCode.CONFORMING


def unsound(result: Any) -> list[Any]:
    """Rows that say something against the candidate: not believed, wrong, raised, crashed."""
    from conformance.bench.rows import TOO_FEW

    harmless = ("not implemented", "the time of the run", TOO_FEW)
    return [
        row
        for row in result.rows
        if row.status == "flagged"
        or (row.status == "absent" and not row.reason.startswith(harmless))
    ]


def bench_folder(options: Any, name: str, cwd: Path) -> Path:
    """Where the reports go; a part must not replace the whole."""
    from conformance.recording import report_folder

    return report_folder(options, name, cwd)


def add_arguments(
    command: argparse.ArgumentParser, add: Callable[[argparse.ArgumentParser, Option, str], None]
) -> None:
    """The arguments of `conformance bench`; `add` adds one option as the other commands do."""
    from conformance.options import OPTIONS

    command.add_argument(
        "impl", metavar="IMPL", help="package, folder, or path of an adapters file"
    )
    for option in (*(o for o in OPTIONS if o.name in TAKEN), *BENCH_OPTIONS):
        default = "" if option.default is None else f" (default: {option.default})"
        own = HELP.get(option.name, option.help)
        add(command, option, own if "(default:" in own else own + default)
