"""The whole way: command, process of the candidate, record, verdict."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SUBMISSION = """
import torch.nn.functional as F


def run_silu(in_features):
    return F.silu(in_features)
"""

COURSE = """
[policy]
extends = "from-scratch"
effect = "zero"
"""

RUNS = {
    "from scratch": "--policy from-scratch",
    "none": "",
    "zero": "--config course.toml",
    "its own": "--policy work/policy.toml",
}


@dataclass(frozen=True)
class Done:
    code: int
    text: str
    report: Path

    def lines(self) -> list[dict[str, Any]]:
        text = (self.report / "results.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def numbers(self) -> dict[str, Any]:
        checks = [line for line in self.lines() if line["kind"] == "check"]
        return {c["id"]: (c["outcome"], c["margin"], c["message"]) for c in checks}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """All runs, made at once."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "work").mkdir()
    (folder / "work" / "adapters.py").write_text(SUBMISSION, "utf-8")
    (folder / "work" / "policy.toml").write_text(COURSE, "utf-8")
    (folder / "course.toml").write_text(COURSE, "utf-8")
    with ThreadPoolExecutor(max_workers=2) as pool:
        started = {name: pool.submit(run, folder, name, words) for name, words in RUNS.items()}
    return {name: future.result() for name, future in started.items()}


def run(folder: Path, name: str, words: str) -> Done:
    program = shutil.which("conformance", path=str(Path(sys.executable).parent))
    assert program is not None
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "CONFORMANCE_"))}
    command = [program, "grade", "work", "--component", "silu", "--profile", "quick"]
    process = subprocess.run(
        [*command, "--report", f"report of {name}", *words.split()],
        cwd=folder,
        env=kept,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    text = process.stdout + process.stderr
    return Done(process.returncode, text, folder / f"report of {name}")


def test_from_scratch_decides(done: dict[str, Done]) -> None:
    scratch = done["from scratch"]
    assert scratch.code == 1, scratch.text
    assert "The rules of from-scratch are broken in silu" in scratch.text
    assert "silu: torch.nn.functional.silu in adapters.py:6, non-conforming" in scratch.text
    (policy,) = [line for line in scratch.lines() if line["kind"] == "policy"]
    assert [use["component"] for use in policy["uses"]] == ["silu"]
    assert policy["observed"]["silu"] > 3
    assert scratch.lines()[0]["policy"] == "from-scratch"


def test_to_be_watched_changes_no_number(done: dict[str, Done]) -> None:
    assert done["none"].code == 0, done["none"].text
    assert "Rules of" not in done["none"].text
    assert done["from scratch"].numbers() == done["none"].numbers()


def test_a_file_of_the_instructor_s_takes_points_only(done: dict[str, Done]) -> None:
    zero = done["zero"]
    assert zero.code == 0, zero.text
    assert "silu: torch.nn.functional.silu in adapters.py:6, no points" in zero.text
    document = json.loads((zero.report / "report.json").read_text("utf-8"))
    assert (document["verdict"], document["score"]) == ("conforming", 0.0)
    assert document["environment"]["policy"]["uses"][0]["effect"] == "zero"


def test_a_policy_of_the_submission_s_own_is_refused(done: dict[str, Done]) -> None:
    assert done["its own"].code == 2
    assert "inside the submission" in done["its own"].text
