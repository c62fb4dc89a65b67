"""The import of torch that the submissions of a class share: one fork server for each process that
grades, started when the first of them needs it."""

from __future__ import annotations

from threading import Lock

from conformance.candidate.forkserver import ForkServer
from conformance.errors import ConformanceError

_server: ForkServer | None = None
_failed = False
_guard = Lock()


def server() -> ForkServer | None:
    """The server, started now if there is none; None where it cannot be started."""
    global _server, _failed
    with _guard:
        if _server is None and not _failed:
            try:
                _server = ForkServer.start()
            except (OSError, ConformanceError):
                _failed = True  # then everyone imports torch
        return _server


def pid() -> int | None:
    """The number of its process; None where there is none."""
    return _server.pid if _server is not None else None


def close() -> None:
    """End it, if there is one."""
    global _server, _failed
    with _guard:
        if _server is not None:
            _server.close()
        _server, _failed = None, False
