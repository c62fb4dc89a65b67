"""The judge's side of a candidate's process: start it, ask it, watch it, end it.

`Worker` is what checks use.  It owns at most one process (`Link`) at a time and starts another
when that one has crashed, hung or outgrown its memory; the check at hand gets the outcome, the next
one goes on as if nothing had happened.

How a call can end:

* an answer comes in time: `frames.decode_reply` makes a `Reply` of it;
* no answer in time: TIMED_OUT, with the place where the candidate was, if it could be had;
* it has had its processor time, or the time of the whole run: TIMED_OUT;
* the process ends: CRASHED, with exit status or signal;
* it starts too many processes: CRASHED;
* its memory grows beyond the limit: OUT_OF_MEMORY;
* what it sends is no answer: CRASHED.

In all but the first case the process and everything it started are killed.
"""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.candidate import encode, forkserver, frames, limits, worker
from conformance.candidate.forkserver import ForkServer
from conformance.candidate.limits import DEFAULT_LIMITS, Limits, amount, interpreter
from conformance.candidate.link import Ended, Link, TimedOut, TooManyProcesses, TooMuchMemory
from conformance.candidate.messages import Call, Description, ModuleCall, Observe, Outcome, Reply
from conformance.candidate.sandbox import NONE, Ladder, Sandbox
from conformance.candidate.scratch import Scratch
from conformance.candidate.view import View, suite_folders, view_of
from conformance.errors import ConformanceError, InternalError, LoadError, UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from conformance.candidate.resolve import Submission


WATCHED = 4
"""An observed call may take so many times as long as another: to be watched costs time."""


class Worker:
    """Runs a candidate in a process of its own and asks it."""

    #: whether its processes may come from a server that has imported torch for others as well
    shares = True

    def __init__(
        self,
        submission: Submission,
        *,
        python: Path | None = None,
        device: str = "cpu",
        limits: Limits = DEFAULT_LIMITS,
        seed: int = 0,
        threads: int = 1,
        sandbox: str = "auto",
        hidden: Iterable[Path] = (),
    ) -> None:
        self.submission = submission
        self.device = device
        self.limits = limits
        self.seed = seed
        self.threads = threads
        self._python = interpreter(python)
        self._mode = sandbox
        self._hidden = tuple(hidden)
        self._folder: Scratch | None = None
        self._ladder: Ladder | None = None
        self._view: View | None = None
        self._sandbox: Sandbox = NONE
        self._link: Link | None = None
        self._server: ForkServer | None = None
        self._forks = self.shares and forkserver.possible(sandbox, device, self._python)
        self._starts = 0
        #: whether code of the candidate has been run
        self._reached = False
        self._description: Description | None = None
        self._allowance = self.limits.import_seconds
        self._left = self.limits.total_seconds

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
        """Starts the process, which imports torch and the candidate while we do other things.

        From the thread that is to ask it: where that ends, the system may end the process.
        Raises LoadError where the interpreter does not start, SandboxError where a sandbox is
        demanded and there is none, UsageError where there is no room for temporary files.
        """
        if self._link is not None:
            return
        limits.shield()
        if self._folder is None:
            self._folder = Scratch()
        if self._ladder is None:
            shutil.copyfile(worker.__file__, self._folder.path / "worker.py")
            self._ladder = self._sandboxes(self._folder.path)
            self._sandbox = self._ladder.take()
        try:
            self._link = self._linked(self._folder.path)
        except OSError as error:
            raise self._no_process(f"{self._python} cannot be started: {error}") from None
        self._description = None

    def _no_process(self, text: str, details: str = "") -> ConformanceError:
        """The error when there is no process with torch in it, which no candidate is to blame for.

        Where there has been one before, something is wrong around it: in a whole sandbox nothing of
        the candidate can have outlasted its process. In a lesser one that may be its own doing.
        """
        if self._reached and self._sandbox.whole:
            return InternalError(f"no further process could be started: {text}", details=details)
        return LoadError(text, details=details)

    def _linked(self, scratch: Path) -> Link:
        self._sandbox.renew()
        server = self._fork_server()
        self._starts += 1
        if server is not None:
            try:
                return Link(
                    self._python, self._config(), self.limits, scratch, self._sandbox, server
                )
            except OSError:
                self._forks = False
        return Link(self._python, self._config(), self.limits, scratch, self._sandbox)

    def _fork_server(self) -> ForkServer | None:
        """What spares this start the import of torch; None where nothing does.

        The first process imports torch itself, unless there is a server that others have started.
        """
        if not (self._forks and self._sandbox.forkable):
            return None
        if (server := forkserver.inherited()) is not None:
            return server
        if self._server is None and self._starts:
            try:
                self._server = ForkServer.start()
            except OSError:
                self._forks = False
        return self._server

    def _sandboxes(self, scratch: Path) -> Ladder:
        site = limits.user_site(self._python)
        view = view_of(
            self.submission,
            self._python,
            scratch,
            device=self.device,
            user_site=site,
            hidden=self._hidden,
        )
        self._view = view
        environment = limits.environment(self.device, scratch)
        return Ladder(self._mode, view, self._python, environment, self.limits.file_bytes)

    def hides(self, path: Path) -> bool:
        """Whether a sandbox keeps the candidate from reading what lies there."""
        if self._view is None:
            self.start()
        assert self._view is not None
        return self._sandbox.files and not self._view.shows(path)

    def close(self) -> None:
        """Ends the process and everything it started, and removes its temporary folder."""
        self._drop()
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._folder is not None:
            self._folder.remove()
            self._folder, self._ladder = None, None

    def _drop(self) -> None:
        link, self._link, self._description = self._link, None, None
        if link is not None:
            link.close()

    def _config(self) -> dict[str, Any]:
        """What the worker needs to know; nothing of what is expected of the candidate."""
        return {
            **self.submission.load_config(),
            **_harness_places(self.submission),
            "scratch": str(self._folder.path if self._folder else ""),
            "user_site": limits.user_site(self._python),
            "device": self.device,
            "threads": self.threads,
            "seed": self.seed,
            "limits": self.limits.told(self.threads, own_users=self._sandbox.own_users),
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
        while True:
            stage = ["torch"]
            try:
                return self._await_import(stage)
            except (LoadError, InternalError):
                if stage != ["torch"] or not (self._from_nothing() or self._another_sandbox()):
                    raise

    def _from_nothing(self) -> bool:
        """Tries without the server, when torch is not to be had in a process of its."""
        if self._link is None or not self._link.forked:
            return False
        self._forks = False
        self._drop()
        self.start()
        return True

    def _another_sandbox(self) -> bool:
        """Tries with less of a sandbox, when torch is not to be had in this one.

        Never when code of the candidate has been run, which may be the reason.
        """
        if self._reached or self._ladder is None or self._mode != "auto":
            return False
        if not self._sandbox.prefix:
            return False
        self._ladder.reasons.append(f"torch cannot be imported in {self._sandbox.name}")
        self._drop()
        self._sandbox = self._ladder.take()
        self.start()
        return True

    def _await_import(self, reached: list[str]) -> Description:
        """Waits for the import; `reached` gets the word "candidate" when torch is there."""
        link = self._link
        assert link is not None
        stage, began, allowed = "torch", link.started, self.limits.torch_seconds
        try:
            while True:
                moment, header, _ = link.receive(began + allowed)
                if header.get("event") == "torch":
                    stage, began, allowed = "candidate", moment, self._import_seconds()
                    self._reached = True
                    reached.append(stage)
                elif header.get("id") == link.load_id and "outcome" in header:
                    self._left -= moment - began if stage == "candidate" else 0.0
                    return self._loaded(link, header)
        except TimedOut:
            self._left -= allowed if stage == "candidate" else 0.0
            raise self._load_error(link, stage, f"takes more than {allowed:g} s") from None
        except TooMuchMemory:
            text = f"takes more than {amount(self.limits.memory_bytes)} of memory"
            raise self._load_error(link, stage, text) from None
        except TooManyProcesses:
            text = f"starts more than {self.limits.processes} processes"
            raise self._load_error(link, stage, text) from None
        except frames.MalformedFrame as error:
            raise self._load_error(link, stage, f"was disturbed by {error}") from None
        except Ended:
            ended = limits.exit_text(link.end())
            raise self._load_error(link, stage, f"failed: the process {ended}") from None

    def _import_seconds(self) -> float:
        return max(0.1, min(self.limits.import_seconds, self._left))

    def _loaded(self, link: Link, header: dict[str, Any]) -> Description:
        printed = link.capture.take(link.load_id)
        if header["outcome"] != "passed":
            message, trace = str(header.get("message"))[:4000], str(header.get("traceback"))[:20000]
            details = [frames.clean(trace), *(["It printed:", printed] if printed else [])]
            kind = UsageError if header.get("usage") is True else LoadError
            raise kind(frames.clean(message), details="\n".join(details))
        description = frames.decode_description(header)
        isolation = (
            "separate process",
            *self._sandbox.words,
            "environment by allow-list",
            f"memory limit {amount(self.limits.memory_bytes)}"
            + (" (RLIMIT_AS)" if header.get("memory_limit") == "RLIMIT_AS" else " (watched)"),
            f"{self.limits.call_seconds:g} s for each call",
            f"{self.limits.total_seconds / 60:g} minutes in all",
            f"{self.limits.processes} processes (watched)",
            *description.isolation,
        )
        return dataclasses.replace(description, isolation=isolation, printed=printed)

    def _load_error(self, link: Link, stage: str, text: str) -> ConformanceError:
        """The error for an import that did not come to an end; `text` continues a sentence."""
        what = "the candidate" if stage == "candidate" else f"torch with {self._python}"
        trace = link.stack(self.submission.root) if stage == "candidate" else ""
        printed = link.capture.rest()
        link.kill()
        details = [*([trace] if trace else []), *(["It printed:", printed] if printed else [])]
        make = LoadError if stage == "candidate" else self._no_process
        return make(f"importing {what} {text}", details="\n".join(details))

    # -- calls -----------------------------------------------------------------------------------

    def call(self, call: Call | ModuleCall | Observe) -> Reply:
        """Asks the candidate.  Whatever it does becomes the outcome of the reply."""
        if self._left <= 0:
            return Reply(Outcome.TIMED_OUT, self._over)
        try:
            self.describe()
        except InternalError:
            raise
        except ConformanceError as error:
            return Reply(Outcome.CRASHED, f"it could not be loaded: {error}", error.details)
        link = self._link
        assert link is not None
        identity = link.new_id()
        header, body = encode.encode_call(call, identity)
        try:
            link.send(header, body)
            return self._await_answer(link, call, identity)
        except BaseException:
            # interrupted, or our own mistake: a late answer must not meet the next question
            self._drop()
            raise

    def _await_answer(self, link: Link, call: Call | ModuleCall | Observe, identity: str) -> Reply:
        began = time.monotonic()
        calls = _calls(call)
        allowed = self.limits.call_seconds * calls
        deadline, importing = began + min(allowed, self._left), False
        try:
            while True:
                moment, header, body = link.receive(deadline)
                ours = header.get("id") == identity
                if "event" in header:
                    # one of an earlier call can come late, from a thread that was left running
                    if ours and not importing:
                        latest = began + self._left
                        deadline, importing = min(deadline + self._allowance, latest), True
                    continue
                if not ours:
                    raise frames.MalformedFrame("an answer to another question")
                self._spend(moment - began)
                return self._answered(link, call, header, body)
        except TimedOut:
            self._spend(time.monotonic() - began)
            if self._left <= 0:
                return self._failed(link, Outcome.TIMED_OUT, self._over, stack=True)
            extra = ", imports included" if importing else ""
            text = f"no answer within {deadline - began:.3g} s{extra}"
            return self._failed(link, Outcome.TIMED_OUT, text, stack=True)
        except TooMuchMemory:
            text = f"used more than {amount(self.limits.memory_bytes)} of memory"
            return self._failed(link, Outcome.OUT_OF_MEMORY, text, stack=True)
        except TooManyProcesses:
            text = f"started more than {self.limits.processes} processes and was ended for it"
            return self._failed(link, Outcome.CRASHED, text)
        except frames.MalformedFrame as error:
            text = f"sent a malformed answer: {error}"
            return self._failed(link, Outcome.CRASHED, text)
        except Ended:
            status = link.end()
            if limits.out_of_processor_time(status):
                granted = self.limits.processor_seconds(self.threads) * calls
                text = f"used more than {granted:g} s of processor time"
                return self._failed(link, Outcome.TIMED_OUT, text, stack=True)
            text = f"the process {limits.exit_text(status)} during the call"
            return self._failed(link, Outcome.CRASHED, text, stack=True)

    @property
    def _over(self) -> str:
        """What to say when the candidate has used up the time of the whole run."""
        return f"the candidate has had its {self.limits.total_seconds / 60:g} minutes of this run"

    def _spend(self, seconds: float) -> None:
        """Takes what a call needed beyond its own time off the allowance for imports."""
        self._allowance -= min(self._allowance, max(0.0, seconds - self.limits.call_seconds))
        self._left -= seconds

    def _answered(
        self, link: Link, call: Call | ModuleCall | Observe, header: dict[str, Any], body: bytes
    ) -> Reply:
        if header.get("broken") is True:
            text = frames.clean(str(header.get("message"))[:4000])
            return self._failed(link, Outcome.CRASHED, text)
        reply = frames.decode_reply(header, body, call)
        printed = link.capture.take(header["id"])
        if reply.outcome is Outcome.OUT_OF_MEMORY:
            # what it has hoarded must not fail the next check
            self._drop()
        return dataclasses.replace(reply, printed=printed) if printed else reply

    def _failed(self, link: Link, outcome: Outcome, text: str, *, stack: bool = False) -> Reply:
        """The reply for a call after which the process cannot go on."""
        trace = link.stack(self.submission.root) if stack else ""
        self._drop()
        return Reply(outcome, text, traceback=trace, printed=link.capture.rest())


def _harness_places(submission: Submission) -> dict[str, list[str]]:
    """Our own folders, which a candidate must not find; nothing is hidden from our own code."""
    if submission.ours:
        return {"hidden": [], "own_packages": []}
    package, reference, fixtures = suite_folders()
    checkout = package.parent
    installed = checkout.name in ("site-packages", "dist-packages")
    return {
        "hidden": [] if installed else [str(checkout)],
        "own_packages": [str(p) for p in (package, reference, *([] if installed else [fixtures]))],
    }


def _calls(call: Call | ModuleCall | Observe) -> int:
    """How many calls' time one request has."""
    if isinstance(call, Observe):
        return WATCHED
    return max(1, call.repeat) if isinstance(call, Call) else 1
