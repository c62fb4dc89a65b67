"""The judge's side of a candidate's process: start it, ask it, watch it, end it.

`Worker` is what checks use.  It owns at most one process (`_Session`) at a time and starts another
when that one has crashed, hung or outgrown its memory; the check at hand gets the outcome, the next
one goes on as if nothing had happened.

How a call can end:

* an answer comes in time: `frames.decode_reply` makes a `Reply` of it;
* no answer in time: TIMED_OUT, with the place where the candidate was, if it could be had;
* the process ends: CRASHED, with exit status or signal;
* its memory grows beyond the limit: OUT_OF_MEMORY;
* what it sends is no answer: CRASHED.

In all but the first case the process and everything it started are killed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from conformance.candidate import frames, limits, worker
from conformance.candidate.capture import Capture
from conformance.candidate.limits import DEFAULT_LIMITS, Limits, amount, interpreter
from conformance.candidate.messages import Call, Description, ModuleCall, Outcome, Reply
from conformance.errors import ConformanceError, LoadError, UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from conformance.candidate.resolve import Submission

#: how often a waiting judge looks at the process it waits for, in seconds
LOOK_SECONDS = 0.05


class _Ended(Exception):
    """The process is gone, or no longer talks."""


class _TimedOut(Exception):
    """The deadline has passed."""


class _TooMuchMemory(Exception):
    """The process holds more memory than it may."""


class _Session:
    """One process of the candidate and the pipes to it."""

    def __init__(self, python: Path, config: dict[str, Any], bounds: Limits, scratch: Path) -> None:
        self.bounds = bounds
        self.scratch = scratch
        self.started = time.monotonic()
        script = scratch / "worker.py"
        shutil.copyfile(worker.__file__, script)
        self.process = subprocess.Popen(
            [str(python), "-I", "-X", "utf8", "-u", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=str(scratch),
            env=limits.environment(config["device"], scratch),
            **limits.spawn_options(),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._writer: IO[bytes] = self.process.stdin
        self.capture = Capture(self.process.stderr, bounds.output_bytes)
        self._frames: queue.Queue[Any] = queue.Queue(maxsize=64)
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()
        self.load_id = self.new_id()
        self.send({"op": "load", "id": self.load_id, "config": config}, b"")

    def new_id(self) -> str:
        """A name for a request that nobody can guess who has not read it."""
        return secrets.token_hex(8)

    def _read(self, stream: IO[bytes]) -> None:
        """Runs in a thread: every frame with the time it came, at last None or an error."""
        last: Any = None
        try:
            while (frame := frames.read_frame(stream)) is not None:
                self._frames.put((time.monotonic(), frame))
        except frames.MalformedFrame as error:
            last = error
        except (OSError, ValueError, MemoryError):
            pass
        self._frames.put(last)

    def send(self, header: dict[str, Any], body: bytes) -> None:
        """Writes a request.  A long one goes through a thread: a stuck process must not stop us."""
        data = frames.join(header, body)
        if len(data) <= 4096:
            self._write(data)
        else:
            threading.Thread(target=self._write, args=(data,), daemon=True).start()

    def _write(self, data: bytes) -> None:
        # that the process is gone shows when its answer is awaited
        with contextlib.suppress(OSError, ValueError):
            self._writer.write(data)
            self._writer.flush()

    def receive(self, deadline: float) -> tuple[float, dict[str, Any], bytes]:
        """When the next frame came, and the frame; or an exception from above or MalformedFrame."""
        look = 0
        while True:
            left = deadline - time.monotonic()
            try:
                item = self._frames.get(timeout=max(0.0, min(LOOK_SECONDS, left)))
            except queue.Empty:
                if left <= 0:
                    raise _TimedOut from None
                look += 1
                self._look(look)
                continue
            if item is None:
                raise _Ended
            if isinstance(item, frames.MalformedFrame):
                raise item
            moment, (header, body) = item
            return moment, header, body

    def _look(self, look: int) -> None:
        """Is the process still there, and within its memory?

        Its end shows in the pipe as well, unless a child of it holds the other side open.
        """
        if self.process.poll() is not None and self._frames.empty() and look > 4:
            raise _Ended
        used = limits.resident_memory(self.process.pid, descendants=look % 10 == 5)
        if used > self.bounds.memory_bytes:
            raise _TooMuchMemory

    def stack(self, root: Path) -> str:
        """Where a hanging or crashed candidate was, as far as it could be found out."""
        if limits.request_stack(self.process):
            time.sleep(0.1)
        try:
            with (self.scratch / "stacks.txt").open(encoding="utf-8", errors="replace") as file:
                text = file.read(256 << 10)
        except OSError:
            return ""
        lines = [line for line in text.splitlines() if f'File "{root}' in line]
        return frames.clean("\n".join(line.replace(f"{root}/", "") for line in lines[:12]))

    def end(self) -> int | None:
        """Gives a dying process a moment, then kills; its exit status if it ended by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=0.5)
        return self.kill()

    def kill(self) -> int | None:
        status = self.process.poll()
        limits.kill(self.process)
        with contextlib.suppress(OSError, ValueError):
            self._writer.close()
        return status


class Worker:
    """Runs a candidate in a process of its own and asks it."""

    def __init__(
        self,
        submission: Submission,
        *,
        python: Path | None = None,
        device: str = "cpu",
        limits: Limits = DEFAULT_LIMITS,
        seed: int = 0,
        threads: int = 1,
    ) -> None:
        self.submission = submission
        self.device = device
        self.limits = limits
        self.seed = seed
        self.threads = threads
        self._python = interpreter(python)
        self._scratch: Path | None = None
        self._session: _Session | None = None
        self._description: Description | None = None
        self._allowance = self.limits.import_seconds

    def __enter__(self) -> Worker:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the process, which imports torch and the candidate while we do other things."""
        if self._session is not None:
            return
        if self._scratch is None:
            self._folder = tempfile.TemporaryDirectory(
                prefix="candidate-", ignore_cleanup_errors=True
            )
            self._scratch = Path(self._folder.name).resolve()
        try:
            self._session = _Session(self._python, self._config(), self.limits, self._scratch)
        except OSError as error:
            raise LoadError(f"{self._python} cannot be started: {error}") from None
        self._description = None

    def close(self) -> None:
        """Ends the process and everything it started, and removes its temporary folder."""
        self._drop()
        if self._scratch is not None:
            self._folder.cleanup()
            self._scratch = None

    def _drop(self) -> None:
        session, self._session, self._description = self._session, None, None
        if session is not None:
            session.kill()

    def _config(self) -> dict[str, Any]:
        """What the worker needs to know; nothing of what is expected of the candidate."""
        return {
            **self.submission.load_config(),
            **_harness_places(self.submission),
            "scratch": str(self._scratch),
            "user_site": limits.user_site(self._python),
            "device": self.device,
            "threads": self.threads,
            "seed": self.seed,
            "memory_bytes": self.limits.memory_bytes,
        }

    # -- loading ---------------------------------------------------------------------------------

    def describe(self) -> Description:
        """What was loaded; waits for the import.

        Raises LoadError when it fails, UsageError when the device is not there.
        """
        self.start()
        if self._description is None:
            try:
                self._description = self._await_load()
            except BaseException:
                self._drop()
                raise
        return self._description

    def _await_load(self) -> Description:
        session = self._session
        assert session is not None
        stage, began, allowed = "torch", session.started, self.limits.torch_seconds
        try:
            while True:
                moment, header, _ = session.receive(began + allowed)
                if header.get("event") == "torch":
                    stage, began, allowed = "candidate", moment, self.limits.import_seconds
                elif header.get("id") == session.load_id and "outcome" in header:
                    return self._loaded(session, header)
        except _TimedOut:
            raise self._load_error(session, stage, f"takes more than {allowed:g} s") from None
        except _TooMuchMemory:
            text = f"takes more than {amount(self.limits.memory_bytes)} of memory"
            raise self._load_error(session, stage, text) from None
        except frames.MalformedFrame as error:
            raise self._load_error(session, stage, f"was disturbed by {error}") from None
        except _Ended:
            ended = limits.exit_text(session.end())
            raise self._load_error(session, stage, f"failed: the process {ended}") from None

    def _loaded(self, session: _Session, header: dict[str, Any]) -> Description:
        printed = session.capture.take(session.load_id)
        if header["outcome"] != "passed":
            message, trace = str(header.get("message"))[:4000], str(header.get("traceback"))[:20000]
            details = [frames.clean(trace), *(["It printed:", printed] if printed else [])]
            kind = UsageError if header.get("usage") is True else LoadError
            raise kind(frames.clean(message), details="\n".join(details))
        description = frames.decode_description(header)
        isolation = (
            "separate process",
            "environment by allow-list",
            f"memory limit {amount(self.limits.memory_bytes)}"
            + (" (RLIMIT_AS)" if header.get("memory_limit") == "RLIMIT_AS" else " (watched)"),
            f"{self.limits.call_seconds:g} s for each call",
            *description.isolation,
        )
        return dataclasses.replace(description, isolation=isolation, printed=printed)

    def _load_error(self, session: _Session, stage: str, text: str) -> LoadError:
        """The error for an import that did not come to an end; `text` continues a sentence."""
        what = "the candidate" if stage == "candidate" else f"torch with {self._python}"
        trace = session.stack(self.submission.root) if stage == "candidate" else ""
        printed = session.capture.rest()
        session.kill()
        details = [*([trace] if trace else []), *(["It printed:", printed] if printed else [])]
        return LoadError(f"importing {what} {text}", details="\n".join(details))

    # -- calls -----------------------------------------------------------------------------------

    def call(self, call: Call | ModuleCall) -> Reply:
        """Asks the candidate.  Whatever it does becomes the outcome of the reply."""
        try:
            self.describe()
        except ConformanceError as error:
            return Reply(Outcome.CRASHED, f"it could not be loaded: {error}", error.details)
        session = self._session
        assert session is not None
        identity = session.new_id()
        header, body = frames.encode_call(call, identity)
        try:
            session.send(header, body)
            return self._await_answer(session, call, identity)
        except BaseException:
            # interrupted, or our own mistake: a late answer must not meet the next question
            self._drop()
            raise

    def _await_answer(self, session: _Session, call: Call | ModuleCall, identity: str) -> Reply:
        began = time.monotonic()
        deadline, importing = began + self.limits.call_seconds, False
        try:
            while True:
                moment, header, body = session.receive(deadline)
                ours = header.get("id") == identity
                if "event" in header:
                    # one of an earlier call can come late, from a thread that was left running
                    if ours and not importing:
                        deadline, importing = deadline + self._allowance, True
                    continue
                if not ours:
                    raise frames.MalformedFrame("an answer to another question")
                self._spend(moment - began)
                return self._answered(session, call, header, body)
        except _TimedOut:
            self._spend(time.monotonic() - began)
            extra = ", imports included" if importing else ""
            text = f"no answer within {deadline - began:.3g} s{extra}"
            return self._failed(session, Outcome.TIMED_OUT, text, stack=True)
        except _TooMuchMemory:
            text = f"used more than {amount(self.limits.memory_bytes)} of memory"
            return self._failed(session, Outcome.OUT_OF_MEMORY, text, stack=True)
        except frames.MalformedFrame as error:
            text = f"sent a malformed answer: {error}"
            return self._failed(session, Outcome.CRASHED, text)
        except _Ended:
            text = f"the process {limits.exit_text(session.end())} during the call"
            return self._failed(session, Outcome.CRASHED, text, stack=True)

    def _spend(self, seconds: float) -> None:
        """Takes what a call needed beyond its own time off the allowance for imports."""
        self._allowance -= min(self._allowance, max(0.0, seconds - self.limits.call_seconds))

    def _answered(
        self, session: _Session, call: Call | ModuleCall, header: dict[str, Any], body: bytes
    ) -> Reply:
        if header.get("broken") is True:
            text = frames.clean(str(header.get("message"))[:4000])
            return self._failed(session, Outcome.CRASHED, text)
        reply = frames.decode_reply(header, body, call)
        printed = session.capture.take(header["id"])
        return dataclasses.replace(reply, printed=printed) if printed else reply

    def _failed(
        self, session: _Session, outcome: Outcome, text: str, *, stack: bool = False
    ) -> Reply:
        """The reply for a call after which the process cannot go on."""
        trace = session.stack(self.submission.root) if stack else ""
        self._drop()
        return Reply(outcome, text, traceback=trace, printed=session.capture.rest())


def _harness_places(submission: Submission) -> dict[str, list[str]]:
    """Our own folders, which a candidate must not find; nothing is hidden from our own code."""
    if submission.ours:
        return {"hidden": [], "own_packages": []}
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent
    installed = checkout.name in ("site-packages", "dist-packages")
    return {
        "hidden": [] if installed else [str(checkout)],
        "own_packages": [str(package), str(checkout / "reference_impl")],
    }
