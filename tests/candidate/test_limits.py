"""Limits and what differs between platforms."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.candidate import limits, worker
from conformance.candidate.link import put_script
from conformance.errors import UsageError


@pytest.mark.parametrize(
    ("size", "words"),
    [(8 << 30, "8 GiB"), (1536 << 20, "1.5 GiB"), (65536, "64 KiB"), (5, "5 bytes")],
)
def test_amount(size: int, words: str) -> None:
    assert limits.amount(size) == words


def test_environment_is_an_allow_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PYTHONPATH", "PYTHONSTARTUP", "GITHUB_TOKEN", "PYTEST_CURRENT_TEST", "LC_TEST"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    kept = limits.environment("cpu", tmp_path)
    assert "PATH" in kept
    assert kept["LC_TEST"] == "x"
    assert kept["CUDA_VISIBLE_DEVICES"] == ""
    assert kept["TMPDIR"] == str(tmp_path)
    assert not [n for n in kept if n.startswith(("PYTHON", "PYTEST", "GITHUB"))]


def test_gpu_is_there_when_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert limits.environment("cuda", tmp_path)["CUDA_VISIBLE_DEVICES"] == "1"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "ended with exit status 0"),
        (3, "ended with exit status 3"),
        (None, "closed its connection"),
        (0xC0000005, "was ended by the system for an access violation"),
        (0xC0000005 - (1 << 32), "was ended by the system for an access violation"),
    ],
)
def test_exit_text(status: int | None, words: str) -> None:
    assert limits.exit_text(status) == words


@pytest.mark.skipif(not limits.POSIX, reason="signals are POSIX's")
def test_exit_text_of_signals() -> None:
    assert limits.exit_text(-11) == "was killed by SIGSEGV (segmentation fault)"
    assert "out-of-memory" in limits.exit_text(-9)
    assert limits.exit_text(-250) == "was killed by signal 250"


def test_interpreter() -> None:
    assert limits.interpreter(None) == Path(sys.executable)
    assert limits.interpreter(Path(sys.prefix)).name.startswith("python")
    assert limits.interpreter(Path(sys.executable)) == Path(sys.executable)


def test_interpreter_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no Python interpreter in this folder"):
        limits.interpreter(tmp_path)
    with pytest.raises(UsageError, match="no such file"):
        limits.interpreter(tmp_path / "python")


def test_kill_takes_the_children_along(has_ended: Callable[[int], bool]) -> None:
    code = (
        "import subprocess, sys; "
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], "
        "start_new_session=True); print(p.pid, flush=True); p.wait()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, **limits.spawn_options()
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    memory, processes = limits.usage(process.pid)
    assert memory > 0
    assert processes == 1
    below = limits.below(process.pid, 1)
    assert below.pid == child
    limits.kill(process)
    process.stdout.close()
    assert process.poll() is not None
    assert limits.resident_memory(process.pid) == 0
    assert has_ended(child)


def test_a_busy_process_is_runnable_and_a_sleeping_one_is_not() -> None:
    program = "import sys, time\nif sys.argv[1] == 'busy':\n    while True: pass\ntime.sleep(60)"
    states = {}
    for kind in ("busy", "asleep"):
        with subprocess.Popen([sys.executable, "-c", program, kind]) as process:
            try:
                until = time.monotonic() + (60.0 if kind == "busy" else 1.0)
                while limits.processor_seconds(process.pid) <= 0.2 and time.monotonic() < until:
                    time.sleep(0.02)
                time.sleep(0.3)
                found = [limits.runnable(process.pid) for _ in range(20) if not time.sleep(0.02)]
                states[kind] = (sum(found) > 10, limits.processor_seconds(process.pid) > 0.2)
            finally:
                process.kill()
    assert states == {"busy": (True, True), "asleep": (False, False)}
    assert not limits.runnable(process.pid)
    assert limits.processor_seconds(process.pid) == 0.0


def test_the_worker_is_written_anew_whatever_lies_there(tmp_path: Path) -> None:
    scratch, victim = tmp_path / "scratch", tmp_path / "victim"
    victim.write_text("precious", "utf-8")
    wanted = Path(worker.__file__).read_bytes()
    scratch.mkdir()
    (scratch / "worker.py").symlink_to(victim)
    assert put_script(scratch).read_bytes() == wanted
    (scratch / "worker.py").unlink()
    (scratch / "worker.py").mkdir()
    assert put_script(scratch).read_bytes() == wanted
    shutil.rmtree(scratch)
    scratch.symlink_to(tmp_path)
    assert put_script(scratch).read_bytes() == wanted
    assert not scratch.is_symlink()
    assert not (tmp_path / "worker.py").exists()
    assert victim.read_text("utf-8") == "precious"
