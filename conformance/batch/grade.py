"""Grading one submission in a process of its own, and the line that is kept of it."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import IO

from conformance.batch import shared
from conformance.batch.child import START
from conformance.batch.content import content_hash, files_hash
from conformance.batch.find import Found
from conformance.batch.memory import tree_mib
from conformance.batch.record import CANDIDATE, INFRASTRUCTURE, Line, Mistake
from conformance.batch.settings import Settings
from conformance.batch.unpack import Refused, unpack
from conformance.candidate.messages import Outcome
from conformance.clean import clean_command
from conformance.course.points import award
from conformance.course.rubric import shown_points
from conformance.errors import ConformanceError, ExitCode
from conformance.report.causes import causes
from conformance.report.model import Results
from conformance.report.stream import JSON_NAME, MARKDOWN_NAME, RESULTS_NAME, read_results
from conformance.report.text import one_line
from conformance.report.verdict import Status, Verdict, VerdictKind, judge

CONSOLE = "console.txt"
"""What `conformance grade` printed, beside its report."""

WORK = ".work"
"""Folder among the results in which archives are unpacked; its files are removed at once."""

POLL = 0.05
SAMPLE = 1.0
REASON = 300
MOST_MISTAKES = 20


@dataclass(frozen=True)
class Task:
    """One submission to be graded; everything here can be sent to another process.

    `done` are contents that have been graded before. `start` is the program that grades, `cwd` the
    folder from which the settings name files.
    """

    found: Found
    out: Path
    settings: Settings
    done: frozenset[str] = frozenset()
    secret: bytes | None = None
    start: str = START
    cwd: Path = field(default_factory=Path.cwd)

    @property
    def folder(self) -> Path:
        """Where its report goes."""
        return self.out / self.found.name


@dataclass(frozen=True)
class Result:
    """What became of a task; `line` is None where it had been graded before."""

    name: str
    sha256: str
    line: Line | None


def grade(task: Task, given_up: Callable[[], bool] = lambda: False) -> Result:
    """Grade one submission. Whatever goes wrong, there is a line that says so.

    When `given_up` becomes true it ends at once with what it has started.
    """
    began = time.monotonic()
    content = ""
    try:
        content = content_hash(task.found.path)
        if content in task.done:
            return Result(task.found.name, content, None)
        line = _graded(task, blank(task, content), given_up)
    except Refused as refused:
        reason = f"the archive is refused: {refused}"
        line = replace(blank(task, content), failure=CANDIDATE, reason=reason)
    except Exception as error:  # a mistake of ours must not take the others along
        known = isinstance(error, ConformanceError | OSError)
        text = str(error) if known else f"internal error: {type(error).__name__}: {error}"
        line = replace(blank(task, content), reason=one_line(text, REASON))
    seconds = round(time.monotonic() - began, 2)
    return Result(task.found.name, content, replace(line, seconds=seconds))


def blank(task: Task, content: str, reason: str = "") -> Line:
    """The line of a submission about which nothing is known yet."""
    return Line(
        task.found.name,
        content,
        task.settings.mark,
        verdict=VerdictKind.ERROR.value,
        failure=INFRASTRUCTURE,
        reason=reason,
    )


def _graded(task: Task, line: Line, given_up: Callable[[], bool]) -> Line:
    work = task.out / WORK / task.found.name
    shutil.rmtree(work, ignore_errors=True)
    try:
        path = unpack(task.found.path, work) if task.found.is_archive else task.found.path
        line = replace(line, files=files_hash(path))
        code, peak = _run(task, path, given_up)
        line = replace(line, exit_code=code, peak_mib=round(peak, 1))
        line = _judged(task, line, code)
        return replace(line, reason=_without(line.reason, path, task.found.name))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _without(reason: str, path: Path, name: str) -> str:
    """A reason that does not name a folder which is gone."""
    return one_line(reason.replace(str(path), name), REASON)


# -- the process ---------------------------------------------------------------------------------

_running: set[subprocess.Popen[bytes]] = set()
_stopping = False
_guard = Lock()


def begin() -> None:
    """Allow processes to be started, after a batch that was interrupted."""
    global _stopping
    with _guard:
        _stopping = False


def end_all() -> None:
    """End everything that is being graded in this process, and start nothing more."""
    global _stopping
    with _guard:
        _stopping = True
        for process in _running:
            _kill(process)


def _run(task: Task, path: Path, given_up: Callable[[], bool]) -> tuple[int | None, float]:
    """Exit code (None: it took too long) and the largest memory in MiB."""
    folder = task.folder
    folder.mkdir(parents=True, exist_ok=True)
    for old in (RESULTS_NAME, JSON_NAME, MARKDOWN_NAME, CONSOLE):  # of an earlier run
        (folder / old).unlink(missing_ok=True)
    theirs, ours = os.pipe()  # by which it sees when we are gone
    try:
        with (folder / CONSOLE).open("xb") as console:
            process = _start(task, path, theirs, console)
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    try:
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                pipe.write(task.secret or b"")
        return _watch(process, task.settings.limit, given_up)
    finally:
        with _guard:
            _kill(process)
            _running.discard(process)
        process.wait()
        os.close(ours)


def _start(task: Task, path: Path, pipe: int, console: IO[bytes]) -> subprocess.Popen[bytes]:
    server = shared.server() if task.settings.forks else None
    passed = (pipe,) if server is None else (pipe, server.connection.fileno())
    command = _command(task, path, passed)
    with _guard:
        if _stopping:
            raise ConformanceError("interrupted")
        process = subprocess.Popen(
            command,
            cwd=task.cwd,
            stdin=subprocess.DEVNULL if task.secret is None else subprocess.PIPE,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=passed,
        )
        _running.add(process)
    return process


def _command(task: Task, path: Path, passed: Sequence[int]) -> list[str]:
    words = ["grade", str(path.absolute()), "--gate", f"--report={task.folder.absolute()}"]
    words += task.settings.words
    told = ",".join(map(str, passed))
    return clean_command("conformance", words, str(path), task.start, told)


def _watch(
    process: subprocess.Popen[bytes], limit: float, given_up: Callable[[], bool]
) -> tuple[int | None, float]:
    began = time.monotonic()
    peak, sampled = 0.0, began - SAMPLE / 2
    while not _ended(process):
        now = time.monotonic()
        if now - began > limit:
            return None, peak
        if given_up():
            raise ConformanceError("interrupted")
        if now - sampled >= SAMPLE:
            peak, sampled = max(peak, tree_mib(process.pid, shared.pid())), now
        time.sleep(POLL)
    with _guard:
        _kill(process)  # what it has left behind; its number is not anybody else's yet
    return process.wait(), peak


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended; where the system can say that without forgetting its number."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return bool(os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG))
    except ChildProcessError:
        return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process with its group, unless it has been waited for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


# -- what it wrote -------------------------------------------------------------------------------


def _judged(task: Task, line: Line, code: int | None) -> Line:
    """The line with what the results say, where they agree with the exit code."""
    if code is None:
        minutes = task.settings.limit / 60
        return replace(line, reason=f"ended after {minutes:g} minutes: grading took too long")
    said = _last_words(task.folder / CONSOLE)
    path = task.folder / RESULTS_NAME
    if not path.is_file():
        return replace(line, reason=f"exit code {code} and no results: {said}")
    results = read_results(path)
    verdict = judge(results)
    if verdict.exit_code != code:
        told = f"exit code {code}, but the results say {verdict.kind.value}"
        return replace(line, reason=f"{told}: {said}")
    line = replace(
        line,
        verdict=verdict.kind.value,
        failure=_blame(verdict),
        reason=(verdict.error or verdict.headline).partition("\n")[0],
    )
    line = _with_points(task, line, results, verdict)
    return line if line.failure else _with_details(line, results, verdict)


def _blame(verdict: Verdict) -> str:
    if verdict.exit_code in (ExitCode.CONFORMING, ExitCode.NOT_CONFORMING):
        return ""
    return CANDIDATE if verdict.exit_code is ExitCode.CANNOT_LOAD else INFRASTRUCTURE


def _with_points(task: Task, line: Line, results: Results, verdict: Verdict) -> Line:
    rubric = task.settings.rubric
    if rubric is None:
        return line
    given = award(results, rubric, verdict)
    if given.blame:
        why = line.reason if line.failure else given.reason
        return replace(line, failure=given.blame.value, reason=why)
    points, total = (float(shown_points(value)) for value in (given.points, given.total))
    return replace(line, points=points, of=total)


def _with_details(line: Line, results: Results, verdict: Verdict) -> Line:
    absent = [c.name for c in verdict.components if c.status is Status.NOT_IMPLEMENTED]
    counted = results.header.counted if results.header else ()
    failed = {
        check.requirement
        for check in results.checks
        if check.missed
        and check.level in counted
        and check.outcome != Outcome.NOT_IMPLEMENTED
        and check.component not in absent
    }
    order = [component.name for component in verdict.components]
    found = causes(results.ordered(), order)[:MOST_MISTAKES]
    mistakes = (
        Mistake(c.diagnosis.fault, c.place, c.diagnosis.sentence, len(c.checks)) for c in found
    )
    return replace(
        line,
        score=round(verdict.score, 6) if math.isfinite(verdict.score) else 0.0,
        failed=tuple(sorted(failed)),
        absent=tuple(absent),
        mistakes=tuple(mistakes),
    )


def _last_words(console: Path) -> str:
    """The last line that was printed."""
    try:
        with console.open("rb") as file:
            file.seek(max(0, console.stat().st_size - 4096))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return "nothing was printed"
    lines = [row for row in text.splitlines() if row.strip()]
    return one_line(lines[-1], REASON) if lines else "nothing was printed"
