"""Who carries the tasks of a batch: threads of this process, or whatever else can take them.

`--executor local` is a thread for each job, which waits for the process that grades. Any other name
is `module:function`, called with the number of jobs; it returns something with the two methods of
`Executor`, such as `concurrent.futures.ProcessPoolExecutor` or, for several machines that share
their files, `dask.distributed.Client(...).get_executor()`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from conformance.batch.grade import Result, Task
from conformance.errors import UsageError

LOCAL = "local"


class Executor(Protocol):
    """The part of `concurrent.futures.Executor` that a batch needs."""

    def submit(self, fn: Callable[[Task], Result], task: Task, /) -> Future[Result]:
        """Take one task."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Give everything back."""


def executor(name: str, jobs: int) -> Executor:
    """The executor of that name; UsageError where there is none."""
    if name == LOCAL:
        return ThreadPoolExecutor(jobs, thread_name_prefix="grade")
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise UsageError(f"--executor {name}: give {LOCAL}, or module:function")
    try:
        made: Executor = getattr(importlib.import_module(module), function)(jobs)
    except Exception as error:
        raise UsageError(f"--executor {name}: {type(error).__name__}: {error}") from None
    if not (hasattr(made, "submit") and hasattr(made, "shutdown")):
        raise UsageError(f"--executor {name}: what it returns cannot take tasks (submit, shutdown)")
    return made
