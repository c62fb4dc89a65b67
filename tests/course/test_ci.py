"""`conformance init --ci`: what it writes, and that what it writes works."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.cli import main, parser
from conformance.course.ci import FILES
from conformance.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
SERVICES = tuple(FILES)
CANDIDATES = ROOT / "tests" / "cli" / "candidates"
BIN = Path(sys.executable).parent


@pytest.fixture(autouse=True)
def streams(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdout", "stderr"):  # `main` puts its own in their place
        monkeypatch.setattr(sys, name, getattr(sys, name))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Service -> folder with its files."""
    folders = {name: tmp_path_factory.mktemp(name) for name in SERVICES}
    for name, folder in folders.items():
        assert main(["init", str(folder), "--ci", name]) == 0
    return folders


def files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_what_is_written(made: dict[str, Path]) -> None:
    for name, folder in made.items():
        assert files(folder) == {*FILES[name], "course.toml"}


@pytest.mark.parametrize("service", SERVICES)
def test_nothing_is_overwritten(service: str, tmp_path: Path, capsys: Any) -> None:
    for kept in (*FILES[service], "course.toml"):
        folder = tmp_path / kept.replace("/", "-")
        (folder / kept).parent.mkdir(parents=True)
        (folder / kept).write_text("mine")
        assert main(["init", "--ci", service, str(folder)]) == 2
        assert "exists already; nothing was written" in capsys.readouterr().err
        assert files(folder) == {kept}
        assert (folder / kept).read_text() == "mine"


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "file").write_text("x")
    assert main(["init", "--ci", "github", str(tmp_path / "file" / "below")]) == 2
    assert "cannot write to" in capsys.readouterr().err


def steps(made: dict[str, Path]) -> list[dict[str, Any]]:
    text = (made["github"] / ".github/workflows/conformance.yml").read_text("utf-8")
    workflow = yaml.safe_load(text)
    (job,) = workflow["jobs"].values()
    assert workflow["permissions"]["contents"] == "read"
    found: list[dict[str, Any]] = job["steps"]
    return found


def gitlab(made: dict[str, Path]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((made["gitlab"] / ".gitlab-ci.yml").read_text("utf-8"))
    return dict(found["conformance"])


def scripts(made: dict[str, Path]) -> list[str]:
    """Every piece of shell in the files."""
    job = gitlab(made)
    return [
        *(step["run"] for step in steps(made) if "run" in step),
        "\n".join([*job["before_script"], *job["script"]]),
        *((made["gradescope"] / name).read_text("utf-8") for name in FILES["gradescope"]),
    ]


def test_the_shell_in_them_is_well_formed(made: dict[str, Path]) -> None:
    found = scripts(made)
    assert len(found) == 6
    for script in found:
        done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, ""), script


def test_the_scripts_can_be_run(made: dict[str, Path]) -> None:
    for name in FILES["gradescope"]:
        path = made["gradescope"] / name
        assert os.access(path, os.X_OK)
        assert path.read_bytes().startswith(b"#!/usr/bin/env bash\n")


def commands(made: dict[str, Path]) -> list[list[str]]:
    """The words of every `conformance grade` in the files."""
    joined = [re.sub(r"\\\n\s*", " ", script) for script in scripts(made)]
    lines = [line for script in joined for line in script.splitlines()]
    found = [line.partition("conformance grade ")[2] for line in lines]
    return [["grade", *shlex.split(line)] for line in found if line]


def test_the_commands_in_them_are_understood(made: dict[str, Path]) -> None:
    found = commands(made)
    assert len(found) == 3
    for words in found:
        options = parser().parse_args(words)
        assert options.gate
        assert options.audience == "student"
        assert options.config.endswith("course.toml")
        # where the runner is known to allow a sandbox it is demanded; elsewhere a variable says so
        variable = re.fullmatch(r"\$(CONFORMANCE_)?SANDBOX", options.sandbox or "")
        assert options.require_sandbox or variable
        for option in OPTIONS:  # reports lie outside of what holds expected values
            assert hasattr(options, option.key)


def test_what_holds_expected_values_is_not_handed_on(made: dict[str, Path]) -> None:
    (upload,) = (s for s in steps(made) if "upload-artifact" in s.get("uses", ""))
    paths = [*upload["with"]["path"].split(), *gitlab(made)["artifacts"]["paths"]]
    assert {Path(path).name for path in paths} == {"junit.xml", "report.md", "report.json"}
    checkouts = [s["with"] for s in steps(made) if "checkout" in s.get("uses", "")]
    assert [with_["persist-credentials"] for with_ in checkouts] == [False, False]


def test_the_submission_is_never_installed(made: dict[str, Path]) -> None:
    for script in scripts(made):
        for line in script.splitlines():
            if "pip" in line and "install" in line:
                assert "submission" not in line
                assert not line.endswith((" .", " -e ."))


def autograder(made: dict[str, Path], folder: Path, conformance: str) -> tuple[Any, str]:
    """Run the script as Gradescope does; what it leaves, and what it printed."""
    (folder / "venv" / "bin").mkdir(parents=True)
    (folder / "source").mkdir()
    (folder / "results").mkdir()
    (folder / "results" / "results.json").write_text('{"score": 99}')
    program = folder / "venv" / "bin" / "conformance"
    program.write_text(f"#!/usr/bin/env bash\n{conformance}\n")
    program.chmod(0o755)
    course = (made["gradescope"] / "course.toml").read_text("utf-8")
    course = course.replace("[grade]\n", '[grade]\ncomponent = ["silu"]\nprofile = "quick"\n', 1)
    head = course.partition("[rubric.components]")[0]
    (folder / "source" / "course.toml").write_text(f"{head}[rubric.components]\nsilu = 10\n")
    done = subprocess.run(
        [str(made["gradescope"] / "run_autograder")],
        env={**os.environ, "AUTOGRADER": str(folder), "LIMIT": "5m"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "results" / "results.json").read_text("utf-8")), done.stdout


def test_gradescope_is_told_when_nothing_works(made: dict[str, Path], tmp_path: Path) -> None:
    found, out = autograder(made, tmp_path / "it's here", "exit 7")
    assert found["score"] == 0
    assert found["output"].startswith("Infrastructure failure")
    assert "exit code 7" in out


def test_gradescope_for_real(made: dict[str, Path], tmp_path: Path) -> None:
    """The whole way: the script, the gate, the instructor's file, the points, the audience."""
    submission = tmp_path / "submission"
    submission.mkdir()
    shutil.copy(CANDIDATES / "zeros.py", submission / "adapters.py")
    program = shlex.quote(str(BIN / "conformance"))
    found, out = autograder(made, tmp_path, f'exec {program} "$@"')
    assert "exit code 1" in out
    assert (found["score"], found["extra_data"]["max_score"]) == (0, 10)
    assert found["extra_data"]["verdict"] == "non-conforming"
    (test,) = found["tests"]
    assert test["name"] == "silu"
    assert "SILU-DEFINITION" in test["output"]
    assert "expected" not in test["output"]
    assert "Points: 0 of 10 points" in out
