"""`conformance grade-all`: its words, and what they start."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from conformance.errors import ExitCode, UsageError
from conformance.options import OPTIONS, Option

PASSED_ON = (
    *("config", "policy", "rubric", "profile", "level", "hidden-seed-file", "audience"),
    *("python", "device", "seed", "timeout", "import-timeout", "memory", "stop-after"),
    *("sandbox", "require-sandbox"),
)
"""Options of `conformance grade` that hold for each submission."""

BATCH_OPTIONS = (
    Option("out", "FOLDER", "where the record and all reports go", default="results"),
    Option(
        "jobs", "N", "submissions at once (default: half of the processors; with Dask all threads)"
    ),
    Option("limit", "MINUTES", "wall clock of one submission (default: 30 more than --stop-after)"),
    Option(
        *("executor", "NAME", "who carries the jobs: local, dask://HOST:PORT, or module:function"),
        default="local",
    ),
    Option("retry", "", "grade again what ended as an infrastructure failure", flag=True),
)


OPEN = (
    "--executor {}: a submission that is in no sandbox can reach the scheduler, which runs what it "
    "is given; add --require-sandbox, or --sandbox off where you trust every submission"
)


def add_arguments(
    command: argparse.ArgumentParser, add: Callable[[argparse.ArgumentParser, Option], None]
) -> None:
    """Add paths and options to the parser of the command."""
    command.epilog = (
        "exit codes: 0 every submission has a verdict or cannot be loaded, 2 wrong usage, 4 an "
        "infrastructure failure, or stopped; the same command goes on where it was"
    )
    command.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="FOLDER|ARCHIVE",
        help="a folder whose sub-folders and archives are submissions, or archives",
    )
    for option in (*BATCH_OPTIONS, *(o for o in OPTIONS if o.name in PASSED_ON)):
        add(command, option)


def grade_all(options: argparse.Namespace) -> ExitCode:
    """Grade every submission. Raises UsageError before any of them is looked at."""
    from conformance.batch.cluster import is_cluster
    from conformance.batch.executors import LOCAL
    from conformance.batch.find import find
    from conformance.batch.run import Batch
    from conformance.batch.settings import Settings

    out = Path(options.out or "results").expanduser().absolute()
    jobs = None if options.jobs is None else _jobs(options.jobs)
    limit = None if options.limit is None else _minutes(options.limit)
    settings = Settings.read(vars(options), limit)
    found, others = find([path.expanduser() for path in options.paths], out)
    name = options.executor or LOCAL
    if is_cluster(name) and not settings.shut_in:
        raise UsageError(OPEN.format(name))
    secret = _secret(name) if settings.reads_secret else None
    for other in others:
        _say(f"passed over, neither a folder nor an archive: {ascii(str(other))[1:-1]}")
    batch = Batch(found, out, settings, jobs, options.retry, name, secret, others=others)
    return batch.run(_say)


def _say(text: str) -> None:
    print(text, flush=True)


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise UsageError(f"--jobs {text}: give a whole number from 1 to 1024")
    return int(text)


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 100_000:
        raise UsageError(f"--limit {text}: give a positive number of minutes, 100,000 at most")
    return value


def _secret(executor: str) -> bytes:
    """The hidden seed from standard input, to be handed on in the same way."""
    from conformance.batch.executors import LOCAL
    from conformance.batch.settings import LONGEST_SECRET
    from conformance.hidden import SHORTEST

    if executor != LOCAL:
        raise UsageError(
            "--hidden-seed-file - goes with --executor local: another executor would write the "
            "secret down; name a file that a sandbox hides"
        )
    content = sys.stdin.buffer.read(LONGEST_SECRET + 1)
    if len(content) > LONGEST_SECRET:
        raise UsageError(f"--hidden-seed-file -: give {LONGEST_SECRET:,} bytes at most")
    if len(content.strip()) < SHORTEST:
        raise UsageError(
            f"--hidden-seed-file -: fewer than {SHORTEST} bytes can be guessed; "
            "`openssl rand -hex 32` makes a secret"
        )
    return content
