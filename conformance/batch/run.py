"""The course of a batch: what is left to do, one line for each that is done, then the table."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path

from conformance.batch import shared
from conformance.batch.child import START
from conformance.batch.executors import LOCAL, Carrier, carrier
from conformance.batch.find import Found
from conformance.batch.grade import WORK, Result, Task, begin, end_all, grade
from conformance.batch.record import INFRASTRUCTURE, Line, Record
from conformance.batch.settings import Settings
from conformance.batch.table import Effort, write_table
from conformance.errors import ConformanceError, ExitCode, InternalError
from conformance.report.figures import shown_score


@dataclass(frozen=True)
class Batch:
    """What is to be graded, and how.

    `jobs` at once, or as many as the executor is made for. `again`: also what ended as an
    infrastructure failure. `others` lie beside the submissions and are passed over.
    """

    found: Sequence[Found]
    out: Path
    settings: Settings
    jobs: int | None = 1
    again: bool = False
    executor: str = LOCAL
    secret: bytes | None = None
    start: str = START
    others: Sequence[Path] = ()

    def run(self, say: Callable[[str], None]) -> ExitCode:
        """Grade what is not in the record yet, and write the table of all.

        CONFORMING when every submission has a verdict, INTERNAL when there is an infrastructure
        failure. Raises UsageError, and InternalError where the record cannot be written.
        """
        began = time.monotonic()
        with Record(self.out, self.settings.mark) as record:
            taken = carrier(self.executor, self.jobs)
            begin()
            work = self.out / WORK
            shutil.rmtree(work, ignore_errors=True)  # of a batch that was killed
            work.mkdir(mode=0o700)
            try:
                contents, graded = self._grade_all(record, taken, say)
            except BaseException:
                end_all()
                raise
            finally:
                taken.executor.shutdown(wait=True, cancel_futures=True)
                shared.close()
                shutil.rmtree(work, ignore_errors=True)
            effort = Effort(graded, time.monotonic() - began, taken.jobs)
            return self._conclude(record, contents, effort, say)

    def _grade_all(
        self, record: Record, taken: Carrier, say: Callable[[str], None]
    ) -> tuple[dict[str, str], int]:
        """Name -> content of every submission, and how many were graded just now."""
        contents: dict[str, str] = {}
        graded = 0
        for result in self._results(record, taken):
            contents[result.name] = result.sha256
            place = f"[{len(contents)}/{len(self.found)}] {ascii(result.name)[1:-1]}"
            if result.line is None:
                say(f"{place}: graded before")
                continue
            record.add(result.line)
            graded += 1
            say(f"{place}: {_shown(result.line)}")
        return contents, graded

    def _results(self, record: Record, taken: Carrier) -> Iterator[Result]:
        done = record.done(self.again)
        waiting = iter(self.found)
        pending: set[Future[Result]] = set()
        while True:
            for found in waiting:
                before = done.get(found.name, frozenset())
                task = Task(found, self.out, self.settings, before, self.secret, self.start)
                pending.add(taken.executor.submit(grade, task))
                if len(pending) >= taken.ahead:
                    break
            if not pending:
                return
            ended, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in ended:
                yield _result(future)

    def _conclude(
        self,
        record: Record,
        contents: dict[str, str],
        effort: Effort,
        say: Callable[[str], None],
    ) -> ExitCode:
        table = write_table(record, contents)
        table.write(self.out, effort, [path.name for path in self.others])
        for names in table.identical:
            say(f"warning: identical files: {', '.join(ascii(name)[1:-1] for name in names)}")
        say(table.headline)
        say(f"Report: {self.out / 'class.md'}")
        return ExitCode.INTERNAL if table.infrastructure else ExitCode.CONFORMING


def _result(future: Future[Result]) -> Result:
    try:
        return future.result()
    except ConformanceError:
        raise
    except Exception as error:  # `grade` raises nothing: what carries it has failed
        raise InternalError(
            f"the executor has lost a task: {type(error).__name__}: {error}; the same command "
            "goes on from here"
        ) from None


def _shown(line: Line) -> str:
    if line.failure:
        word = "INFRASTRUCTURE FAILURE" if line.failure == INFRASTRUCTURE else "cannot be graded"
        return f"{word}: {line.reason}"
    points = "" if line.points is None else f", {line.points:g} of {line.of:g} points"
    return f"{line.verdict}, score {shown_score(line.score or 0.0)}{points}"
