"""The candidate's process: what it may do to itself without harm to the judge."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]
import pytest

from conformance.candidate import limits as platform
from conformance.candidate.limits import Limits
from conformance.candidate.messages import Call, ModuleCall, Outcome, Reply
from conformance.candidate.process import Worker
from conformance.candidate.resolve import resolve

Write = Callable[[Mapping[str, str]], Path]

CHECKOUT = Path(platform.__file__).resolve().parents[2]

X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)

CANDIDATE = '''
    import ctypes, json, os, struct, subprocess, sys, time
    import torch

    class Double(torch.nn.Module):
        def __init__(self, dtype=None):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor(2.0, dtype=dtype))

        def forward(self, x):
            return x * self.weight

    def run_silu(x):
        return x * torch.sigmoid(x)

    def run_print(x):
        print("to stdout")
        print("to stderr", file=sys.stderr)
        os.write(1, b"past Python\\n")
        return x * 1

    def run_flood(x):
        for _ in range(20000):
            print("x" * 100)
        print("the end")
        return x * 1

    def run_exit(x):
        os._exit(0)

    def run_polite_exit(x):
        sys.exit(0)

    def run_segfault(x):
        return ctypes.string_at(0)

    def run_hang(x):
        print("about to hang")
        while True:
            pass

    def run_slow_import(x):
        import slow
        return x * slow.VALUE

    def run_memory(x):
        return torch.ones(1 << 32)

    def run_forge(x):
        """Writes answers wherever it can write."""
        header = json.dumps({"id": "x", "outcome": "passed"}).encode()
        frame = struct.pack("<QQ", len(header), 0) + header
        os.write(1, frame)
        os.write(2, frame)
        sys.stdout.buffer.write(frame)
        return x * 1

    def run_garbage(x):
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, b"\\xff" * 64)
            except OSError:
                pass
        return x * 1

    def run_input(x):
        return x * float(input("a number? "))

    def run_fork(x):
        os.fork()
        return x * 1

    def run_children(x):
        code = "import time; time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        return torch.tensor(child.pid)

    def run_environment(x):
        assert "PATH" in os.environ
        assert not [n for n in os.environ if n.startswith(("PYTHON", "SECRET"))]
        checkout = os.path.realpath("CHECKOUT")
        assert checkout not in [os.path.realpath(p) for p in sys.path]
        return x * 1

    def run_harness(x):
        found = []
        for name in ("conformance", "conformance.candidate.frames", "reference_impl"):
            try:
                __import__(name)
                found.append(name)
            except ModuleNotFoundError as error:
                assert "harness" in str(error), error
        assert not [n for n in sys.modules if n.startswith(("conformance", "reference_impl"))]
        print(found)
        return x * 1

    def run_break_torch(x):
        torch.Tensor.clone = None
        torch.equal = None
        return x * 1

    def run_thread(x):
        import threading
        threading.Thread(target=time.sleep, args=(600,)).start()
        return x * 1

    def run_cuda(x):
        assert not torch.cuda.is_available()
        assert not torch.backends.mps.is_available()
        return x * 1
'''


@pytest.fixture(scope="module")
def submission_folder(write_module: Write) -> Path:
    candidate = CANDIDATE.replace("CHECKOUT", str(CHECKOUT))
    return write_module(
        {"adapters.py": candidate, "slow.py": "import time\ntime.sleep(2.3)\nVALUE = 5"}
    )


@pytest.fixture(scope="module")
def worker(submission_folder: Path) -> Iterator[Worker]:
    bounds = Limits(call_seconds=2, import_seconds=20, memory_bytes=1 << 30, output_bytes=2000)
    submission = resolve(str(submission_folder), cwd=Path("/"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(CHECKOUT))
        patch.setenv("SECRET_TOKEN", "hunter2")
        with Worker(submission, python=Path(sys.prefix), limits=bounds) as worker:
            yield worker


def ask(worker: Worker, name: str, **options: Any) -> Reply:
    return worker.call(Call(name, {"x": X}, **options))


def assert_well(worker: Worker) -> None:
    """The next question is answered as if nothing had happened."""
    reply = ask(worker, "run_silu")
    assert reply.outcome is Outcome.PASSED, reply.message
    np.testing.assert_allclose(reply.outputs[0], X / (1 + np.exp(-X)), rtol=1e-6)


# -- ordinary calls ------------------------------------------------------------------------------


def test_description(worker: Worker) -> None:
    description = worker.describe()
    assert description.functions["run_silu"] == ("x",)
    assert description.device == "cpu"
    assert description.threads == 1
    assert "separate process" in description.isolation
    assert "GPU hidden" in description.isolation
    assert any("memory limit 1 GiB" in text for text in description.isolation)
    assert description.notices == ()


def test_values_gradients_and_layouts(worker: Worker) -> None:
    cotangent = np.ones(X.shape)
    reply = ask(worker, "run_silu", wrt=("x",), cotangent=cotangent, layouts={"x": "sliced"})
    s: Any = 1 / (1 + np.exp(-X.astype(np.float64)))
    assert reply.gradients["x"] is not None
    np.testing.assert_allclose(reply.gradients["x"], s * (1 + X * (1 - s)), rtol=1e-5)


def test_large_tensors_come_through(worker: Worker) -> None:
    value = np.arange(1 << 20, dtype=np.float32)
    reply = worker.call(Call("run_print", {"x": value}))
    np.testing.assert_array_equal(reply.outputs[0], value)


def test_tensors_larger_than_any_answer_are_not_sent(worker: Worker) -> None:
    reply = worker.call(Call("run_print", {"x": np.zeros((1 << 20) + 1, dtype=np.float32)}))
    assert reply.outcome is Outcome.FAILED
    assert "a tensor of the shape (1048577,), more than can be sent" in reply.message


def test_module_call(worker: Worker) -> None:
    call = ModuleCall("Double", {"dtype": "float64"}, inputs=(X,), return_state=True)
    reply = worker.call(call)
    np.testing.assert_array_equal(reply.outputs[0], 2 * X)
    assert reply.state["weight"].dtype == np.float64


def test_what_is_printed_comes_with_the_call(worker: Worker) -> None:
    printed = ask(worker, "run_print").printed
    assert "to stdout\n" in printed
    assert "to stderr\n" in printed
    assert "past Python\n" in printed
    assert ask(worker, "run_silu").printed == ""


def test_what_is_printed_is_bounded(worker: Worker) -> None:
    printed = ask(worker, "run_flood").printed
    assert len(printed) < 3000
    assert "bytes left out" in printed
    assert printed.endswith("the end\n")


# -- ends of a process ---------------------------------------------------------------------------


def test_exit_zero_is_a_crash(worker: Worker) -> None:
    reply = ask(worker, "run_exit")
    assert reply.outcome is Outcome.CRASHED
    assert reply.message == "the process ended with exit status 0 during the call"
    assert_well(worker)


def test_polite_exit_is_an_error(worker: Worker) -> None:
    reply = ask(worker, "run_polite_exit")
    assert reply.outcome is Outcome.RAISED
    assert "exit(0)" in reply.message
    assert 'File "adapters.py"' in reply.traceback


@pytest.mark.skipif(not platform.POSIX, reason="signals are POSIX's")
def test_signals_are_named(worker: Worker) -> None:
    reply = ask(worker, "run_segfault")
    assert reply.outcome is Outcome.CRASHED
    assert "SIGSEGV" in reply.message
    assert "run_segfault" in reply.traceback


def test_hang_is_timed_out_with_its_place(worker: Worker) -> None:
    reply = ask(worker, "run_hang")
    assert reply.outcome is Outcome.TIMED_OUT
    assert reply.message == "no answer within 2 s"
    assert reply.printed == "about to hang\n"
    if platform.POSIX:
        assert "in run_hang" in reply.traceback
    assert_well(worker)


def test_slow_import_gets_more_time(worker: Worker) -> None:
    reply = ask(worker, "run_slow_import")
    assert reply.outcome is Outcome.PASSED, reply.message
    np.testing.assert_array_equal(reply.outputs[0], 5 * X)


def test_too_much_memory(worker: Worker) -> None:
    reply = ask(worker, "run_memory")
    assert reply.outcome is Outcome.OUT_OF_MEMORY, reply.message


def test_interrupted_judge_starts_afresh(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    worker.describe()
    assert worker._link is not None

    def interrupted(deadline: float) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(worker._link, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ask(worker, "run_silu")
    assert_well(worker)


# -- attempts on the judge -----------------------------------------------------------------------


def test_printed_frames_are_no_answers(worker: Worker) -> None:
    reply = ask(worker, "run_forge")
    np.testing.assert_array_equal(reply.outputs[0], X)


@pytest.mark.skipif(not platform.POSIX, reason="descriptors are numbered otherwise")
def test_garbage_in_the_pipes_is_a_crash(worker: Worker) -> None:
    reply = ask(worker, "run_garbage")
    assert reply.outcome is Outcome.CRASHED
    assert "malformed" in reply.message
    assert_well(worker)


def test_a_flood_of_frames_ends_with_the_deadline(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.describe()
    event = {"event": "importing", "id": "of another call"}
    endless = SimpleNamespace(
        get=lambda timeout: (time.monotonic(), (event, b"")), put=lambda item, timeout: None
    )
    monkeypatch.setattr(worker._link, "_frames", endless)
    monkeypatch.setattr(worker, "limits", Limits(call_seconds=0.2))
    assert ask(worker, "run_silu").outcome is Outcome.TIMED_OUT


def test_nobody_answers_input(worker: Worker) -> None:
    reply = ask(worker, "run_input")
    assert reply.outcome is Outcome.RAISED
    assert "EOF" in reply.message


@pytest.mark.skipif(not platform.POSIX, reason="fork is POSIX's")
def test_a_fork_does_not_answer_twice(worker: Worker) -> None:
    for _ in range(3):
        assert ask(worker, "run_fork").outcome is Outcome.PASSED
        assert_well(worker)


def test_broken_torch_is_the_candidates_crash(worker: Worker) -> None:
    reply = ask(worker, "run_break_torch")
    assert reply.outcome is Outcome.CRASHED
    assert "cannot go on" in reply.message
    assert_well(worker)


def test_threads_do_not_matter(worker: Worker) -> None:
    assert ask(worker, "run_thread").outcome is Outcome.PASSED
    assert_well(worker)


# -- surroundings --------------------------------------------------------------------------------


def test_harness_cannot_be_imported(worker: Worker) -> None:
    reply = ask(worker, "run_harness")
    assert reply.outcome is Outcome.DELEGATED, reply.message
    assert reply.message.startswith("uses the suite's own code (conformance) at adapters.py, line ")
    assert reply.printed.strip() == "[]"


def test_gpu_is_hidden(worker: Worker) -> None:
    assert ask(worker, "run_cuda").outcome is Outcome.PASSED


def test_environment_is_scrubbed(worker: Worker) -> None:
    reply = ask(worker, "run_environment")
    assert reply.outcome is Outcome.PASSED, reply.message + reply.traceback


def test_judge_imports_no_torch(submission_folder: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from conformance.candidate.process import Worker
from conformance.candidate.resolve import resolve
submission = resolve({str(submission_folder)!r}, cwd=Path("/"))
assert not [n for n in sys.modules if n.partition(".")[0] in ("torch", "adapters", "slow")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=CHECKOUT)


def test_worker_stays_importable_by_old_interpreters() -> None:
    import ast

    from conformance.candidate import worker

    ast.parse(Path(worker.__file__).read_text(encoding="utf-8"), feature_version=(3, 9))


def test_close_in_the_middle_of_the_import(write: Write) -> None:
    folder = write({"adapters.py": "import time\ntime.sleep(60)\ndef run_silu(x): ..."})
    worker = Worker(resolve(str(folder), cwd=Path("/")))
    worker.start()
    assert worker._link is not None
    process = worker._link.process
    began = time.monotonic()
    worker.close()
    worker.close()
    assert process.poll() is not None
    assert time.monotonic() - began < 10


def test_close_ends_the_children_and_removes_the_folder(
    worker: Worker, has_ended: Callable[[int], bool]
) -> None:
    ask(worker, "run_children")
    assert worker._link is not None
    assert worker._folder is not None
    scratch = worker._folder.path
    family = psutil.Process(worker._link.process.pid()).children(recursive=True)
    assert any("time.sleep(600)" in " ".join(process.cmdline()) for process in family)
    worker.close()
    assert all(has_ended(process.pid) for process in family)
    assert not scratch.exists()
