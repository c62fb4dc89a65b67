"""A run that does not come to its end: never conforming, and nothing is left running."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

ENDING = [
    getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, n)
]

CHECKS = 2
"""So many checks are done when the run is interrupted."""


class Interrupted:
    """A slow run that was sent a signal in its middle."""

    def __init__(self, helpers: Any, runs: Any, cwd: Path, number: int) -> None:
        self.cwd = cwd
        command = "grade {c}/slow.py --component linear --profile quick --report out"
        process = subprocess.Popen(
            helpers["words_of"](command, runs.places),
            cwd=cwd,
            env=helpers["environment"](),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            preexec_fn=helpers["heed_interrupts"],
        )
        self._wait_for_checks(process)
        self.children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        self.out, _ = process.communicate(timeout=60)
        self.code = process.returncode

    def _wait_for_checks(self, process: subprocess.Popen[str]) -> None:
        results, end = self.cwd / "out" / "results.jsonl", time.monotonic() + 120
        while not results.exists() or results.read_bytes().count(b"\n") < 1 + CHECKS:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < end, "the run does not start"
            time.sleep(0.02)

    @property
    def verdict(self) -> str:
        return str(json.loads((self.cwd / "out" / "report.json").read_text("utf-8"))["verdict"])


@pytest.fixture
def interrupt(runs: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    helpers = vars(sys.modules[type(runs).__module__])
    return lambda number: Interrupted(helpers, runs, tmp_path, number)


@pytest.mark.parametrize("number", ENDING)
def test_interrupted(number: int, interrupt: Any) -> None:
    done = interrupt(number)
    assert done.code == 4
    assert done.verdict == "incomplete"
    assert "Verdict: INCOMPLETE" in done.out
    assert "Traceback" not in done.out
    assert _gone(done.children)


def test_killed(interrupt: Any, conformance: Any) -> None:
    done = interrupt(signal.SIGKILL)
    assert not (done.cwd / "out" / "report.json").exists()
    assert _gone(done.children)
    report = conformance("report out")
    assert report.code == 4
    assert done.verdict == "incomplete"
    assert "the footer is missing" in report.out.lower()


def _gone(processes: list[Any]) -> bool:
    """The candidate's process ends within seconds when its judge has."""
    assert processes, "there was a candidate's process"
    _, alive = psutil.wait_procs(processes, timeout=10)
    return not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]
