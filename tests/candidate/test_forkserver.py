"""Workers that come from a fork server: as good as others, apart from each other, never the cause
of a verdict."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.candidate import forkserver, sandbox
from conformance.candidate.forkserver import ForkServer
from conformance.candidate.messages import Call, Outcome
from conformance.candidate.namespaces import Namespaces
from conformance.candidate.process import Worker
from conformance.candidate.resolve import resolve
from conformance.errors import SandboxError

Write = Callable[[Mapping[str, str]], Path]

pytestmark = pytest.mark.skipif(
    not sandbox.LINUX or shutil.which("bwrap") is None, reason="bubblewrap is not installed here"
)

CANDIDATE = """
    import json
    import random

    import numpy

    DRAWN = [random.random(), float(numpy.random.rand())]

    def run_code(x, code):
        scope = {}
        exec(code, scope)
        print(json.dumps(scope["result"]))
        return x * 1

    def run_silu(in_features):
        return in_features * in_features.sigmoid()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    """One server that several judges hold, as in a class."""
    made = ForkServer.start()
    yield made
    made.close()


@pytest.fixture
def inherited(server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> ForkServer:
    """The same, as a process finds it that was started by the one that grades the class."""
    monkeypatch.setattr(forkserver, "_inherited", server)
    return server


@pytest.fixture
def make(write: Write) -> Iterator[Callable[[], Worker]]:
    """Makes workers of one submission, and closes them."""
    folder = write({"adapters.py": CANDIDATE})
    made: list[Worker] = []

    def worker() -> Worker:
        made.append(Worker(resolve(str(folder), cwd=Path("/")), sandbox="require"))
        try:
            made[-1].start()
        except SandboxError as error:
            pytest.skip(f"it does not work here: {error}")
        return made[-1]

    yield worker
    for one in made:
        one.close()


def look(worker: Worker, code: str) -> Any:
    reply = worker.call(Call("run_code", {"x": np.ones(2, dtype=np.float32), "code": code}))
    assert reply.outcome is Outcome.PASSED, f"{reply.message}\n{reply.traceback}"
    return json.loads(reply.printed)


def is_forked(worker: Worker) -> bool:
    worker.describe()
    assert worker._link is not None
    return worker._link.forked


@pytest.mark.usefixtures("inherited")
def test_two_at_once_do_not_see_each_other(make: Callable[[], Worker]) -> None:
    first, second = make(), make()
    assert is_forked(first)
    assert is_forked(second)
    write = "import os\nopen(os.path.expanduser('~/mark'), 'w').close()\nresult = 1"
    assert look(first, write) == 1
    code = (
        "import os\nresult = [os.path.exists(os.path.expanduser('~/mark')), "
        "sorted(int(n) for n in os.listdir('/proc') if n.isdigit()), "
        "[os.readlink(f'/proc/self/ns/{n}') for n in ('pid', 'mnt', 'net', 'user')], os.getpid()]"
    )
    marked, *_, number = look(first, code)
    unmarked, processes, namespaces, own = look(second, code)
    assert marked
    assert not unmarked
    # the first process of the namespace, the one that waits, the candidate
    assert len(processes) == 3
    assert own in processes
    assert number == own  # both count from one
    ours = [os.readlink(f"/proc/self/ns/{n}") for n in ("pid", "mnt", "net", "user")]
    assert not set(namespaces) & set(ours)
    assert not set(namespaces) & set(look(first, code)[2])


@pytest.mark.usefixtures("inherited")
def test_random_numbers_of_the_import_are_not_shared(make: Callable[[], Worker]) -> None:
    code = "import adapters\nresult = adapters.DRAWN"
    first, second = look(make(), code), look(make(), code)
    assert not set(first) & set(second)


@pytest.mark.usefixtures("inherited")
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os\nos._exit(7)", "the process ended with exit status 7 during the call"),
        (
            "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
            "the process was killed by SIGSEGV (segmentation fault) during the call",
        ),
    ],
)
def test_how_it_ended(code: str, words: str, make: Callable[[], Worker]) -> None:
    worker = make()
    assert is_forked(worker)
    reply = worker.call(Call("run_code", {"x": np.ones(2, dtype=np.float32), "code": code}))
    assert (reply.outcome, reply.message) == (Outcome.CRASHED, words)
    assert is_forked(worker)
    assert look(worker, "result = 3") == 3


@pytest.mark.usefixtures("inherited")
def test_a_process_that_it_starts_finds_the_file_it_was_started_from(
    make: Callable[[], Worker],
) -> None:
    code = "import os, sys\nm = sys.modules['__main__'].__file__\n"
    worker = make()
    assert look(worker, code + "result = [os.path.exists(m), sys.argv == [m]]") == [True, True]
    worker._forks = False
    worker._drop()
    assert not is_forked(worker)
    assert look(worker, code + "result = [os.path.exists(m), sys.argv == [m]]") == [True, True]


def test_a_server_that_hangs_is_passed_over(
    make: Callable[[], Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = ForkServer.start()
    monkeypatch.setattr(forkserver, "_inherited", stopped)
    assert stopped.pid is not None
    os.kill(stopped.pid, signal.SIGSTOP)
    worker = make()
    worker.limits = replace(worker.limits, torch_seconds=3.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "_from_nothing", patient(Worker._from_nothing))
        assert not is_forked(worker)
    assert look(worker, "result = 6") == 6
    stopped.close()


def patient(instead: Callable[[Worker], bool]) -> Callable[[Worker], bool]:
    """The next start has the usual time again."""

    def call(self: Worker) -> bool:
        self.limits = replace(self.limits, torch_seconds=120.0)
        return instead(self)

    return call


def test_a_program_of_the_sandbox_that_was_changed_is_renewed(make: Callable[[], Worker]) -> None:
    worker = make()
    if worker._sandbox.copied is None:
        pytest.skip("the program of the sandbox is not this user's")
    reply = worker.call(
        Call(
            "run_code",
            {
                "x": np.ones(2, dtype=np.float32),
                "code": "import os\nos.chmod('/proc/1/exe', 0)\nos._exit(1)",
            },
        )
    )
    assert reply.outcome is Outcome.CRASHED
    assert look(worker, "result = 7") == 7


def test_without_the_server_they_start_from_nothing(
    make: Callable[[], Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = ForkServer.start()
    monkeypatch.setattr(forkserver, "_inherited", gone)
    assert gone.pid is not None
    os.kill(gone.pid, signal.SIGKILL)
    worker = make()
    assert not is_forked(worker)
    assert look(worker, "result = 4") == 4
    gone.close()


@pytest.mark.usefixtures("inherited")
def test_where_the_sandbox_cannot_be_entered_they_start_from_nothing(
    make: Callable[[], Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Namespaces._open

    def wrong(self: Namespaces) -> None:
        opened(self)
        self.descriptors.append(os.open(os.devnull, os.O_RDONLY))

    monkeypatch.setattr(Namespaces, "_open", wrong)
    worker = make()
    assert not is_forked(worker)
    assert look(worker, "result = 5") == 5


@pytest.mark.parametrize(
    ("mode", "device", "python"),
    [("off", "cpu", ""), ("auto", "cuda", ""), ("auto", "cpu", "/usr/bin/env")],
)
def test_where_it_is_not_used(mode: str, device: str, python: str) -> None:
    import sys

    assert forkserver.possible("auto", "cpu", Path(sys.executable))
    assert not forkserver.possible(mode, device, Path(python or sys.executable))
