"""Who carries the tasks of a batch: threads of this process, or whatever else can take them.

`--executor local` is a thread for each job, which waits for the process that grades. `dask://...`
are the workers of a Dask cluster. Any other name is `module:function`, called with the number of
jobs; it returns something with the two methods of `Executor`, such as
`concurrent.futures.ProcessPoolExecutor`.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from conformance.batch.cluster import SCHEMES, Cluster, is_cluster
from conformance.batch.grade import Result, Task
from conformance.errors import UsageError

LOCAL = "local"

AHEAD = 2
"""Tasks per job that are handed out; the others wait here, where they take no memory."""


class Executor(Protocol):
    """The part of `concurrent.futures.Executor` that a batch needs."""

    def submit(self, fn: Callable[[Task], Result], task: Task, /) -> Future[Result]:
        """Take one task."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Give everything back."""


@dataclass(frozen=True)
class Carrier:
    """An executor, how many submissions it grades at once, and how many it is given at a time."""

    executor: Executor
    jobs: int
    ahead: int


def carrier(name: str, jobs: int | None) -> Carrier:
    """The executor of that name; UsageError where there is none."""
    if is_cluster(name):
        cluster = Cluster(name, jobs)
        # it grades as many at once as it is given, if nobody has said that it may be fewer
        return Carrier(cluster, cluster.jobs, jobs or AHEAD * cluster.jobs)
    many = jobs or max(1, (os.cpu_count() or 2) // 2)
    return Carrier(_executor(name, many), many, AHEAD * many)


def _executor(name: str, jobs: int) -> Executor:
    if name == LOCAL:
        return ThreadPoolExecutor(jobs, thread_name_prefix="grade")
    module, colon, function = name.partition(":")
    if not (module and colon and function) or function.startswith("//"):
        raise UsageError(
            f"--executor {name}: give {LOCAL}, the address of a Dask scheduler "
            f"({', '.join(f'{scheme}HOST:PORT' for scheme in SCHEMES)}), or module:function"
        )
    try:
        made: Executor = getattr(importlib.import_module(module), function)(jobs)
    except Exception as error:
        raise UsageError(f"--executor {name}: {type(error).__name__}: {error}") from None
    if not (hasattr(made, "submit") and hasattr(made, "shutdown")):
        raise UsageError(f"--executor {name}: what it returns cannot take tasks (submit, shutdown)")
    return made
