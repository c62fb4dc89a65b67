"""The judge's side of a process that runs benchmarks: requests, answers, the judge's own clock."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.bench.inputs import Pool, encoded
from conformance.bench.workload import BOTH, Arguments
from conformance.candidate import frames, limits
from conformance.candidate.frames import MalformedFrame
from conformance.candidate.link import Ended, TimedOut, TooMuchMemory
from conformance.candidate.messages import Outcome
from conformance.candidate.process import Worker
from conformance.candidate.worker import pack
from conformance.errors import ConformanceError
from conformance.numerics.tensors import CODES

FUSED, REFERENCE, CANDIDATE = "fused", "reference", "candidate"
OTHERS = (REFERENCE, FUSED)

FATAL = (Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.OUT_OF_MEMORY)
"""Outcomes after which the process cannot go on."""

PACKAGE = Path(__file__).resolve().parent


class Lost(Exception):
    """A request that was not answered as it should be; why, as an outcome and a sentence."""

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message


@dataclass(frozen=True)
class Sample:
    """One timed sample: seconds for all its calls, by the worker's clock and by the judge's."""

    seconds: float
    calls: int
    #: processor time of the worker's process during the calls
    processor: float
    #: from the request to the answer, on the judge's clock
    judge_seconds: float
    #: some entries of the last output right after the clock had stopped, and which
    peek: Any
    places: tuple[float, ...]
    threads: int
    replaced: tuple[str, ...]

    @property
    def per_call(self) -> float:
        """Seconds of one call."""
        return self.seconds / self.calls


class BenchWorker(Worker):
    """A candidate's process that also answers the requests of `runner.py`."""

    #: what is timed runs in a process that nothing else has been in
    shares = False

    _pooled: tuple[Any, Any, bool] | None = None

    def _config(self) -> dict[str, Any]:
        return {**super()._config(), "bench": sent_sources()}

    def start(self) -> None:
        """Starts the process; its answers may be larger than those of a graded call."""
        self.limits = dataclasses.replace(self.limits, answer_bytes=frames.MAX_BODY)
        super().start()

    # -- requests --------------------------------------------------------------------------------

    def pool(self, pool: Pool, *, tf32: bool = False) -> None:
        """Sends the random numbers of which inputs are made, unless this process has them."""
        self.describe()
        if self._pooled == (self._link, pool, tf32):
            return
        arrays = {"floats": pool.floats, "numbers": pool.numbers}
        self.ask("pool", {"dtype": pool.dtype, "tf32": tf32}, arrays)
        self._pooled = (self._link, pool, tf32)

    def prepare(
        self,
        function: str,
        arguments: Arguments,
        output: tuple[int, ...],
        which: str,
        count: int,
        *,
        graph: bool = False,
    ) -> None:
        """Makes room for `count` calls at once."""
        told, fixed = encoded(arguments)
        header = {"function": function, "arguments": told, "count": count, "graph": graph}
        backward = {"backward": which == BOTH, "cotangent": list(output)}
        self.ask("prepare", {**header, **backward}, fixed)

    def sample(
        self, who: str, seeds: Sequence[int], calls: int, peek: Sequence[float] = ()
    ) -> Sample:
        """Fills all slots from `seeds` and times `calls` of them."""
        header = {"who": who, "seeds": list(seeds), "calls": calls, "peek": list(peek)}
        began = time.monotonic()
        arrived, answer, tensors = self.ask("sample", header)
        return Sample(
            seconds=_number(answer, "seconds"),
            calls=calls,
            processor=_number(answer, "processor"),
            judge_seconds=arrived - began,
            peek=tensors.get("peek"),
            places=tuple(peek),
            threads=int(_number(answer, "threads")),
            replaced=_names(answer, "replaced"),
        )

    def outputs(self, index: int, gradients: Sequence[str] = ()) -> tuple[Any, dict[str, Any], Any]:
        """What call `index` of the last sample returned: output, gradients, names with one."""
        _, answer, tensors = self.ask("outputs", {"index": index, "gradients": list(gradients)})
        if "output" not in tensors:
            raise Lost(Outcome.CRASHED, "sent a malformed answer: no output")
        prefix = "gradient."
        found = {n[len(prefix) :]: t for n, t in tensors.items() if n.startswith(prefix)}
        return tensors["output"], found, _names(answer, "arrived")

    def digests(self, seed: int, gradients: Sequence[str] = ()) -> Any:
        """(calls, 2 * results): a product with a random vector and the norm of each result."""
        header = {"seed": seed, "gradients": list(gradients)}
        _, _, tensors = self.ask("digests", header)
        if "digests" not in tensors:
            raise Lost(Outcome.CRASHED, "sent a malformed answer: no digests")
        return tensors["digests"]

    def memory(self, who: str, seeds: Sequence[int]) -> tuple[int, float, str]:
        """Largest memory of one call, what each call leaves behind, how it was measured."""
        _, answer, _ = self.ask("memory", {"who": who, "seeds": list(seeds)})
        kept = answer.get("kept")
        kept = float(kept) if isinstance(kept, int | float) else 0.0
        return int(_number(answer, "peak")), kept, frames.clean(str(answer.get("how"))[:200])

    def ceiling(self, what: str, size: int, budget: float) -> float:
        """Seconds of a matrix product ("product", edge) or a copy ("copy", bytes)."""
        _, answer, _ = self.ask("ceiling", {"what": what, "size": size, "budget": budget})
        return _number(answer, "seconds")

    def processor_seconds(self) -> float:
        """Processor time of the process, as the system counts it."""
        link = self._link
        return 0.0 if link is None else limits.processor_seconds(link.process.pid())

    def children(self) -> int:
        """Processes that the candidate's process has started and that still run."""
        import psutil  # type: ignore[import-untyped]

        if self._link is None:
            return 0
        try:
            return len(psutil.Process(self._link.process.pid()).children(recursive=True))
        except psutil.Error:
            return 0

    # -- the conversation ------------------------------------------------------------------------

    def ask(
        self, what: str, header: Mapping[str, Any], arrays: Mapping[str, Any] | None = None
    ) -> tuple[float, dict[str, Any], dict[str, Any]]:
        """One request: (time of the answer, its header, its tensors). Raises Lost."""
        try:
            self.describe()
        except ConformanceError as error:
            raise Lost(Outcome.CRASHED, f"it could not be loaded: {error}") from None
        link = self._link
        assert link is not None
        identity = link.new_id()
        packed = [(n, CODES[a.dtype], a.shape, a.tobytes()) for n, a in (arrays or {}).items()]
        link.send({"op": f"bench:{what}", "id": identity, **header}, pack(packed))
        try:
            return self._answer_to(link, identity)
        except Lost as lost:
            if lost.outcome in FATAL:
                self._drop()
            raise
        except BaseException:
            self._drop()
            raise

    def _answer_to(self, link: Any, identity: str) -> tuple[float, dict[str, Any], dict[str, Any]]:
        deadline = time.monotonic() + self.limits.call_seconds + self.limits.import_seconds
        try:
            while True:
                moment, header, body = link.receive(deadline)
                if "event" in header:
                    continue
                if header.get("id") != identity:
                    raise MalformedFrame("an answer to another question")
                break
            tensors = frames.decode_tensors(body)
        except TimedOut:
            raise Lost(Outcome.TIMED_OUT, "no answer in time") from None
        except TooMuchMemory:
            raise Lost(Outcome.OUT_OF_MEMORY, "used more memory than it may") from None
        except MalformedFrame as error:
            raise Lost(Outcome.CRASHED, f"sent a malformed answer: {error}") from None
        except Ended:
            text = f"the process {limits.exit_text(link.end())}"
            raise Lost(Outcome.CRASHED, text) from None
        link.capture.take(identity)
        return moment, _passed(header), tensors


def _passed(header: dict[str, Any]) -> dict[str, Any]:
    """The header itself when it says that all went well; else Lost."""
    if header.get("broken") is True or header.get("outcome") != "passed":
        known = [o for o in Outcome if o.value == header.get("outcome")]
        outcome = known[0] if known and known[0] is not Outcome.PASSED else Outcome.CRASHED
        raise Lost(outcome, frames.clean(str(header.get("message"))[:1000]))
    return header


def _number(header: Mapping[str, Any], key: str) -> float:
    value = header.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise Lost(Outcome.CRASHED, f"sent a malformed answer: a wrong field '{key}'")
    return float(value)


def _names(header: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = header.get(key)
    if not isinstance(value, list) or len(value) > 1000:
        return ()
    return tuple(frames.clean(str(name)[:200]) for name in value)


def sent_sources() -> dict[str, Any]:
    """What a worker is sent to be benchmarked with, as texts: nothing of it needs to be on disk."""
    reference = PACKAGE.parent.parent / "reference_impl"
    texts = {path.stem: path.read_text("utf-8") for path in sorted(reference.glob("*.py"))}
    fused = {"__init__": "", "fused": (PACKAGE / "fused.py").read_text("utf-8")}
    return {
        "runner": (PACKAGE / "runner.py").read_text("utf-8"),
        "others": {REFERENCE: ["adapters", texts], FUSED: ["fused", fused]},
    }
