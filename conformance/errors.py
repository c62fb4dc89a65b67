"""The errors a user of the harness may meet, and the exit code that each of them leads to.

Every message is one sentence or two that a reader can act on without seeing our code; the command
line prints it without a traceback.  Nothing here imports anything heavy.
"""

from __future__ import annotations

import os
from enum import IntEnum
from pathlib import Path

TRACEBACK = "CONFORMANCE_TRACEBACK"
"""Environment variable that makes internal errors show where in our code they come from."""


class ExitCode(IntEnum):
    """Exit codes of `conformance` and of `pytest --impl=...`."""

    CONFORMING = 0
    NOT_CONFORMING = 1
    USAGE = 2
    CANNOT_LOAD = 3
    INTERNAL = 4
    NO_SANDBOX = 5


class ConformanceError(Exception):
    """Base of everything the harness raises on purpose; `exit_code` says how a run then ends."""

    exit_code: ExitCode = ExitCode.INTERNAL

    def __init__(self, message: str, *, details: str = "") -> None:
        super().__init__(message)
        self.message = message
        #: more lines for the curious (the candidate's own traceback, what it printed); may be empty
        self.details = details

    def __str__(self) -> str:
        return self.message

    @property
    def text(self) -> str:
        """Message and details."""
        return "\n".join(filter(None, (self.message, self.details)))


class UsageError(ConformanceError):
    """The command, an option or a configuration file is wrong; nothing was graded."""

    exit_code = ExitCode.USAGE


class LoadError(ConformanceError):
    """The candidate was found but cannot be loaded; `details` holds its own traceback, if any."""

    exit_code = ExitCode.CANNOT_LOAD


class SandboxError(ConformanceError):
    """A sandbox is demanded and there is none; nothing was graded."""

    exit_code = ExitCode.NO_SANDBOX


class InternalError(ConformanceError):
    """The harness itself failed; never a verdict about the candidate."""

    exit_code = ExitCode.INTERNAL


def internal_error(error: BaseException, doing: str) -> InternalError:
    """An unforeseen exception as an error with one clear message; `doing` says what failed."""
    if isinstance(error, InternalError):  # it has a clear message already
        return InternalError(f"{doing}: {error.message}", details=error.details)
    text = f"{type(error).__name__}: {error}".strip(": ")
    place = _place(error)
    message = f"{doing}: internal error: {text}{f' ({place})' if place else ''}"
    return InternalError(f"{message}. This is a mistake of the suite", details=_traceback(error))


def _place(error: BaseException) -> str:
    """Where in the suite an exception comes from: `conformance/session.py:120`."""
    package = Path(__file__).parent
    place, trace = "", error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(package):
            place = f"{path.relative_to(package.parent).as_posix()}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _traceback(error: BaseException) -> str:
    if not os.environ.get(TRACEBACK):
        return f"{TRACEBACK}=1 in the environment shows where it happened"
    import traceback

    return "".join(traceback.format_exception(error))
