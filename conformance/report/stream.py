"""The results file: writing it so that nothing is lost, reading it so that nothing is believed.

`results.jsonl` holds a header, one line per check as it ends, and a footer with counts.  Each line
is flushed at once, so a run that is killed keeps what it had.  What it can no longer have is a
footer, and a file without one never counts as conforming.

Ways in which a file is incomplete, each reported in `Results.problems`: no header, a wrong schema,
a line that is cut off, malformed or out of place, an id that comes twice, a check of a component
that was not selected, fewer or more checks than were collected, counts in the footer that differ
from the lines, a run that was interrupted, no footer.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from conformance.errors import InternalError, UsageError
from conformance.report.model import (
    OUTCOMES,
    CheckRecord,
    ErrorRecord,
    Footer,
    Header,
    Record,
    Results,
    record_from_json,
)
from conformance.report.policy import PolicyRecord
from conformance.report.shape import RecordError

RESULTS_NAME = "results.jsonl"
JSON_NAME = "report.json"
MARKDOWN_NAME = "report.md"
COUNTEREXAMPLES = "counterexamples"
"""Folder beside the report that holds the inputs of failed checks."""

MAX_PROBLEMS = 20
"""More problems than these are counted, not listed."""


class ResultsWriter:
    """Writes one results file, line by line.

    Opening it removes the results, the reports and the counterexamples of an earlier run from that
    folder: a report that says "conforming" must never lie beside a run that was killed.  The file
    is created afresh, so a link that lies there is not followed.  UsageError when the folder cannot
    be written, or another run is writing there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ids: list[str] = []
        self._collected = 0
        self._counts: Counter[str] = Counter()
        self._written = bytearray()
        _must_be_free(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            for old in (path, path.with_name(JSON_NAME), path.with_name(MARKDOWN_NAME)):
                old.unlink(missing_ok=True)
            _remove_counterexamples(path.with_name(COUNTEREXAMPLES))
            self._file = path.open("xb")
            lock(self._file.fileno())
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(f"cannot write results to {path}: {reason}") from error

    def header(self, header: Header) -> None:
        """Write the first line; `header.collected` is what the footer repeats."""
        self._collected = header.collected
        self._write(header.to_json())

    def check(self, check: CheckRecord | Mapping[str, Any]) -> None:
        """Write one check, given as a record or as the JSON object of one."""
        record = check if isinstance(check, CheckRecord) else _check(check)
        self._counts[record.outcome] += 1
        self._write(record.to_json())
        self.ids.append(record.id)

    def policy(self, policy: PolicyRecord) -> None:
        """Write what the rules of the course found; once, before the footer."""
        self._write(policy.to_json())

    def error(self, message: str, exit_code: int) -> None:
        """Write why there is nothing to grade, or why grading had to stop."""
        self._write(ErrorRecord(message, int(exit_code)).to_json())

    def footer(self, *, finished: str, interrupted: bool = False) -> None:
        """Write the last line.  `finished` is a time; `interrupted`: checks were left out."""
        counts = {outcome: self._counts[outcome] for outcome in OUTCOMES if self._counts[outcome]}
        written = sum(counts.values())
        self._write(Footer(self._collected, written, counts, finished, interrupted).to_json())

    def in_place(self) -> bool:
        """Whether the file at `path` is still the one that is written here, and holds just that.

        Another run into the same folder replaces it; a candidate may have reached it.
        """
        try:
            same = os.path.samestat(os.fstat(self._file.fileno()), os.lstat(self.path))
            return same and self.path.read_bytes() == self._written
        except OSError:
            return False

    @property
    def content(self) -> bytes:
        """What has been written, whatever the file holds by now."""
        return bytes(self._written)

    def results(self) -> Results:
        """The same, read as `read_results` does."""
        return parse_results(self.content)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, data: Mapping[str, Any]) -> None:
        line = json.dumps(data, allow_nan=False).encode("ascii") + b"\n"
        try:
            self._file.write(line)
            self._file.flush()
            self._written += line
        except (OSError, ValueError) as error:
            raise InternalError(f"cannot write results to {self.path}: {error}") from error


def lock(file: int) -> bool:
    """Hold a file as long as it is open; False when somebody else does.

    Where the system cannot do that, True: `in_place` notices a second run as well.
    """
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True
    return True


def _must_be_free(path: Path) -> None:
    """UsageError when another run is writing results to `path`."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return
    try:
        if not lock(file):
            raise UsageError(
                f"another run is writing to {path.parent}; wait for it, or give this one a folder "
                "of its own with --report"
            )
    finally:
        os.close(file)


def _remove_counterexamples(folder: Path) -> None:
    """Remove the files of an earlier run, and their folder unless somebody else uses it."""
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    for old in folder.glob("*.safetensors"):
        old.unlink()
    with contextlib.suppress(OSError):  # it holds files of others
        folder.rmdir()


def _check(data: Mapping[str, Any]) -> CheckRecord:
    try:
        record = record_from_json({"kind": "check", **data})
    except RecordError as error:
        raise InternalError(f"a check was recorded in the wrong shape: {error}") from error
    if not isinstance(record, CheckRecord):
        raise InternalError(f"a {record.kind} was recorded as a check")
    return record


def read_results(path: Path) -> Results:
    """Read a results file.  UsageError when it cannot be read; anything odd becomes a problem."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read results from {path}: {error.strerror or error}") from error
    return parse_results(content)


def parse_results(content: bytes) -> Results:
    """The content of a results file; anything odd becomes a problem."""
    reader = _Reader()
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), start=1):
        reader.take(number, line)
    return reader.finish()


class _Reader:
    """Takes one line after the other, keeps the records, notes every problem."""

    def __init__(self) -> None:
        self.header: Header | None = None
        self.footer: Footer | None = None
        self.error: ErrorRecord | None = None
        self.policy: PolicyRecord | None = None
        self.checks: list[CheckRecord] = []
        self.problems: list[str] = []

    def take(self, number: int, line: bytes) -> None:
        try:
            record = record_from_json(_parse(line))
        except RecordError as error:
            self.problems.append(f"line {number}: {error}")
            return
        if self.footer is not None:
            self.problems.append(f"line {number}: a {record.kind} after the footer")
        elif number == 1 and not isinstance(record, Header | ErrorRecord):
            self.problems.append(f"line 1: a {record.kind} where the header must be")
        self._keep(number, record)

    def _keep(self, number: int, record: Record) -> None:
        match record:
            case Header():
                if number > 1:
                    self.problems.append(f"line {number}: a header that is not the first line")
                self.header = self.header or record
            case CheckRecord():
                self.checks.append(record)
            case PolicyRecord():
                if self.policy is not None:
                    self.problems.append(f"line {number}: a second policy")
                self.policy = self.policy or record
            case Footer():
                self.footer = self.footer or record
            case ErrorRecord():
                self.error = self.error or record

    def finish(self) -> Results:
        if self.error is None:
            self.problems += _inconsistencies(self.header, self.checks, self.footer)
            self.problems += _against_policy(self.header, self.policy)
        if len(self.problems) > MAX_PROBLEMS:
            rest = len(self.problems) - MAX_PROBLEMS
            self.problems[MAX_PROBLEMS:] = [f"and {rest} more problems"]
        return Results(
            self.header,
            tuple(self.checks),
            self.footer,
            self.error,
            self.policy,
            tuple(self.problems),
        )


def _parse(line: bytes) -> Any:
    """One line of strict JSON: no key twice, no NaN, nothing cut off."""
    try:
        return json.loads(
            line.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_constant
        )
    except RecordError:
        raise
    except (ValueError, RecursionError) as error:
        raise RecordError("cut off, or not JSON") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise RecordError("a key comes twice")
    return data


def _no_constant(name: str) -> Any:
    raise RecordError(f"{name} is not JSON")


def _inconsistencies(
    header: Header | None, checks: list[CheckRecord], footer: Footer | None
) -> list[str]:
    """What does not fit together in lines that are well formed one by one."""
    problems = [] if header is None else _against_header(header, checks)
    ids = Counter(check.id for check in checks)
    problems += [f"check {id!r} comes {n} times" for id, n in sorted(ids.items()) if n > 1]
    if footer is None:
        problems.append("the footer is missing (the run was killed, or has not ended yet)")
    else:
        problems += _against_footer(header, checks, footer)
    return problems


def _against_header(header: Header, checks: list[CheckRecord]) -> list[str]:
    strange = {check.component for check in checks} - set(header.selected)
    problems = [f"component {name!r} has checks but was not selected" for name in sorted(strange)]
    missing = header.collected - len(checks)
    if missing > 0:
        problems.append(f"{missing} of {header.collected} collected checks have no result")
    if missing < 0:
        problems.append(f"there are {len(checks)} results for {header.collected} collected checks")
    return problems


def _against_policy(header: Header | None, policy: PolicyRecord | None) -> list[str]:
    """The header says which rules hold; without their record nobody knows if they were kept."""
    wanted = header.policy if header else ""
    found = policy.name if policy else ""
    if wanted == found:
        return []
    if not found:
        return [f"the record of the policy {wanted!r} is missing"]
    return [f"there is a record of the policy {found!r}, where the header names {wanted!r}"]


def _against_footer(header: Header | None, checks: list[CheckRecord], footer: Footer) -> list[str]:
    problems = []
    counts = Counter(check.outcome for check in checks)
    if footer.interrupted:
        problems.append("the run was interrupted")
    if header is not None and footer.collected != header.collected:
        problems.append(
            f"the header collected {header.collected} checks, the footer {footer.collected}"
        )
    if footer.written != len(checks):
        problems.append(f"the footer counts {footer.written} results, the file holds {len(checks)}")
    if {name: n for name, n in footer.counts.items() if n} != dict(counts):
        problems.append("the counts by outcome in the footer differ from the results")
    return problems
