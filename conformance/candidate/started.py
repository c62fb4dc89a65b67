"""A candidate's process that was started from nothing: what the judge can ask of it and do to it.

`Started` and `forkserver.Forked` are the two ways to a process; `Link` does not ask which it is.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Protocol, cast

from conformance.candidate import limits
from conformance.candidate.sandbox import Sandbox


class Process(Protocol):
    """A process with the candidate in it, in whatever way it came to be."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]
    #: the number under which it has the file for stacks open; None where none can be passed on
    stacks: int | None

    def poll(self) -> int | None:
        """Its exit status as `subprocess` has it; None as long as it runs."""

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, at most so long."""

    def own(self) -> Any:
        """The candidate's own process (of psutil); None where it is not there."""

    def pid(self) -> int:
        """The number of that process, or of what leads to it as long as it is not there."""

    def usage(self) -> tuple[int, int]:
        """(bytes of memory, number of processes beside the candidate's own), with all it started.
        Takes milliseconds."""

    def kill(self) -> None:
        """End it and everything it started; returns when that is gone."""


class Started:
    """A process that this one has started, with what the sandbox needs around it."""

    def __init__(
        self,
        command: Sequence[str],
        sandbox: Sandbox,
        environment: dict[str, str],
        scratch: Path,
        stacks: IO[bytes],
    ) -> None:
        """Raises OSError where the system does not start it."""
        options = dict(limits.spawn_options())
        self.stacks = stacks.fileno() if limits.POSIX else None
        if self.stacks is not None:
            options["pass_fds"] = (self.stacks,)
        self._process = subprocess.Popen(
            sandbox.wrap(list(command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=str(scratch),
            env=environment,
            **options,
        )
        self.stdin = cast(IO[bytes], self._process.stdin)
        self.stdout = cast(IO[bytes], self._process.stdout)
        self.stderr = cast(IO[bytes], self._process.stderr)
        self._depth = sandbox.depth
        self._own: Any = None

    def poll(self) -> int | None:
        """Its exit status as `subprocess` has it; None as long as it runs."""
        return limits.exit_status(self._process.poll(), wrapped=self._depth > 1)

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, at most so long."""
        limits.wait(self._process, seconds)

    def own(self) -> Any:
        """The candidate's own process (of psutil); None where it is not there."""
        if self._own is None:
            self._own = limits.below(self._process.pid, self._depth)
        return self._own

    def pid(self) -> int:
        """The number of that process, or of what leads to it as long as it is not there."""
        own = self.own() if self._depth else None
        return self._process.pid if own is None else int(own.pid)

    def usage(self) -> tuple[int, int]:
        """(bytes of memory, number of processes beside the candidate's own)."""
        total, processes = limits.usage(self._process.pid)
        # those between the judge and the candidate's own process do not count
        return total, processes - self._depth

    def kill(self) -> None:
        """End it and everything it started; returns when that is gone."""
        limits.kill(self._process, depth=self._depth)
