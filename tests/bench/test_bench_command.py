"""The command line: options, refusals, and what pytest-benchmark gets to see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from conformance.bench.command import BENCH_OPTIONS, TAKEN, unsound
from conformance.bench.profiles import PROFILES, Clock, row_effort
from conformance.bench.results import SCHEMA_FILE, Row
from conformance.bench.run import BenchRun
from conformance.bench.storage import without_needless_folder
from conformance.candidate.resolve import resolve
from conformance.errors import UsageError
from conformance.options import OPTIONS, GradeOptions, grade_command

HONEST = Path(__file__).parent / "candidates" / "honest.py"


def command(words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that is installed beside this Python."""
    program = Path(sys.executable).parent / words[0]
    dropped = ("PYTEST_", "CONFORMANCE_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return subprocess.run(
        [str(program), *words[1:]],
        cwd=cwd,
        env=env,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A benchmark under pytest: two components, one of them a stub."""
    cwd = tmp_path_factory.mktemp("recorded")
    words = f"pytest --impl={HONEST} --benchmark --component=rotation,softmax --profile=quick"
    more = "--max-seconds=5 --benchmark-json=times.json -rs"
    return command([*words.split(), *more.split()], cwd), cwd


def test_every_row_is_a_test(recorded: tuple[Any, Path]) -> None:
    done, _ = recorded
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed, 2 skipped" in done.stdout
    assert "not implemented" in done.stdout


def test_pytest_benchmark_records_the_times(recorded: tuple[Any, Path]) -> None:
    done, cwd = recorded
    times = json.loads((cwd / "times.json").read_text("utf-8"))
    names = [entry["fullname"] for entry in times["benchmarks"]]
    assert names == ["rotation::forward[float32]", "rotation::forward+backward[float32]"]
    first = times["benchmarks"][0]
    assert len(first["stats"]["data"]) == first["stats"]["rounds"] >= 10
    assert set(first["extra_info"]["ratio_to_reference"]) == {"value", "low", "high"}
    assert "benchmark: 2 tests" in done.stdout, "its own table"


def test_no_folder_of_pytest_benchmark_appears_when_nothing_is_saved(
    recorded: tuple[Any, Path],
) -> None:
    _, cwd = recorded
    assert not (cwd / ".benchmarks").exists()


def test_the_reports_are_written(recorded: tuple[Any, Path]) -> None:
    done, cwd = recorded
    folder = cwd / "reports" / "honest" / "partial"
    document = json.loads((folder / "bench.json").read_text("utf-8"))
    jsonschema.validate(document, json.loads(SCHEMA_FILE.read_text("utf-8")))
    assert document["complete"]
    assert document["command"].startswith("pytest --impl=")
    assert "CUDA" in json.dumps(document["absent"])
    assert (folder / "plots" / "ratios.svg").exists()
    assert f"Report: {folder.relative_to(cwd) / 'bench.md'}" in done.stdout


def test_without_a_gpu_cuda_is_refused(tmp_path: Path) -> None:
    done = command(["conformance", "bench", str(HONEST), "--device", "cuda:7"], tmp_path)
    assert done.returncode == 2
    assert "the device 'cuda:7' cannot be used here" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("bench.json")), "rows are absent, never made up"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"in_process": True}, "--in-process cannot be timed"),
        ({"device": "mps"}, "cannot be benchmarked yet"),
        ({"gate": True}, "--gate decides about a grade"),
    ],
)
def test_what_cannot_be_benchmarked_is_refused(given: Mapping[str, Any], words: str) -> None:
    options = GradeOptions.parse(str(HONEST), given)
    with pytest.raises(UsageError, match=words):
        BenchRun.open(options, resolve(str(HONEST), cwd=HONEST.parent), HONEST.parent)


@pytest.mark.parametrize(
    "given", [{"threads": "0"}, {"threads": "two"}, {"max_seconds": "-1"}, {"max_seconds": "x"}]
)
def test_bad_values_are_refused(given: Mapping[str, Any]) -> None:
    with pytest.raises(UsageError):
        GradeOptions.parse("x", given)


def test_options_of_benchmarks_are_no_part_of_a_command_that_grades() -> None:
    given = {"benchmark": True, "threads": "2", "max_seconds": "3"}
    assert grade_command(GradeOptions.parse("x", given)) == "conformance grade x"


def test_the_page_on_benchmarks_has_every_option() -> None:
    text = (HONEST.parents[3] / "docs" / "benchmarks.md").read_text("utf-8")
    for option in (*(o for o in OPTIONS if o.name in TAKEN), *BENCH_OPTIONS):
        assert f"`--{option.name}" in text, option.name
    for profile in PROFILES.values():
        assert f"{profile.total / 60:g} minute" in text


def test_rows_share_what_is_left_of_the_time() -> None:
    quick = PROFILES["quick"]
    clock = Clock(quick.total)
    assert row_effort(quick, clock, None, 30, 2).seconds < 2.0
    assert row_effort(quick, clock, None, 1, 2).seconds == quick.component / 2
    assert row_effort(quick, clock, 1.0, 1, 2).seconds == 0.5
    late = Clock(quick.total, started=clock.started - 100)
    assert late.over
    assert row_effort(quick, late, None, 1, 1).seconds == 0.25


def test_what_counts_against_a_candidate() -> None:
    rows = [
        Row("a", "forward", "float32", "measured"),
        Row("b", "forward", "float32", "flagged", "wrong"),
        Row("c", "forward", "float32", "absent", "not implemented: no function"),
        Row("d", "forward", "float32", "absent", "wrong on the benchmark's inputs: x"),
        Row("e", "forward", "float32", "absent", "the time of the run was over"),
    ]
    assert [row.component for row in unsound(SimpleNamespace(rows=rows))] == ["b", "d"]


def test_the_storage_is_left_alone_where_it_is_used() -> None:
    default = "file://./.benchmarks"
    unused = SimpleNamespace(benchmark_storage=default, benchmark_save=None)
    without_needless_folder(unused, "/here")
    assert unused.benchmark_storage == "file:///here"
    for name in ("benchmark_save", "benchmark_autosave", "benchmark_compare"):
        used = SimpleNamespace(benchmark_storage=default, **{name: "x"})
        without_needless_folder(used, "/here")
        assert used.benchmark_storage == default
    without_needless_folder(SimpleNamespace(), "/here")
