"""Every exit code from a real run, each with one clear message."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

after = pytest.mark.after


@after("options")
def test_0_conforming(done: Any) -> None:
    assert done.code == 0
    assert done.report["verdict"] == "conforming"
    assert done.report["score"] == 1.0
    assert "Verdict: CONFORMING" in done.out


BAD_COMMANDS = {
    "": "usage: conformance",
    "nonsense": "invalid choice",
    "grade": "required: IMPL",
    "grade reference_impl --nonsense": "unrecognized arguments: --nonsense",
    "grade no/such/folder": "no such file or folder",
    "grade no_such_package": "neither a file or folder here, nor an installed package",
    "grade {long}": "name too long",
    "grade reference_impl --component lineer": "did you mean linear?",
    "grade reference_impl --check rope": "ids look like rope::definition[float32]",
    "grade reference_impl --check silu::definitoin[float32]": "did you mean silu::definition",
    "grade reference_impl --device tpu": "give cpu, cuda, cuda:N or mps",
    "grade reference_impl --seed -1": "give a whole number",
    "grade reference_impl --timeout nan": "give a positive number",
    "grade reference_impl --python /no/such/python": "there is no such file or folder",
    "grade reference_impl --report {file}/below": "cannot write results to",
    "grade {c}/declared_wrong": "names gelu; the components are",
    "grade reference_impl --component linear --check rope::definition[float32]": (
        "is a check of rope, but --component selects only linear"
    ),
    "report no/such/folder": "cannot read results",
    "report {file}": "does not hold the results of a run",
    "replay": "required: FILE",
    "replay no/such/file": "cannot read no/such/file",
    "replay {c}": "is not a file",
    "replay {file}": "not a safetensors file",
    "replay {file} --report here": "unrecognized arguments: --report",
    "explain RMSNORM-EPSS": "did you mean RMSNORM-EPS",
    "explain rope --coverage": "--coverage is about all components",
    "explain --markdown": "--markdown goes with --coverage",
    "fixtures verify no/such/folder": "is not a folder",
    "init {file}": "cannot write to",
    "pytest --impl=no_such_package": "nor an installed package",
    "pytest --impl=reference_impl tests": "no path can be given; name a component",
    "pytest --impl=reference_impl --seed=x": "give a whole number",
}


@pytest.mark.parametrize("command", BAD_COMMANDS)
def test_2_usage(command: str, conformance: Any, tmp_path: Path, runs: Any) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder\n", "utf-8")
    command = command.replace("{file}", str(file)).replace("{long}", "a" * 5000)
    done = conformance(command)
    assert done.code == 2
    assert BAD_COMMANDS[_key(command, tmp_path)] in done.text
    assert done.has_no_traceback()
    assert len(done.err) < 1500
    assert not (tmp_path / "reports").exists(), "nothing was graded"


def _key(command: str, tmp_path: Path) -> str:
    return command.replace(str(tmp_path / "file"), "{file}").replace("a" * 5000, "{long}")


@after("no_cuda")
def test_2_without_the_device(done: Any) -> None:
    if done.code == 0:
        pytest.skip("there is a CUDA device here")
    assert done.code == 2
    assert "the device 'cuda' cannot be used here" in done.out
    assert done.report["verdict"] == "error"
    assert done.has_no_traceback()


CANNOT_LOAD = {
    "missing": ("not installed here: package_that_nobody_has", "adapters.py, line 5"),
    "syntax": ("SyntaxError", "adapters.py, line 4"),
    "exit_at_import": ("calls exit(0) while it is imported", "adapters.py, line 5"),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=after(name)) for name in CANNOT_LOAD])
def test_3_cannot_be_loaded(done: Any, name: str) -> None:
    message, place = CANNOT_LOAD[name]
    told = " ".join(done.out.split())
    assert done.code == 3
    assert message in told
    assert place in told
    assert done.has_no_traceback()
    assert done.report["verdict"] == "error"
    assert done.report["score"] == 0.0
    assert done.report["candidate"]["name"] == name
    assert done.report["environment"]["exit_code"] == 3


def test_3_a_file_that_is_no_text(conformance: Any) -> None:
    for name, words in {
        "utf16.py": "utf16.py is text in UTF-16, which Python does not read; save it as UTF-8",
        "holds_nul": "adapters.py holds a NUL byte in line 4, so it is no Python source",
    }.items():
        done = conformance(f"grade {{c}}/{name} --component silu")
        assert done.code == 3
        assert words in done.err
        assert len(done.text.splitlines()) == 1


@after("pytest deselected")
def test_4_deselected(done: Any) -> None:
    _is_incomplete(done)
    assert "were deselected; the ones that ran passed" in done.out


@after("check")
def test_4_a_single_check_proves_nothing(done: Any) -> None:
    _is_incomplete(done)
    assert done.folder.name == "replay", "the report it was found in is not replaced"
    assert "This check passes now; for a verdict run the whole" in done.out
    assert "Next:" not in done.out


@after("pytest stopped")
def test_4_stopped_at_the_first_failure(done: Any) -> None:
    _is_incomplete(done)
    assert list(done.outcomes().values()) == ["failed"]


def _is_incomplete(done: Any) -> None:
    assert done.code == 4
    assert done.report["verdict"] == "incomplete"
    assert done.report["score"] == 0.0
    assert "Verdict: INCOMPLETE" in done.out
    assert done.has_no_traceback()


@after("pytest broken suite")
def test_4_a_mistake_of_the_suite_is_no_verdict(done: Any) -> None:
    assert done.code == 4
    assert done.report["verdict"] == "error"
    assert "says nothing about the candidate" in done.out
    told = " ".join(done.out.split())
    assert "check silu::definition[float32]: internal error: ZeroDivisionError" in told
    assert "breaks_the_suite" not in done.out or "line" not in done.out
    assert done.has_no_traceback()
    assert len(done.outcomes()) > 10, "the other checks go on"


def test_2_two_runs_at_once_into_one_folder(
    conformance: Any, candidates: Path, tmp_path: Path
) -> None:
    """Two runs at once into one folder: the second one is refused, the first gives its verdict."""
    from concurrent.futures import ThreadPoolExecutor

    def grade(name: str) -> Any:
        return conformance(
            f"grade {candidates / name} --component silu --profile quick --report shared"
        )

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(grade, "slow.py")
        _wait_for(tmp_path / "shared" / "results.jsonl")
        second = pool.submit(grade, "right.py")
        codes = first.result().code, second.result().code
    assert codes == (0, 2)
    assert "another run is writing to" in second.result().err
    assert second.result().has_no_traceback()


def _wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, f"{path} does not come"
        time.sleep(0.05)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
)
def test_2_the_working_directory_cannot_be_written(conformance: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    done = conformance("grade reference_impl --component silu")
    tmp_path.chmod(0o700)
    assert done.code == 2
    assert "cannot write results to" in done.err
    assert done.has_no_traceback()
