"""Inputs that were answered wrongly: stored beside the report, and asked again by `replay`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

after = pytest.mark.after

ZEROS = "silu--definition-float32.safetensors"


def stored(done: Any) -> dict[str, Path]:
    return {path.name: path for path in (done.folder / "counterexamples").iterdir()}


def details(done: Any, id: str) -> dict[str, Any]:
    lines = [json.loads(text) for text in (done.folder / "results.jsonl").open(encoding="utf-8")]
    (found,) = [line["details"] for line in lines if line.get("id") == id]
    return dict(found)


@after("zeros")
def test_every_failed_check_has_its_input_stored(done: Any) -> None:
    failed = [c for c in done.report["checks"] if c["outcome"] == "failed"]
    assert failed
    names = {Path(check["counterexample"]["file"]).name for check in failed}
    assert names == set(stored(done))
    passed = [c for c in done.report["checks"] if c["outcome"] == "passed"]
    assert {check["counterexample"] for check in passed} == {None}


@after("raises")
def test_the_report_names_the_file_and_the_command(done: Any) -> None:
    found = details(done, "silu::any_shape[float32]")
    path = "reports/raises/partial/counterexamples/silu--any_shape-float32.safetensors"
    assert found["counterexample"] == path
    assert found["counterexample_replay"] == f"conformance replay {path}"
    assert (done.cwd / path).is_file()
    report = (done.folder / "report.md").read_text("utf-8")
    assert f"This input lies in `{path}`." in report
    assert f"\nconformance replay {path}\n" in report


@after("seed")
def test_nothing_is_stored_where_nothing_fails(done: Any) -> None:
    assert not (done.folder / "counterexamples").exists()


@after("pytest distributed", "zeros")
def test_distributed_stores_the_same(done: Any, runs: Any) -> None:
    assert set(stored(done)) == set(stored(runs.get("zeros")))


@after("zeros")
def test_what_is_still_wrong(done: Any, conformance: Any) -> None:
    """The command of the report, as it stands there, from the folder of the run."""
    command = details(done, "silu::definition[float32]")["counterexample_replay"]
    again = conformance(" ".join(shlex.split(command)[1:]), cwd=done.cwd)
    assert again.code == 1
    assert again.out.startswith("silu::definition[float32]: SILU-DEFINITION\n")
    for part in ("input ", "in_features = float32[", "expected ", "got ", "times the tolerance"):
        assert part in again.out
    assert "WRONG: the result is wrong in" in again.out
    assert "--check 'silu::definition[float32]'" in again.out
    assert again.has_no_traceback()
    assert not again.err


@after("zeros")
def test_another_candidate_answers_it_rightly(done: Any, conformance: Any) -> None:
    again = conformance(f"replay {stored(done)[ZEROS]} --impl {{c}}/right.py")
    assert again.code == 0
    assert "Candidate: right, the adapters file right.py" in again.out
    assert "RIGHT: this input is answered as it should be" in again.out
    assert "conformance grade" in again.out


@after("raises")
def test_an_exception_is_shown_with_its_place(done: Any, conformance: Any) -> None:
    (path,) = [p for name, p in stored(done).items() if name.startswith("silu--any_shape")]
    again = conformance(f"replay {path} --in-process")
    assert again.code == 1
    assert "WRONG: raised: ValueError: the input has one axis too many." in again.out
    assert 'File "raises.py", line' in again.out
    assert "worker.py" not in again.out


@after("float32_for_bfloat16")
def test_a_check_of_more_than_one_value(done: Any, conformance: Any) -> None:
    """Right within its tolerance by itself: the whole check is named as the way to repeat it."""
    (path,) = [p for n, p in stored(done).items() if n.startswith("rmsnorm--rounded_once-bf")]
    again = conformance(f"replay {path}")
    assert again.code == 0
    told = " ".join(again.out.split())
    assert "RIGHT" in told
    assert "By itself it was not wrong when it was stored either" in told
    assert "--check 'rmsnorm::rounded_once[bfloat16]'" in told


@after("float32_for_bfloat16")
def test_the_wrong_dtype_is_wrong_again(done: Any, conformance: Any) -> None:
    (path,) = [p for n, p in stored(done).items() if n.startswith("rmsnorm--half_precision-bf")]
    again = conformance(f"replay {path}")
    assert again.code == 1
    assert "WRONG: the result is float32 for bfloat16 input." in again.out


@after("zeros")
@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ("--impl no_such_package", 2, "nor an installed package"),
        ("--impl {c}/missing", 3, "not installed here: package_that_nobody_has"),
        ("--device tpu", 2, "give cpu, cuda, cuda:N or mps"),
        ("--python /no/such/python", 2, "there is no such file or folder"),
    ],
)
def test_other_exit_codes(done: Any, conformance: Any, options: str, code: int, words: str) -> None:
    again = conformance(f"replay {stored(done)[ZEROS]} {options}")
    assert again.code == code
    assert words in again.err
    assert not again.out
    assert again.has_no_traceback()


@after("zeros")
def test_a_file_that_was_cut_off(done: Any, conformance: Any, tmp_path: Path) -> None:
    path = tmp_path / "cut.safetensors"
    path.write_bytes(stored(done)[ZEROS].read_bytes()[:-4])
    again = conformance("replay cut.safetensors")
    assert again.code == 2
    assert again.err.startswith("conformance: cut.safetensors: cut off or damaged: its tensors end")
    assert len(again.err.splitlines()) == 1
