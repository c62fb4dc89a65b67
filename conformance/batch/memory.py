"""Memory of processes, as the system tells it from outside."""

from __future__ import annotations

import sys


def tree_mib(pid: int) -> float:
    """Resident memory in MiB of a process and all below it; 0 when it is gone.

    Pages that several of them share are counted for each: it is never less than what they take.
    """
    import psutil  # type: ignore[import-untyped]

    total = 0
    try:
        first = psutil.Process(pid)
        for process in (first, *first.children(recursive=True)):
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
    except psutil.Error:
        return 0.0
    return total / (1 << 20)


def own_peak_mib() -> float:
    """The most that this process itself has taken, in MiB; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
