"""The outputs through the real command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
ZEROS = ROOT / "tests" / "cli" / "candidates" / "zeros.py"
FORGED = "::notice title=Autograding complete::Points 100/100"


@dataclass(frozen=True)
class Done:
    """A command that has ended: its exit code and all that it printed."""

    code: int
    out: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def run(cwd: Path, *words: str, **env: str) -> Done:
    dropped = ("PYTEST_", "PYTHONPATH", "CONFORMANCE_", "GITHUB_", "PYTHONDONTWRITE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    program, *rest = words
    done = subprocess.run(
        [str(BIN / program), *rest],
        cwd=cwd,
        env={**kept, "COLUMNS": "100", **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # as in a log
        encoding="utf-8",
        timeout=300,
    )
    return Done(done.returncode, done.stdout)


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def rubric(folder: Path, text: str) -> Path:
    path = folder / "rubric.toml"
    path.write_text(f"[components]\n{text}\n", "utf-8")
    return path


def github(folder: Path) -> dict[str, str]:
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_WORKSPACE": str(folder),
    }


def test_a_submission_that_cannot_be_loaded_and_forges_commands(tmp_path: Path) -> None:
    submission = tmp_path / "submission"
    submission.mkdir()
    forge = f'raise RuntimeError("no\\n{FORGED}\\n::error::x")\n'
    stub = "def run_silu(in_features):\n    return in_features\n\n\n"
    (submission / "adapters.py").write_text(stub + forge, "utf-8")
    (tmp_path / "g.json").write_text('{"score": 100}')
    done = run(
        tmp_path,
        *("conformance", "grade", "submission", "--audience", "student", "--github"),
        *("--junit", "j.xml", "--gradescope", "g.json"),
        **github(tmp_path),
    )
    assert done.code == 3
    found = read(tmp_path / "g.json")
    assert (found["score"], found["extra_data"]["failure"]) == (0, "candidate")
    (error,) = ElementTree.parse(tmp_path / "j.xml").getroot().iter("error")
    assert "cannot be loaded" in error.attrib["message"]
    assert "Candidate failure" in found["output"]
    # whatever the submission says stands between the command that stops all others and its end,
    # and is no command any more where it is shown
    first = re.fullmatch("::stop-commands::([0-9a-f]{32})", done.lines[0])
    assert first is not None
    inside, _, after = done.out.partition(f"\n::{first[1]}::\n")
    assert FORGED not in done.out
    assert FORGED.partition("complete::")[2] in inside
    commands = [line for line in after.splitlines() if line.lstrip().startswith("::")]
    assert len(commands) == 1
    assert commands[0].startswith("::error title=conformance%3A error::Nothing was graded")
    assert "failure=candidate\n" in (tmp_path / "output").read_text()
    assert (tmp_path / "summary").read_text("utf-8").startswith("# ⛔ Error")


@pytest.mark.parametrize("program", [["conformance", "grade", "x.py"], ["pytest", "--impl=x.py"]])
def test_a_rubric_that_is_wrong(program: list[str], tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("def run_silu(in_features): ...\n")
    (tmp_path / "g.json").write_text('{"score": 100}')
    rubric(tmp_path, "silu = -1\nrmsnrom = 3")
    done = run(tmp_path, *program, "--rubric=rubric.toml", "--gradescope=g.json", "--junit=j.xml")
    assert done.code == 2
    assert "rubric rubric.toml: components.silu: -1 points are negative; give 0 or more" in done.out
    assert "did you mean rmsnorm?" in done.out
    found = read(tmp_path / "g.json")
    assert (found["score"], found["extra_data"]["failure"]) == (0, "infrastructure")
    assert "-1 points are negative" in (tmp_path / "j.xml").read_text("utf-8")
    assert not (tmp_path / "reports").exists()


def test_what_a_student_sees_in_the_terminal(tmp_path: Path) -> None:
    rubric(tmp_path, "silu = 10")
    done = run(
        tmp_path,
        *("conformance", "grade", str(ZEROS), "--check", "silu::negative_numbers[float32]"),
        *("--audience", "student", "--rubric", "rubric.toml", "--full", "--github"),
    )
    assert done.code == 1
    assert "SILU-NEGATIVE (MUST)" in done.out
    assert "got:" in done.out
    assert not re.search(r"expected:? +[-0-9]", done.out)
    assert "Points: 0 of 10 points: infrastructure failure" in done.out  # it is only a part
    assert "GITHUB_ACTIONS is not set here" in done.out


def test_everything_again_from_recorded_results(tmp_path: Path, samples: Any) -> None:
    samples.write(tmp_path / "results.jsonl", samples.night())
    rubric(tmp_path, "rmsnorm = 10\nrope = { must = 5, grading = 'proportional' }")
    words = ("conformance", "report", "results.jsonl", "--rubric", "rubric.toml", "--github")
    done = run(
        tmp_path,
        *(*words, "--audience", "student", "--junit", "j.xml", "--gradescope", "out/g.json"),
        **github(tmp_path),
    )
    assert done.code == 1
    assert "Points: 1.25 of 15 points" in done.out
    assert "rope        1.25/5  MUST 1.25 of 5 (1 of 4 requirements); proportional" in done.out
    assert read(tmp_path / "out" / "g.json")["score"] == 1.25
    assert len(list(ElementTree.parse(tmp_path / "j.xml").getroot().iter("testcase"))) == 12
    report = (tmp_path / "report.md").read_text("utf-8")
    assert (tmp_path / "summary").read_text("utf-8") == report
    assert "**1.25 of 15 points.**" in report
    assert "0.316227766" not in report + (tmp_path / "report.json").read_text("utf-8") + done.out
    assert done.lines[-3].startswith("::error title=conformance%3A non-conforming::")
    again = run(tmp_path, *words[:3])
    assert "0.316227766" in (tmp_path / "report.md").read_text("utf-8")
    assert "Points" not in again.out
