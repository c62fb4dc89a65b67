"""One process of the candidate and the pipes to it: everything below `process.Worker`."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import secrets
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any, cast

from conformance.candidate import frames, limits, worker
from conformance.candidate.capture import Capture
from conformance.candidate.forkserver import Forked, ForkServer
from conformance.candidate.limits import Limits
from conformance.candidate.sandbox import Sandbox
from conformance.candidate.started import Process, Started

#: how often a waiting judge looks at the process it waits for, in seconds
LOOK_SECONDS = 0.05
#: on an overloaded machine a process gets at most so many times the time it was granted
PATIENCE = 6


class Ended(Exception):
    """The process is gone, or no longer talks."""


class TimedOut(Exception):
    """The deadline has passed."""


class TooMuchMemory(Exception):
    """The process holds more memory than it may."""


class TooManyProcesses(Exception):
    """The process has started more processes than it may."""


def put_script(scratch: Path) -> Path:
    """The worker's own file in the temporary folder, written anew for every process.

    Without a sandbox an earlier process can have put anything in the place of either: nothing is
    written through a link, and what is in the way is removed.
    """
    if scratch.is_symlink() or not scratch.is_dir():
        scratch.unlink(missing_ok=True)
        scratch.mkdir()
    scratch.chmod(0o700)
    script = scratch / "worker.py"
    if script.is_dir() and not script.is_symlink():
        shutil.rmtree(script)
    script.unlink(missing_ok=True)
    with script.open("xb") as file:
        file.write(Path(worker.__file__).read_bytes())
    return script


class Link:
    """One process of the candidate and the pipes to it."""

    def __init__(
        self,
        python: Path,
        config: dict[str, Any],
        bounds: Limits,
        scratch: Path,
        sandbox: Sandbox,
        server: ForkServer | None = None,
    ) -> None:
        """With a server the process is forked. Raises OSError where it cannot be started."""
        self.bounds = bounds
        self.scratch = scratch
        self.forked = server is not None
        self.started = time.monotonic()
        script = put_script(scratch)
        environment = limits.environment(config["device"], scratch)
        # nameless, so that a candidate can neither replace it nor find it later
        self._stacks = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115
        try:
            self.process: Process = (
                Started(
                    [str(python), "-I", "-X", "utf8", "-u", str(script)],
                    sandbox,
                    environment,
                    scratch,
                    self._stacks,
                )
                if server is None
                else Forked(server, python, sandbox, environment, scratch, self._stacks)
            )
        except BaseException:
            self._stacks.close()
            raise
        if self.process.stacks is not None:
            config = {**config, "stacks": self.process.stacks}
        self._writer = self.process.stdin
        self.capture = Capture(self.process.stderr, bounds.output_bytes)
        # an honest worker is at most an event and an answer ahead
        self._frames: queue.Queue[Any] = queue.Queue(maxsize=2)
        self._closed = threading.Event()
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()
        self.load_id = self.new_id()
        self.send({"op": "load", "id": self.load_id, "config": config}, b"")

    def new_id(self) -> str:
        """A name for a request that nobody can guess who has not read it."""
        return secrets.token_hex(8)

    def _read(self, stream: IO[bytes]) -> None:
        """Runs in a thread: every frame with the time it came, at last None or an error."""
        last: Any = None
        with io.BufferedReader(cast(io.RawIOBase, stream)) as buffered:
            try:
                while (frame := frames.read_frame(buffered, self.bounds.answer_bytes)) is not None:
                    self._put((time.monotonic(), frame))
            except frames.MalformedFrame as error:
                last = error
            except (OSError, ValueError, MemoryError):
                pass
        self._put(last)

    def _put(self, item: Any) -> None:
        """Hands `item` to the judge, who may be gone by now."""
        while not self._closed.is_set():
            try:
                self._frames.put(item, timeout=0.2)
            except queue.Full:
                continue
            return

    def send(self, header: dict[str, Any], body: bytes) -> None:
        """Writes a request.  A long one goes through a thread: a stuck process must not stop us."""
        data = frames.join(header, body)
        if len(data) <= 4096:
            self._write(data)
        else:
            threading.Thread(target=self._write, args=(data,), daemon=True).start()

    def _write(self, data: bytes) -> None:
        # that the process is gone shows when its answer is awaited
        view = memoryview(data)
        with contextlib.suppress(OSError, ValueError):
            while view:
                view = view[self._writer.write(view) :]

    def receive(self, deadline: float) -> tuple[float, dict[str, Any], bytes]:
        """When the next frame came, and the frame; or an exception from above or MalformedFrame.

        A process that would run but is not let, because the machine is overloaded, gets more time:
        it must have had half of its time on a processor before it counts as hanging.
        """
        look = 0
        began = time.monotonic()
        granted = max(0.0, deadline - began)
        latest = began + granted * PATIENCE
        processor_then: float | None = None
        while True:
            left = deadline - time.monotonic()
            try:
                item = self._frames.get(timeout=max(0.0, min(LOOK_SECONDS, left)))
            except queue.Empty:
                had = limits.processor_seconds(self.process.pid())
                processor_then = had if processor_then is None else processor_then
                if left <= 0:
                    starved = had - processor_then < granted / 2
                    if deadline < latest and starved and limits.runnable(self.process.pid()):
                        deadline = min(latest, deadline + granted / 2)
                        continue
                    raise TimedOut from None
                look += 1
                self._look(look)
                continue
            if item is None:
                raise Ended
            if isinstance(item, frames.MalformedFrame):
                raise item
            moment, (header, body) = item
            if moment > deadline:
                raise TimedOut
            return moment, header, body

    def _look(self, look: int) -> None:
        """Is the process still there, and within its memory?

        Its end shows in the pipe as well, unless a child of it holds the other side open.
        """
        if self.process.poll() is not None and self._frames.empty() and look > 4:
            raise Ended
        used = limits.resident_memory(self.process.pid())
        if look % 10 == 5:
            total, others = self.process.usage()
            used = max(used, total)
            if others >= self.bounds.processes:
                raise TooManyProcesses
        if used > self.bounds.memory_bytes:
            raise TooMuchMemory

    def stack(self, root: Path) -> str:
        """Where a hanging or crashed candidate was, as far as it could be found out."""
        if self.process.poll() is None and limits.request_stack(self.process.own()):
            time.sleep(0.1)
        try:
            if not limits.POSIX:  # descriptors are not passed on there
                text = (self.scratch / "stacks.txt").read_text("utf-8", errors="replace")
            else:
                self._stacks.seek(0)
                text = self._stacks.read(256 << 10).decode("utf-8", errors="replace")
        except (OSError, ValueError):
            return ""
        lines = [line for line in text.splitlines() if f'File "{root}' in line]
        return frames.clean("\n".join(line.replace(f"{root}{os.sep}", "") for line in lines[:12]))

    def end(self) -> int | None:
        """Gives a dying process a moment, then kills; its exit status if it ended by itself."""
        self.process.wait(0.5)
        return self.kill()

    def kill(self) -> int | None:
        """Kills the process, with all it started; its exit status if it had ended before."""
        self._closed.set()
        status = self.process.poll()
        self.process.kill()
        with contextlib.suppress(OSError, ValueError):
            self._writer.close()
        return status

    def close(self) -> None:
        """Kills what is left and forgets what it wrote."""
        self.kill()
        self._stacks.close()
