"""The errors a user of the harness may meet, and the exit code that each of them leads to.

Every message is one sentence or two that a reader can act on without seeing our code; the command
line prints it without a traceback.  Nothing here imports anything heavy.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of `conformance` and of `pytest --impl=...`."""

    CONFORMING = 0
    NOT_CONFORMING = 1
    USAGE = 2
    CANNOT_LOAD = 3
    INTERNAL = 4


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


class UsageError(ConformanceError):
    """The command, an option or a configuration file is wrong; nothing was graded."""

    exit_code = ExitCode.USAGE


class LoadError(ConformanceError):
    """The candidate was found but cannot be loaded; `details` holds its own traceback, if any."""

    exit_code = ExitCode.CANNOT_LOAD


class InternalError(ConformanceError):
    """The harness itself failed; never a verdict about the candidate."""

    exit_code = ExitCode.INTERNAL
