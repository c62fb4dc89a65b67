"""The real command line on real submissions, one component each."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conformance.cli import main

RIGHT = """
import torch

def run_silu(in_features):
    return in_features * torch.sigmoid(in_features)
"""
WRONG = RIGHT.replace("sigmoid(in_features)", "sigmoid(1.702 * in_features)")
SETTINGS = """
[grade]
component = ["silu"]
profile = "quick"
dtype = ["float32"]
[rubric.components]
silu = 10
"""


def command(cwd: Path, words: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("conformance", path=str(Path(sys.executable).parent))
    assert program is not None
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PYTHONPATH"))}
    return subprocess.run(
        [program, "grade-all", *words.split()],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )


def test_a_small_class(tmp_path: Path) -> None:
    folder = tmp_path / "class"
    for name, text in (("ada", WRONG), ("bob", "def run_silu(:\n")):
        (folder / name).mkdir(parents=True)
        (folder / name / "adapters.py").write_text(text, "utf-8")
    with zipfile.ZipFile(folder / "cyd.zip", "w") as archive:
        archive.writestr("homework/adapters.py", RIGHT)
    (folder / "json.py").write_text("raise RuntimeError('json.py was imported')\n", "utf-8")
    (tmp_path / "course.toml").write_text(SETTINGS, "utf-8")
    words = ". --config ../course.toml --out ../out --jobs 3"
    done = command(folder, words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 submissions: 1 conforming, 1 not conforming, 1 cannot be graded" in done.stdout
    with (tmp_path / "out" / "class.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert list(rows) == ["bob", "ada", "cyd"]
    told = {name: (row["exit_code"], row["points"], row["failure"]) for name, row in rows.items()}
    assert told == {
        "bob": ("3", "", "candidate"),
        "ada": ("1", "0.0", ""),
        "cyd": ("0", "10.0", ""),
    }
    assert rows["ada"]["likely_mistake"].startswith("silu: ")
    assert float(rows["cyd"]["peak_mib"]) > 50
    assert (tmp_path / "out" / "cyd" / "report.md").is_file()
    record = (tmp_path / "out" / "record.jsonl").read_bytes()
    again = command(folder, words)
    assert again.returncode == 0
    assert again.stdout.count("graded before") == 3
    assert (tmp_path / "out" / "record.jsonl").read_bytes() == record


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (". --jobs 0", "--jobs 0"),
        (". --limit x", "--limit x"),
        (". --profile slow", "--profile slow"),
        ("nowhere", "no such file or folder"),
        (". --executor nonsense", "--executor nonsense"),
        (". --executor json:nothing", "--executor json:nothing"),
        (". --out a/results", "inside the submission"),
    ],
)
def test_wrong_use_is_told_at_once(
    words: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["grade-all", *words.split()]) == 2
    assert message in capsys.readouterr().err
