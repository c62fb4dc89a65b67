"""`pytest --impl=X`: the suite from any folder, with pytest's own options."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

after = pytest.mark.after


@after("pytest hostile")
def test_nothing_of_the_candidate_runs_in_the_judge(done: Any) -> None:
    """Its conftest.py, tests, settings and modules raise when they are used; `addopts` too."""
    assert done.code == 0
    assert done.report["verdict"] == "conforming"
    assert set(done.outcomes()) == set(done.outcomes("silu"))
    assert done.has_no_traceback()
    assert "executed" not in done.text
    assert "imported" not in done.text


@after("pytest hostile")
def test_the_header_says_what_is_graded(done: Any) -> None:
    head = done.out.partition("collect")[0]
    for part in ("hostile from", "adapters.py, at the top", "suite ", "spec ", "fixtures "):
        assert part in head
    for part in ("device cpu", "seed 0", "profile quick", "isolation: a process of its own"):
        assert part in head
    assert "configfile" not in head, "it was not read"


@after("pytest hostile")
def test_verbose_names_every_check(done: Any) -> None:
    for id in done.outcomes():
        assert f"{id} PASSED" in done.out


@after("pytest beside")
def test_quiet_still_tells_the_verdict(done: Any) -> None:
    assert "Verdict: NON-CONFORMING" in done.out
    assert "test session starts" not in done.out


@after("pytest stopped")
def test_stopping_at_the_first_failure(done: Any) -> None:
    assert "stopping after 1 failures" in done.out
    assert len(done.outcomes()) == 1


@after("pytest distributed", "zeros")
def test_distributed_finds_the_same(done: Any, runs: Any) -> None:
    assert done.code == 1
    alone = runs.get("zeros")
    assert done.outcomes() == alone.outcomes()
    assert done.report["score"] == alone.report["score"]
    messages = {c["id"]: c["message"] for c in alone.report["checks"]}
    assert {c["id"]: c["message"] for c in done.report["checks"]} == messages


@after("pytest deselected")
def test_without_the_cache(done: Any) -> None:
    assert not (done.cwd / ".pytest_cache").exists()
    assert all("definition" in id for id in done.outcomes())


@after("pytest stopped")
def test_last_failed(done: Any, conformance: Any, tmp_path: Path) -> None:
    (failed,) = done.outcomes()
    shutil.copytree(done.cwd / ".pytest_cache", tmp_path / ".pytest_cache")
    again = conformance("pytest --impl={c}/zeros.py silu --profile=quick --lf")
    assert again.code == 1
    assert set(again.outcomes()) == {failed}
    assert "run-last-failure: rerun previous 1 failure" in again.out


def test_collecting_only(conformance: Any, tmp_path: Path) -> None:
    """A component and the ids of checks can be given where pytest takes paths."""
    wanted = ["silu::definition[float32]", "silu::gradient[float32]"]
    done = conformance(f"pytest --impl={{c}}/right.py {' '.join(wanted)} -q --collect-only")
    assert done.code == 0
    assert [line for line in done.out.splitlines() if "::" in line] == wanted
    assert not list(tmp_path.rglob("report.json"))


def test_the_caller_s_own_wish_for_the_suite(conformance: Any, tmp_path: Path) -> None:
    """A project may ask for grading in its own settings; then these are heeded."""
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --impl=no_such_package -q\n", encoding="utf-8"
    )
    done = conformance("pytest")
    assert done.code == 2
    assert "nor an installed package" in done.err
