"""A candidate in this very process: for debuggers (`--in-process`) and for our own tests.

Nothing protects the judge here: the candidate can hang it, end it, and see what is expected of it.
Calls take the same way through frames and `worker.Executor` as those to a process of its own, so
that the answers are the same.  This is the one module of the judge's side that imports torch.
"""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from conformance.candidate import encode, frames, worker
from conformance.candidate.messages import Call, Description, ModuleCall, Observe, Reply
from conformance.errors import LoadError

if TYPE_CHECKING:
    from conformance.candidate.resolve import Submission

Functions = Mapping[str, Callable[..., Any]]


class LocalCaller:
    """Asks an `Executor` as `Worker` would ask a process."""

    def __init__(self, executor: worker.Executor) -> None:
        self.executor = executor

    def call(self, call: Call | ModuleCall | Observe) -> Reply:
        """The reply to one call; only an interruption by the user gets through as an error."""
        header, body = encode.encode_call(call, "local")
        # as JSON there and back: what cannot travel must not work here either
        header = json.loads(json.dumps(header))
        answer, tensors = self.executor.execute(header, worker.decode_tensors(bytearray(body)))
        packed = worker.encode_tensors(tensors) if tensors else b""
        return frames.decode_reply(json.loads(json.dumps(answer)), packed, call)


def local_caller(
    candidate: ModuleType | Functions,
    *,
    classes: Mapping[str, type] | None = None,
    device: str = "cpu",
    seed: int = 0,
) -> LocalCaller:
    """A caller for an adapters module, or for functions by their adapter names.

    `classes` are those that a `ModuleCall` may name; by default what the module has.
    """
    functions = dict(vars(candidate)) if isinstance(candidate, ModuleType) else dict(candidate)
    known = {**functions, **(classes or {})}

    def find_class(name: str) -> Any:
        value = known.get(name)
        return value if isinstance(value, type) else None

    adapters = {n: f for n, f in functions.items() if n.startswith("run_") and callable(f)}
    file = getattr(candidate, "__file__", None)
    root = str(Path(file).resolve().parent) if file else ""
    return LocalCaller(
        worker.Executor(adapters, find_class=find_class, device=device, root=root, seed=seed)
    )


class InProcess(LocalCaller):
    """A submission that is imported here, with the interface of `Worker`."""

    def __init__(self, submission: Submission, device: str = "cpu", *, seed: int = 0) -> None:
        self.submission = submission
        self.device = device
        worker.import_torch()
        self._scratch = tempfile.TemporaryDirectory(prefix="candidate-")
        self._loader = worker.Loader(self._config(), worker.ImportWatch(lambda: None))
        self._loader.prepare_path()
        try:
            functions = self._loader.load()
        except worker.LoadFailure as failure:
            self.close()
            raise LoadError(failure.message, details=failure.traceback) from None
        super().__init__(
            worker.Executor(
                functions,
                find_class=self._loader.find_class,
                device=device,
                root=self._loader.root,
                seed=seed,
                adopt=self._loader.adopt,
                explain=self._loader.explain,
            )
        )

    def _config(self) -> dict[str, Any]:
        return {**self.submission.load_config(), "scratch": self._scratch.name}

    def start(self) -> None:
        """Nothing to start."""

    def describe(self) -> Description:
        """What was loaded."""
        functions = self.executor.functions.items()
        return Description(
            functions={name: tuple(worker.parameter_names(f)) for name, f in functions},
            classes=self._loader.class_names(),
            python=platform.python_version(),
            torch=str(sys.modules["torch"].__version__),
            platform=f"{platform.system()} {platform.machine()}",
            device=self.device,
            device_name=worker.device_name(self.device),
            threads=self.executor.state.threads,
            isolation=("none: the candidate runs in the judge's own process",),
            notices=tuple(self._loader.notices),
            printed="",
        )

    def close(self) -> None:
        """Takes the hooks for imports off again and removes the temporary folder."""
        self._loader.restore_path()
        self._scratch.cleanup()
