"""`conformance compare`: faster, slower, the same; newly failing, fixed."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from conformance.bench.compare import compare_benchmarks, compare_files, compare_reports
from conformance.errors import ExitCode, UsageError


def row(id: str, ratio: float = 1.0, **more: Any) -> dict[str, Any]:
    """A row as far as it is compared."""
    interval = {"value": ratio, "low": ratio * 0.99, "high": ratio * 1.01}
    return {
        "id": id,
        "status": "measured",
        "reason": "",
        "sizes": {"batch": 2},
        "noise": {"value": 1.002, "low": 0.99, "high": 1.01},
        "ratios": {"reference": interval},
        **more,
    }


def benchmark(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A benchmark as far as it is compared."""
    schema = "transformer-conformance/bench/1"
    return {"schema": schema, "device": "cpu", "threads": 1, "rows": list(rows), **more}


def test_slower_faster_and_the_same_within_noise() -> None:
    before = benchmark(row("a"), row("b"), row("c"), row("d"))
    after = benchmark(row("a", 1.2), row("b", 0.8), row("c", 1.01), row("d"))
    found = compare_benchmarks(before, after)
    assert [name for name, _ in found.worse] == ["a"]
    assert [name for name, _ in found.better] == ["b"]
    assert found.same == ["c", "d"]
    assert found.exit_code is ExitCode.NOT_CONFORMING
    assert "slower: a, time x 1.200" in found.text()
    assert compare_benchmarks(before, before).exit_code is ExitCode.CONFORMING


def test_a_noisy_run_hides_small_changes() -> None:
    noisy = {"value": 1.3, "low": 1.1, "high": 1.5}
    found = compare_benchmarks(benchmark(row("a", noise=noisy)), benchmark(row("a", 1.2)))
    assert found.same == ["a"]


@pytest.mark.parametrize("status", ["flagged", "absent"])
def test_what_is_no_longer_measured_got_worse(status: str) -> None:
    gone = row("a", status=status, reason="wrong when timed", ratios={})
    found = compare_benchmarks(benchmark(row("a")), benchmark(gone))
    assert found.worse == [("a", "no longer measured: wrong when timed")]
    assert compare_benchmarks(benchmark(row("a")), benchmark()).worse


def test_what_cannot_be_compared_is_named() -> None:
    other = benchmark(row("a", sizes={"batch": 4}), row("new"))
    found = compare_benchmarks(benchmark(row("a")), other)
    assert dict(found.unlike) == {"a": "sizes differ", "new": "measured in one of the two only"}
    threads = compare_benchmarks(benchmark(row("a")), benchmark(row("a"), threads=2))
    assert threads.unlike == [("a", "threads 1 and 2")]


def report(**outcomes: str) -> dict[str, Any]:
    """A report as far as it is compared: requirement -> outcome of its only check."""
    checks = [
        {
            "component": "rope",
            "requirement": name,
            "level": "MAY" if name == "OPEN" else "MUST",
            "outcome": outcome,
            "message": "it is off",
        }
        for name, outcome in outcomes.items()
    ]
    return {"schema": "transformer-conformance/report/1", "checks": checks}


def test_requirements_that_newly_fail_or_are_fixed() -> None:
    before = report(A="passed", B="failed", C="passed", OPEN="passed")
    after = report(A="timed out", B="passed", C="passed", OPEN="failed")
    found = compare_reports(before, after)
    assert found.worse == [("A in rope", "it is off")]
    assert found.better == [("B in rope", "")]
    assert found.same == ["C in rope"]
    assert found.exit_code is ExitCode.NOT_CONFORMING


def test_files_of_different_kinds_are_refused(tmp_path: Path) -> None:
    paths = []
    for number, document in enumerate((benchmark(), report())):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(document), "utf-8")
    assert compare_files(paths[0], paths[0]).exit_code is ExitCode.CONFORMING
    with pytest.raises(UsageError, match="are not two"):
        compare_files(*paths)
    (tmp_path / "text").write_text("no", "utf-8")
    with pytest.raises(UsageError, match="is not JSON"):
        compare_files(paths[0], tmp_path / "text")
    with pytest.raises(UsageError, match="cannot be read"):
        compare_files(paths[0], tmp_path / "nowhere")
    old = deepcopy(benchmark())
    old["schema"] = "transformer-conformance/bench/0"
    paths[1].write_text(json.dumps(old), "utf-8")
    with pytest.raises(UsageError, match="this version"):
        compare_files(*paths)
