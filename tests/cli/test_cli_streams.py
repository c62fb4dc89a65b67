"""Terminals that cannot show everything, and readers that go away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

after = pytest.mark.after


@after("zeros")
def test_a_terminal_that_knows_only_ascii(done: Any) -> None:
    assert done.code == 1
    assert done.out.isascii()
    assert "Verdict: NON-CONFORMING" in done.out
    assert done.has_no_traceback()
    assert done.folder.name == "größe"


def test_explain_on_a_terminal_that_knows_only_ascii(conformance: Any) -> None:
    done = conformance("explain", PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
    assert done.code == 0
    assert done.out.isascii()


@pytest.fixture
def cut_off(runs: Any, tmp_path: Path) -> Any:
    """Runs a command whose reader goes away after some lines."""
    helpers = vars(sys.modules[type(runs).__module__])

    def start(command: str, lines: int) -> tuple[int, str]:
        with subprocess.Popen(
            helpers["words_of"](command, runs.places),
            cwd=tmp_path,
            env=helpers["environment"](),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            for _ in range(lines):
                process.stdout.readline()
            process.stdout.close()
            err = process.stderr.read()
        return process.returncode, err

    return start


def test_a_reader_that_goes_away_does_not_stop_the_grading(cut_off: Any, tmp_path: Path) -> None:
    command = "grade {c}/right.py --component silu --profile quick --report out"
    assert cut_off(command, lines=1) == (0, "")
    assert '"verdict": "conforming"' in (tmp_path / "out" / "report.json").read_text("utf-8")


def test_pytest_with_a_reader_that_goes_away(cut_off: Any, tmp_path: Path) -> None:
    command = "pytest --impl={c}/zeros.py silu --profile quick --report out"
    assert cut_off(command, lines=1) == (1, "")
    assert '"verdict": "non-conforming"' in (tmp_path / "out" / "report.json").read_text("utf-8")


def test_explain_with_a_reader_that_goes_away(cut_off: Any) -> None:
    assert cut_off("explain", lines=0) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
def test_closed_output(runs: Any, tmp_path: Path) -> None:
    helpers = vars(sys.modules[type(runs).__module__])
    command = "grade {c}/right.py --component silu --profile quick --report out"
    words = helpers["words_of"](command, runs.places)
    shell = ["sh", "-c", '"$@" >&- 2>&-', "sh", *words]
    process = subprocess.run(shell, cwd=tmp_path, env=helpers["environment"](), timeout=120)
    assert process.returncode == 0
    assert (tmp_path / "out" / "report.md").exists()
