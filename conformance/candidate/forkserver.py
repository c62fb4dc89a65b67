"""Workers that need not import torch: a process that has done so divides for each of them.

The server runs no code of a candidate and sees none of its files. For each worker bubblewrap makes
a sandbox as always (`Namespaces`); the server forks, the child enters that sandbox, gives up all
privileges and goes on as if it had been started there. Descriptors of the pipes and of the
namespaces come with the request; nothing else is shared but what `import torch` leaves in memory.

Only with bubblewrap: without a sandbox a candidate could reach the server, and so the workers of
others. Only for the CPU, because a GPU's driver does not outlive a fork. Only under the judge's own
interpreter, because the server is outside every sandbox.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import IO, Any

from conformance.candidate import limits, worker
from conformance.candidate.namespaces import FURTHER, Namespaces
from conformance.candidate.sandbox import LINUX, Sandbox, own_copy
from conformance.candidate.scratch import Scratch


class ForkServer:
    """The judge's side of the server. Several processes may hold the same one and ask it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Scratch | None = None

    @classmethod
    def start(cls) -> ForkServer:
        """Starts one; it imports torch while we do other things. Raises OSError, UsageError."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server = cls(ours)
        server._folder = Scratch()
        folder = server._folder.path
        script = folder / "worker.py"
        try:
            shutil.copyfile(worker.__file__, script)
            program = own_copy(Path(sys.executable), folder / "python")
            words = ["serve", str(theirs.fileno()), limits.user_site(Path(sys.executable)) or ""]
            server._process = subprocess.Popen(
                [sys.executable, "-I", "-X", "utf8", "-u", str(script), *words],
                executable=str(program),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=str(folder),
                env={**limits.environment("cpu", folder), **_libraries()},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except BaseException:
            server.close()
            raise
        finally:
            theirs.close()
        return server

    @property
    def pid(self) -> int | None:
        """The number of its process, where it was started here."""
        return self._process.pid if self._process else None

    def ask(self, request: dict[str, Any], descriptors: list[int]) -> None:
        """Asks for a worker. Raises OSError where the server is gone."""
        socket.send_fds(self.connection, [json.dumps(request).encode()], descriptors)

    def close(self) -> None:
        """Gives it up. It ends when nobody holds it any more, at once where it was started here."""
        self.connection.close()
        if self._process is not None:
            limits.kill(self._process)
        if self._folder is not None:
            self._folder.remove()


def _libraries() -> dict[str, str]:
    """Where the copy finds the library of Python, which may be named relative to the program."""
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return {}
    known = os.environ.get("LD_LIBRARY_PATH")
    folder = str(sysconfig.get_config_var("LIBDIR") or "")
    return {"LD_LIBRARY_PATH": os.pathsep.join(p for p in (folder, known) if p)}


def possible(sandbox_mode: str, device: str, python: Path) -> bool:
    """Whether workers that are started in this way may be forked."""
    ours = python == Path(sys.executable)
    boxed = sandbox_mode != "off" and shutil.which("bwrap") is not None
    return LINUX and ours and device == "cpu" and boxed


_inherited: ForkServer | None = None


def inherit(descriptor: int) -> None:
    """Use the server at the other end of this socket, which the process that started us holds."""
    global _inherited
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    _inherited = ForkServer(connection)


def inherited() -> ForkServer | None:
    """The server that was there before this process."""
    return _inherited


class Forked:
    """A candidate's process that a fork server has made, in a sandbox of its own."""

    stacks: int | None = worker.STACKS
    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    def __init__(
        self,
        server: ForkServer,
        python: Path,
        sandbox: Sandbox,
        environment: dict[str, str],
        scratch: Path,
        stacks: IO[bytes],
    ) -> None:
        """Raises OSError where the sandbox does not come up or the server is gone."""
        self._code: int | None = None
        self._number: int | None = None
        self._own: Any = None
        self._told = b""
        self._sandbox = Namespaces(python, sandbox, environment, scratch)
        theirs: list[int] = []
        ours: list[int] = []
        try:
            # stdin, stdout, stderr, and what becomes of it
            for outgoing in (True, False, False, False):
                reader, writer = os.pipe()
                ours.append(writer if outgoing else reader)
                theirs.append(reader if outgoing else writer)
            passed = [*theirs[:3], stacks.fileno(), theirs[3], *self._sandbox.descriptors]
            request = {
                "environment": environment,
                "folder": str(scratch),
                "descriptors": len(passed),
            }
            server.ask(request, passed)
        except BaseException:
            for number in ours:
                os.close(number)
            self._sandbox.close()
            raise
        finally:
            for number in theirs:
                os.close(number)
        self.stdin = os.fdopen(ours[0], "wb", buffering=0)
        self.stdout = os.fdopen(ours[1], "rb", buffering=0)
        self.stderr = os.fdopen(ours[2], "rb", buffering=0)
        self._status = os.fdopen(ours[3], "rb", buffering=0)

    def _listen(self, seconds: float) -> None:
        """Reads what the server tells of the process: its number, then how it ended."""
        until = time.monotonic() + seconds
        while self._code is None and not self._status.closed:
            left = max(0.0, until - time.monotonic())
            ready, _, _ = select.select([self._status], [], [], left)
            if not ready:
                return
            said = self._status.read(256)
            self._told += said
            for line in self._told.splitlines():
                word, _, number = line.partition(b" ")
                if word == b"started":
                    self._number = int(number)
                elif word == b"ended":
                    self._code = os.waitstatus_to_exitcode(int(number))
            if not said and self._code is None:
                self._code = 1  # it never came to be, or nobody knows how it ended

    def poll(self) -> int | None:
        """Its exit status as `subprocess` has it; None as long as it runs."""
        self._listen(0.0)
        return self._code

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, at most so long."""
        self._listen(seconds)

    def own(self) -> Any:
        """The candidate's own process (of psutil); None where it is not there."""
        import psutil  # type: ignore[import-untyped]

        self._listen(0.0)
        if self._own is None and self._number is not None:
            with contextlib.suppress(psutil.Error):
                self._own = psutil.Process(self._number)
        return self._own

    def pid(self) -> int:
        """The number of that process, or of what leads to it as long as it is not there."""
        own = self.own()
        return self._sandbox.process.pid if own is None else int(own.pid)

    def usage(self) -> tuple[int, int]:
        """(bytes of memory, number of processes beside the candidate's own)."""
        total, processes = limits.usage(self._sandbox.process.pid)
        own = self.own()
        if own is not None:
            below, more = limits.usage(own.pid)
            total, processes = total + limits.resident_memory(own.pid) + below, processes + more
        return total, processes - FURTHER

    def kill(self) -> None:
        """End it and everything it started; returns when that is gone."""
        self._sandbox.close()
        self._listen(2.0)
        self._status.close()
