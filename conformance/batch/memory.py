"""Memory of processes, as the system tells it from outside."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def tree_mib(pid: int, server: int | None = None) -> float:
    """Resident memory in MiB of a process and all below it; 0 when it is gone.

    Of a fork server those count that have gone into a namespace of the first process's. Pages that
    several of them share are counted for each: it is never less than what they take.
    """
    import psutil  # type: ignore[import-untyped]

    total = 0
    try:
        first = psutil.Process(pid)
        family = [first, *first.children(recursive=True)]
        forked = psutil.Process(server).children(recursive=True) if server is not None else []
    except psutil.Error:
        return 0.0
    inside = {_namespace(process.pid) for process in family} - {_namespace(pid), None}
    for process in (*family, *(p for p in forked if _namespace(p.pid) in inside)):
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total / (1 << 20)


def _namespace(pid: int) -> str | None:
    """Which processes this one sees, by the system's name for them."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def own_peak_mib() -> float:
    """The most that this process itself has taken, in MiB; 0 where the system does not say."""
    try:  # getrusage also tells what the process had taken that this one was started from
        status = Path("/proc/self/status").read_text("ascii", "replace")
        return int(status.partition("VmHWM:")[2].split()[0]) / (1 << 10)
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource
    except ImportError:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
