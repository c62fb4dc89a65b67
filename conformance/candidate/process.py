"""The judge's side of a candidate's process: start it, ask it, watch it, end it.

`Worker` is what checks use.  It owns at most one process (`Link`) at a time and starts another
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

import dataclasses
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.candidate import encode, frames, limits
from conformance.candidate.limits import DEFAULT_LIMITS, Limits, amount, interpreter
from conformance.candidate.link import Ended, Link, TimedOut, TooMuchMemory
from conformance.candidate.messages import Call, Description, ModuleCall, Outcome, Reply
from conformance.errors import ConformanceError, LoadError, UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from conformance.candidate.resolve import Submission


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
        self._link: Link | None = None
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
        if self._link is not None:
            return
        if self._scratch is None:
            self._folder = tempfile.TemporaryDirectory(
                prefix="candidate-", ignore_cleanup_errors=True
            )
            self._scratch = Path(self._folder.name).resolve()
        try:
            self._link = Link(self._python, self._config(), self.limits, self._scratch)
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
        link, self._link, self._description = self._link, None, None
        if link is not None:
            link.kill()

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
        link = self._link
        assert link is not None
        stage, began, allowed = "torch", link.started, self.limits.torch_seconds
        try:
            while True:
                moment, header, _ = link.receive(began + allowed)
                if header.get("event") == "torch":
                    stage, began, allowed = "candidate", moment, self.limits.import_seconds
                elif header.get("id") == link.load_id and "outcome" in header:
                    return self._loaded(link, header)
        except TimedOut:
            raise self._load_error(link, stage, f"takes more than {allowed:g} s") from None
        except TooMuchMemory:
            text = f"takes more than {amount(self.limits.memory_bytes)} of memory"
            raise self._load_error(link, stage, text) from None
        except frames.MalformedFrame as error:
            raise self._load_error(link, stage, f"was disturbed by {error}") from None
        except Ended:
            ended = limits.exit_text(link.end())
            raise self._load_error(link, stage, f"failed: the process {ended}") from None

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
            "environment by allow-list",
            f"memory limit {amount(self.limits.memory_bytes)}"
            + (" (RLIMIT_AS)" if header.get("memory_limit") == "RLIMIT_AS" else " (watched)"),
            f"{self.limits.call_seconds:g} s for each call",
            *description.isolation,
        )
        return dataclasses.replace(description, isolation=isolation, printed=printed)

    def _load_error(self, link: Link, stage: str, text: str) -> LoadError:
        """The error for an import that did not come to an end; `text` continues a sentence."""
        what = "the candidate" if stage == "candidate" else f"torch with {self._python}"
        trace = link.stack(self.submission.root) if stage == "candidate" else ""
        printed = link.capture.rest()
        link.kill()
        details = [*([trace] if trace else []), *(["It printed:", printed] if printed else [])]
        return LoadError(f"importing {what} {text}", details="\n".join(details))

    # -- calls -----------------------------------------------------------------------------------

    def call(self, call: Call | ModuleCall) -> Reply:
        """Asks the candidate.  Whatever it does becomes the outcome of the reply."""
        try:
            self.describe()
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

    def _await_answer(self, link: Link, call: Call | ModuleCall, identity: str) -> Reply:
        began = time.monotonic()
        calls = max(1, call.repeat) if isinstance(call, Call) else 1
        deadline, importing = began + self.limits.call_seconds * calls, False
        try:
            while True:
                moment, header, body = link.receive(deadline)
                ours = header.get("id") == identity
                if "event" in header:
                    # one of an earlier call can come late, from a thread that was left running
                    if ours and not importing:
                        deadline, importing = deadline + self._allowance, True
                    continue
                if not ours:
                    raise frames.MalformedFrame("an answer to another question")
                self._spend(moment - began)
                return self._answered(link, call, header, body)
        except TimedOut:
            self._spend(time.monotonic() - began)
            extra = ", imports included" if importing else ""
            text = f"no answer within {deadline - began:.3g} s{extra}"
            return self._failed(link, Outcome.TIMED_OUT, text, stack=True)
        except TooMuchMemory:
            text = f"used more than {amount(self.limits.memory_bytes)} of memory"
            return self._failed(link, Outcome.OUT_OF_MEMORY, text, stack=True)
        except frames.MalformedFrame as error:
            text = f"sent a malformed answer: {error}"
            return self._failed(link, Outcome.CRASHED, text)
        except Ended:
            text = f"the process {limits.exit_text(link.end())} during the call"
            return self._failed(link, Outcome.CRASHED, text, stack=True)

    def _spend(self, seconds: float) -> None:
        """Takes what a call needed beyond its own time off the allowance for imports."""
        self._allowance -= min(self._allowance, max(0.0, seconds - self.limits.call_seconds))

    def _answered(
        self, link: Link, call: Call | ModuleCall, header: dict[str, Any], body: bytes
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
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent
    installed = checkout.name in ("site-packages", "dist-packages")
    return {
        "hidden": [] if installed else [str(checkout)],
        "own_packages": [str(package), str(checkout / "reference_impl")],
    }
