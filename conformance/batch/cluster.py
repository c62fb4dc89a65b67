"""`--executor dask://HOST:PORT`: the tasks of a batch on the workers of a Dask cluster.

The workers see the same files under the same paths, and have the same version of this suite.
Each is asked before it gets a task. A task whose batch has gone, stopped or killed, ends on its
worker with all that it started: the scheduler takes it back, and the worker looks for that while it
grades.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from pathlib import Path
from threading import Lock
from typing import Any

from conformance import SPEC_VERSION, __version__
from conformance.batch import shared
from conformance.batch.content import content_hash
from conformance.batch.grade import REASON, WORK, Result, Task, blank, grade
from conformance.errors import InternalError, UsageError
from conformance.report.figures import plural
from conformance.report.text import one_line

SCHEMES = ("dask://", "tcp://", "tls://")

HERE = "dask://local"
"""A cluster of processes on this machine, for as long as the batch."""

PATIENCE = 15.0
"""Seconds for a scheduler to answer, for its first worker, and for tasks to end."""

NOT_INSTALLED = (
    "Dask is not installed here; `pip install 'transformer-conformance[dask]'`, on the workers too"
)


class Unshared(Exception):
    """A worker does not see the files of the batch."""


# -- on a worker ---------------------------------------------------------------------------------

_active: Counter[str] = Counter()
"""How many tasks of each folder of results are at work in this process."""
_guard = Lock()


def carry(task: Task, token: str) -> Result:
    """Grade on a worker, for as long as somebody waits for it. Raises Unshared."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    missing = unseen(str(task.out), token, str(task.found.path))
    if missing:
        raise Unshared(f"the worker {worker.address} does not see {missing}; {SHARE}")
    with _guard:
        _active[str(task.out)] += 1
    try:
        return grade(task, lambda: _given_up(worker, key))
    finally:
        with _guard:
            _active[str(task.out)] -= 1


def _given_up(worker: Any, key: Any) -> bool:
    """Whether nobody waits for it any more: it was cancelled, or who gave it has gone."""
    if worker.status.name not in ("running", "paused"):
        return True
    state = worker.state.tasks.get(key)
    return state is None or state.state not in ("executing", "long-running")


def unseen(out: str, token: str, submission: str) -> str:
    """The folder or archive that this process does not see; empty when it sees all of them."""
    try:
        if (Path(out) / WORK / TOKEN).read_text("utf-8") != token:
            return out
    except (OSError, ValueError):
        return out
    return "" if os.access(submission, os.R_OK) else submission


def _versions() -> list[str]:
    return [__version__, SPEC_VERSION]


async def _settled(out: str) -> bool:
    """Whether everything that this worker did for a folder of results has ended, after a while."""
    for _ in range(int(PATIENCE / 0.1)):
        if not _active[out]:
            if not any(_active.values()):  # nor for another folder
                await asyncio.to_thread(shared.close)
            return True
        await asyncio.sleep(0.1)
    return False


# -- on the side of the batch --------------------------------------------------------------------

TOKEN = "token"
"""File in the folder of the results by which a worker shows that it is the same folder."""

SHARE = "workers need the files of this machine under the same paths, on a shared file system"


def is_cluster(name: str) -> bool:
    """Whether `--executor NAME` means Dask."""
    return name.startswith(SCHEMES)


class Cluster:
    """The workers of one scheduler, as an executor.

    `jobs` is how many submissions are graded at once: what is given, or one for each thread of the
    workers.
    """

    def __init__(self, name: str, jobs: int | None) -> None:
        """Connect, and see that there are workers with the same suite. Raises UsageError."""
        self.name = name
        self._token = secrets.token_hex(16)
        self._out: Path | None = None
        self._local, self._client = _connected(name, jobs)
        try:
            threads = self._threads()
            self._same_versions()
        except BaseException:
            self._close()
            raise
        self.jobs = jobs or threads
        self._executor: Any = self._client.get_executor(pure=False)

    def submit(self, fn: Callable[[Task], Result], task: Task, /) -> Future[Result]:
        """Hand one task out; `fn` is what `carry` calls. Raises UsageError before the first one."""
        if self._out is None:
            self._prepare(task)
        key = f"grade {ascii(task.found.name)[1:-1]} {secrets.token_hex(4)}"
        told: Future[Result] = Future()
        try:
            given = self._executor.submit(carry, task, self._token, key=key)
        except Exception as error:
            raise InternalError(f"{self.name}: {_words(error)}; {AGAIN}") from None

        def hand_on(done: Future[Result]) -> None:
            try:
                told.set_result(_result(done, task))
            except BaseException as error:
                told.set_exception(self._lost(error))

        given.add_done_callback(hand_on)
        told.add_done_callback(lambda it: given.cancel() if it.cancelled() else None)
        return told

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take back what is not done, wait until it has ended, and let go of the cluster."""
        with contextlib.suppress(Exception):
            self._executor.shutdown(wait=wait and not cancel_futures)
        if self._out is not None:
            with contextlib.suppress(Exception):
                self._client.run(_settled, str(self._out), on_error="ignore")
        self._close()

    def _threads(self) -> int:
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except Exception:
            raise UsageError(
                f"--executor {self.name}: the scheduler has no worker; start some with "
                "`dask worker SCHEDULER --nthreads N`, N submissions at once on each"
            ) from None
        threads: Mapping[str, int] = self._client.nthreads()
        return max(1, sum(threads.values()))

    def _same_versions(self) -> None:
        asked = self._asked(_versions)
        for worker, answer in asked.items():
            if isinstance(answer, BaseException):
                raise UsageError(
                    f"--executor {self.name}: the worker {worker} cannot import this suite "
                    f"({_words(answer)}); install version {__version__} there, with torch"
                )
            if answer != _versions():
                raise UsageError(
                    f"--executor {self.name}: the worker {worker} has version {answer[0]} of the "
                    f"suite (specification {answer[1]}), this is {__version__} ({SPEC_VERSION}); "
                    "install the same"
                )

    def _prepare(self, task: Task) -> None:
        """See that each worker has the files, and that no earlier batch is still at work there."""
        (task.out / WORK / TOKEN).write_text(self._token, "utf-8")
        words = str(task.out), self._token, str(task.found.path)
        for worker, answer in self._asked(unseen, *words).items():
            if answer:
                what = _words(answer) if isinstance(answer, BaseException) else answer
                raise UsageError(
                    f"--executor {self.name}: the worker {worker} does not see {what}; {SHARE}"
                )
        for worker, answer in self._asked(_settled, str(task.out)).items():
            if answer is not True:
                raise UsageError(
                    f"--executor {self.name}: the worker {worker} is still at work for an earlier "
                    f"batch in {task.out}; wait for it, or start it anew"
                )
        self._out = task.out

    def _asked(self, question: Callable[..., Any], *words: str) -> Mapping[str, Any]:
        try:
            return dict(self._client.run(question, *words, on_error="return"))
        except Exception as error:
            raise UsageError(f"--executor {self.name}: {_words(error)}") from None

    def _lost(self, error: BaseException) -> InternalError:
        if isinstance(error, CancelledError):
            return InternalError(f"the scheduler {self.name} is lost or has let go of it; {AGAIN}")
        return InternalError(f"{self.name}: {_words(error)}; {AGAIN}")

    def _close(self) -> None:
        for one in (self._client, self._local):
            if one is not None:
                with contextlib.suppress(Exception):
                    one.close()


AGAIN = "the same command goes on from here"


def _result(done: Future[Result], task: Task) -> Result:
    """What a task came to; that its workers died, or see other files, costs only itself.

    Raises what else has happened to it.
    """
    from distributed import KilledWorker

    try:
        return done.result()
    except Unshared as error:
        reason = str(error)
    except KilledWorker as error:
        many = error.allowed_failures + 1
        reason = f"{plural(many, 'Dask worker')} died while grading it"
    content = content_hash(task.found.path)
    return Result(task.found.name, content, blank(task, content, one_line(reason, REASON)))


def _connected(name: str, jobs: int | None) -> tuple[Any, Any]:
    """A cluster of our own, if it is one, and the client. Raises UsageError."""
    address = name.replace("dask://", "tcp://", 1)
    if name == "dask://":
        raise UsageError(f"--executor {name}: give dask://HOST:PORT of a scheduler, or {HERE}")
    try:
        import dask

        # what it has to say is said by the messages here
        dask.config.set({"logging": dict.fromkeys(LOGGERS, "critical")})
        distributed: Any = importlib.import_module("distributed")
    except ModuleNotFoundError as error:
        if error.name not in ("dask", "distributed"):
            raise
        raise UsageError(f"--executor {name}: {NOT_INSTALLED}") from None
    for logger in LOGGERS:  # it may have been imported before
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    local = None
    try:
        if name == HERE:
            many = jobs or max(1, (os.cpu_count() or 2) // 2)
            local = distributed.LocalCluster(
                n_workers=many, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
            )
        client = distributed.Client(
            local or address, timeout=PATIENCE, set_as_default=False, name="grade-all"
        )
    except Exception as error:
        if local is not None:
            local.close()
        raise UsageError(
            f"--executor {name}: no Dask scheduler answers there ({_words(error)}); `dask "
            "scheduler` starts one and prints its address"
        ) from None
    return local, client


LOGGERS = ("distributed", "distributed.client", "distributed.nanny", "distributed.worker")


def _words(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}".rstrip(": "), 200)
