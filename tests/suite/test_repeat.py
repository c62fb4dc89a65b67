"""The same submission, graded again, has the same report; where it has not, that is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import repeat

SAME = "def run_silu(in_features):\n    return in_features * 0.5\n"
OTHER = (
    "import os\n"
    "def run_silu(in_features):\n"
    "    return in_features * int.from_bytes(os.urandom(4), 'little') * 2.0**-32\n"
)
OPTIONS = ["--profile", "quick", "--component", "silu"]


@pytest.mark.parametrize(("text", "status"), [(SAME, 0), (OTHER, 1)])
def test_reports_of_the_same_submission(tmp_path: Path, text: str, status: int) -> None:
    (tmp_path / "adapters.py").write_text(text, "utf-8")
    command = [sys.executable, repeat.__file__, str(tmp_path), "--times", "2", *OPTIONS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert f"{status} differ from the first" in done.stdout


def report(seconds: float, margin: float) -> bytes:
    checks = [{"id": "silu::definition[float32]", "seconds": seconds, "margin": margin}]
    environment = {"started": f"at {seconds}", "finished": f"at {seconds}", "seed": 0}
    return json.dumps({"checks": checks, "environment": environment}).encode()


def compared(first: bytes, other: bytes, name: str) -> list[str]:
    one, two = ({name: repeat.without_times(name, data)} for data in (first, other))
    return repeat.differences(one, two)


def test_times_are_left_out_and_nothing_else() -> None:
    assert compared(report(1.0, 0.5), report(2.0, 0.5), "report.json") == []
    assert compared(report(1.0, 0.5), report(1.0, 0.6), "report.json")
    line = b"| seed | `0` |\n| time | `%s` |\n"
    assert compared(line % b"now", line % b"later", "report.md") == []
    assert compared(line % b"now", b"| seed | `1` |\n| time | `now` |\n", "report.md")


def test_counterexamples_are_compared_by_their_bytes() -> None:
    assert repeat.differences({"counterexamples/a": "00"}, {"counterexamples/a": "01"})
    assert repeat.differences({"counterexamples/a": "00"}, {})
