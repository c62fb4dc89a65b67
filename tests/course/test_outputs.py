"""Writing: nothing of an older run is left, nothing is lost, a failure gives no points."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance.course import Rubric
from conformance.course.outputs import NOT_ENDED, Environment, Outputs
from conformance.errors import ExitCode, LoadError, UsageError
from conformance.options import GradeOptions
from conformance.report import Results, judge

FULL = json.dumps({"score": 25, "tests": []})


@pytest.fixture
def actions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As in a step of GitHub Actions; the folder of its files."""
    folder = tmp_path / "runner"
    folder.mkdir()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary"))
    monkeypatch.setenv("GITHUB_OUTPUT", str(folder / "output"))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    return folder


def opened(cwd: Path, rubric: Rubric | None, **given: Any) -> Outputs:
    outputs = Outputs.asked_for(given, cwd)
    outputs.settle(GradeOptions.parse("mine", {"audience": "student", "rubric": rubric, **given}))
    return outputs


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def test_nothing_asked_for_writes_nothing(tmp_path: Path, passing: Results) -> None:
    outputs = opened(tmp_path, None)
    outputs.write(passing, judge(passing))
    assert (outputs.opening_line(), outputs.closing_lines()) == ("", [])
    assert list(tmp_path.iterdir()) == []


def test_until_the_end_the_files_say_that_there_is_no_result(
    tmp_path: Path, passing: Results, rubric: Rubric
) -> None:
    (tmp_path / "g.json").write_text(FULL)
    (tmp_path / "j.xml").write_text("<testsuites/>")
    outputs = opened(tmp_path, rubric, gradescope="g.json", junit="j.xml")
    found = read(tmp_path / "g.json")
    assert (found["score"], found["extra_data"]["failure"]) == (0, "infrastructure")
    assert NOT_ENDED in found["output"]
    root = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert root.attrib["errors"] == "1"
    outputs.write(passing, judge(passing))
    assert read(tmp_path / "g.json")["score"] == 25
    assert ElementTree.parse(tmp_path / "j.xml").getroot().attrib["errors"] == "0"


def test_a_link_is_replaced_not_followed(tmp_path: Path, passing: Results, rubric: Rubric) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "g.json").symlink_to(precious)
    opened(tmp_path, rubric, gradescope="g.json").write(passing, judge(passing))
    assert precious.read_text() == "mine"
    assert not (tmp_path / "g.json").is_symlink()


@pytest.mark.parametrize("name", ["gradescope", "junit"])
def test_what_cannot_be_written_is_told_before_anything_is_graded(
    tmp_path: Path, name: str, rubric: Rubric
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    for bad in ("folder", "file/below"):
        with pytest.raises(UsageError, match="cannot write the"):
            opened(tmp_path, rubric, **{name: bad})


def test_two_outputs_need_two_files(tmp_path: Path, rubric: Rubric) -> None:
    with pytest.raises(UsageError, match="both name x; give two files"):
        opened(tmp_path, rubric, gradescope="x", junit="x")


def test_a_refusal_is_written_and_a_result_is_not_replaced_by_one(
    tmp_path: Path, passing: Results, rubric: Rubric
) -> None:
    outputs = opened(tmp_path, rubric, gradescope="g.json")
    outputs.refuse(LoadError("adapters.py: invalid syntax"))
    found = read(tmp_path / "g.json")
    assert found["extra_data"]["failure"] == "candidate"
    assert "adapters.py: invalid syntax" in found["output"]
    outputs = opened(tmp_path, rubric, gradescope="g.json")
    outputs.write(passing, judge(passing))
    outputs.refuse(LoadError("too late"))
    assert read(tmp_path / "g.json")["score"] == 25


def test_options_that_are_wrong_are_told_to_the_files_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(FULL)
    outputs = Outputs.asked_for({"gradescope": "g.json"}, tmp_path)
    outputs.refuse(UsageError("--seed x: give a whole number"))
    found = read(tmp_path / "g.json")
    assert (found["score"], found["extra_data"]["failure"]) == (0, "infrastructure")
    assert "--seed x" in found["output"]


def test_points_are_taken_back_when_the_run_turns_out_to_prove_nothing(
    tmp_path: Path, passing: Results, rubric: Rubric
) -> None:
    outputs = opened(tmp_path, rubric, gradescope="g.json", junit="j.xml")
    outputs.write(passing, judge(passing))
    outputs.doubt("the reports are not those of this run")
    found = read(tmp_path / "g.json")
    assert (found["score"], found["extra_data"]["failure"]) == (0, "infrastructure")
    assert "not those of this run" in (tmp_path / "j.xml").read_text("utf-8")


def test_doubt_does_not_hide_who_failed(tmp_path: Path, rubric: Rubric) -> None:
    outputs = opened(tmp_path, rubric, gradescope="g.json")
    outputs.refuse(LoadError("no module named x"))
    outputs.doubt("no module named x")
    assert read(tmp_path / "g.json")["extra_data"]["failure"] == "candidate"


def test_a_step_of_github_actions(
    tmp_path: Path, actions: Path, samples: Any, rubric: Rubric
) -> None:
    night = samples.night()
    candidate = replace(night.header.candidate, path="tests/adapters.py")
    night = replace(night, header=replace(night.header, candidate=candidate))
    (actions / "summary").write_text("before\n")
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    outputs = opened(tmp_path / "repo", rubric, github=True)
    first = outputs.opening_line()
    outputs.write(night, judge(night))
    summary = (actions / "summary").read_text("utf-8")
    assert summary.startswith("before\n# ❌ Non-conforming")
    assert "**0 of 25 points.**" in summary
    assert "0.316227766" not in summary
    values = dict(line.split("=", 1) for line in (actions / "output").read_text().splitlines())
    assert values["verdict"] == "non-conforming"
    assert (values["points"], values["max-points"], values["failure"]) == ("0", "25", "")
    assert json.loads(base64.b64decode(values["result"]))["max_score"] == 25
    resumed, *rest = outputs.closing_lines()
    assert first == f"::stop-commands::{resumed.strip(':')}"
    assert len(first) > 40
    assert rest[1].startswith("::error file=tests/adapters.py,title=rmsnorm")


def test_a_summary_that_is_nearly_full(
    tmp_path: Path, actions: Path, samples: Any, rubric: Rubric
) -> None:
    (actions / "summary").write_text("x" * 999_000)
    night = samples.night()
    opened(tmp_path, rubric, github=True).write(night, judge(night))
    text = (actions / "summary").read_text("utf-8")
    assert len(text.encode()) < 1024 * 1024
    assert "**0 of 25 points.**" in text


def test_elsewhere_github_is_left_alone(
    tmp_path: Path, passing: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    outputs = opened(tmp_path, None, github=True)
    outputs.write(passing, judge(passing))
    assert outputs.opening_line() == ""
    assert outputs.closing_lines() == [
        "--github: GITHUB_ACTIONS is not set here, so nothing was written for it"
    ]
    assert not (tmp_path / "summary").exists()


def test_outputs_of_the_step_that_cannot_be_written(
    tmp_path: Path, actions: Path, passing: Results
) -> None:
    (actions / "output").mkdir()
    with pytest.raises(UsageError, match="cannot write the outputs of the step") as caught:
        opened(tmp_path, None, github=True).write(passing, judge(passing))
    assert caught.value.exit_code is ExitCode.USAGE


def test_only_what_is_set_counts() -> None:
    assert Environment.of({"GITHUB_ACTIONS": "1", "GITHUB_OUTPUT": ""}) == Environment()
