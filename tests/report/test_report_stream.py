"""The results file: nothing is lost while writing, nothing is believed while reading."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.errors import InternalError, UsageError
from conformance.report import CheckRecord, Details, Results, ResultsWriter, judge, read_results
from conformance.report.stream import MAX_PROBLEMS


@pytest.fixture
def conforming(samples: Any) -> Results:
    checks = [samples.check(), samples.check("rope::definition[float32]", margin=0.5)]
    results: Results = samples.results(checks)
    return results


@pytest.fixture
def lines(samples: Any, conforming: Results, tmp_path: Path) -> list[bytes]:
    """The lines of a whole, conforming file: header, two checks, footer."""
    samples.write(tmp_path / "whole.jsonl", conforming)
    return (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)


def read(tmp_path: Path, content: bytes | list[bytes]) -> Results:
    path = tmp_path / "results.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else b"".join(content))
    return read_results(path)


def edited(line: bytes, **changes: Any) -> bytes:
    return json.dumps({**json.loads(line), **changes}).encode() + b"\n"


def test_what_was_written_is_read(samples: Any, tmp_path: Path) -> None:
    night = samples.night()
    samples.write(tmp_path / "results.jsonl", night)
    assert read_results(tmp_path / "results.jsonl") == night


def test_every_line_is_on_disk_at_once(samples: Any, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "results.jsonl"
    with ResultsWriter(path) as writer:
        writer.header(samples.header(collected=3))
        for number in range(3):
            writer.check(samples.check(f"rmsnorm::{number}"))
            assert len(path.read_bytes().splitlines()) == 2 + number


def test_a_killed_run_keeps_its_lines_and_is_incomplete(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    program = (
        "import os, sys; from pathlib import Path; from conformance.report import *\n"
        "w = ResultsWriter(Path(sys.argv[1]))\n"
        "w.header(Header('0', '1', '', Candidate(), '', 0, 'quick', 'must', (), 'cpu', ('a',),"
        " True, 0, 2, {}, (), (), (), ''))\n"
        "w.check(CheckRecord('a::b', 'a', 'A-B', 'MUST', 'passed'))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    results = read_results(path)
    assert len(results.checks) == 1
    assert "the footer is missing" in " ".join(results.problems)
    assert judge(results).kind == "incomplete"


def test_numbers_that_json_cannot_write_survive(samples: Any, tmp_path: Path) -> None:
    details = Details(error=float("inf"), tolerance="none derived")
    check = samples.check(margin=float("-inf"), details=details)
    samples.write(tmp_path / "results.jsonl", samples.results([check]))
    back = read_results(tmp_path / "results.jsonl").checks[0]
    assert back == check
    assert "Infinity" not in (tmp_path / "results.jsonl").read_text()


def test_numbers_of_numpy_become_plain(samples: Any, tmp_path: Path) -> None:
    check = samples.check(margin=np.float32(0.5), details=Details(error=np.float64(2.0)))
    samples.write(tmp_path / "results.jsonl", samples.results([check]))
    back = read_results(tmp_path / "results.jsonl")
    assert (back.checks[0].margin, back.problems) == (0.5, ())


def test_a_new_run_removes_the_reports_of_the_old_one(samples: Any, tmp_path: Path) -> None:
    for name in ("results.jsonl", "report.json", "report.md"):
        (tmp_path / name).write_text("conforming")
    (tmp_path / "mine.txt").write_text("kept")
    ResultsWriter(tmp_path / "results.jsonl").close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.txt", "results.jsonl"]
    assert (tmp_path / "results.jsonl").read_text() == ""


def test_a_new_run_removes_the_counterexamples_of_the_old_one(tmp_path: Path) -> None:
    folder = tmp_path / "counterexamples"
    folder.mkdir()
    (folder / "rope--definition-float32.safetensors").write_bytes(b"old")
    ResultsWriter(tmp_path / "results.jsonl").close()
    assert not folder.exists()
    folder.mkdir()
    (folder / "old.safetensors").write_bytes(b"old")
    (folder / "mine.txt").write_text("kept")
    ResultsWriter(tmp_path / "results.jsonl").close()
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]


def test_a_link_in_the_place_of_the_counterexamples_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "mine.safetensors").write_bytes(b"kept")
    try:
        (tmp_path / "counterexamples").symlink_to(precious)
    except OSError:
        pytest.skip("no links on this platform")
    ResultsWriter(tmp_path / "results.jsonl").close()
    assert (precious / "mine.safetensors").exists()
    assert not (tmp_path / "counterexamples").exists()


def test_a_link_in_the_place_of_the_results_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    try:
        (tmp_path / "results.jsonl").symlink_to(precious)
    except OSError:
        pytest.skip("no links on this platform")
    ResultsWriter(tmp_path / "results.jsonl").close()
    assert precious.read_text() == "kept"


def test_a_check_can_be_written_as_an_object(samples: Any, tmp_path: Path) -> None:
    check = samples.check()
    with ResultsWriter(tmp_path / "results.jsonl") as writer:
        writer.header(samples.header(collected=1, selected=("rmsnorm",)))
        writer.check(check.to_json())
        writer.footer(finished="")
    assert read_results(tmp_path / "results.jsonl").checks == (check,)


@pytest.mark.parametrize(
    "change",
    [{"outcome": "fine"}, {"surprise": 1}, {"details": {"expect": "x"}}, {"kind": "footer"}],
)
def test_a_check_in_the_wrong_shape_is_our_own_mistake(
    samples: Any, tmp_path: Path, change: dict[str, Any]
) -> None:
    with (
        ResultsWriter(tmp_path / "results.jsonl") as writer,
        pytest.raises(InternalError, match="wrong shape"),
    ):
        writer.check({**samples.check().to_json(), **change})


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(UsageError, match="cannot read results"):
            read_results(path)
    with pytest.raises(UsageError, match="cannot write results"):
        ResultsWriter(tmp_path / "file" / "results.jsonl")


def test_the_whole_file_is_conforming(tmp_path: Path, lines: list[bytes]) -> None:
    results = read(tmp_path, lines)
    assert results.problems == ()
    assert judge(results).kind == "conforming"
    # a checkout on Windows may have changed the line ends; the lines are still the same
    windows = read(tmp_path, b"".join(lines).replace(b"\n", b"\r\n"))
    assert windows == results


BROKEN: dict[str, tuple[Any, str]] = {
    "empty file": (lambda lines: [], "cut off, or not JSON"),
    "no header": (lambda lines: lines[1:], "a check where the header must be"),
    "no footer": (lambda lines: lines[:-1], "the footer is missing"),
    "only a header": (lambda lines: lines[:1], "2 of 2 collected checks have no result"),
    "a check is missing": (lambda lines: lines[:1] + lines[2:], "1 of 2 collected checks"),
    "a check too many": (
        lambda lines: [*lines[:3], edited(lines[2], id="rope::other"), lines[3]],
        "there are 3 results for 2 collected checks",
    ),
    "an id twice": (
        lambda lines: [*lines[:2], edited(lines[2], id="rmsnorm::definition[float32]"), lines[3]],
        "comes 2 times",
    ),
    "a check twice": (lambda lines: [*lines[:2], lines[1], *lines[2:]], "comes 2 times"),
    "a line cut off": (lambda lines: [lines[0], lines[1][:-9] + b"\n", *lines[2:]], "cut off"),
    "not UTF-8": (lambda lines: [lines[0], b"\xff\xfe\n", *lines[1:]], "line 2: cut off"),
    "an empty line": (lambda lines: [*lines[:2], b"\n", *lines[2:]], "line 3: cut off"),
    "a number instead of an object": (
        lambda lines: [*lines[:2], b"7\n", *lines[2:]],
        "not an object",
    ),
    "deep nesting": (lambda lines: [*lines[:2], b"[" * 100_000 + b"\n", *lines[2:]], "cut off"),
    "NaN": (lambda lines: [lines[0], lines[1].replace(b"0.01", b"NaN"), *lines[2:]], "NaN is not"),
    "a key twice": (
        lambda lines: [
            lines[0],
            lines[1].replace(b'"kind"', b'"outcome": "failed", "kind"'),
            *lines[2:],
        ],
        "a key comes twice",
    ),
    "unknown kind": (
        lambda lines: [*lines[:2], b'{"kind": "joke"}\n', *lines[2:]],
        "kind is not one of",
    ),
    "unknown key": (
        lambda lines: [lines[0], edited(lines[1], extra=1), *lines[2:]],
        "unknown key 'extra'",
    ),
    "unknown outcome": (
        lambda lines: [lines[0], edited(lines[1], outcome="ok"), *lines[2:]],
        "outcome",
    ),
    "wrong schema": (
        lambda lines: [edited(lines[0], schema="other/9"), *lines[1:]],
        "header: schema",
    ),
    "unselected component": (
        lambda lines: [edited(lines[0], selected=["rmsnorm"]), *lines[1:]],
        "'rope' has checks but was not selected",
    ),
    "two headers": (lambda lines: [lines[0], *lines], "line 2: a header"),
    "something after the footer": (
        lambda lines: [*lines, edited(lines[1], id="rope::late")],
        "a check after the footer",
    ),
    "two footers": (lambda lines: [*lines, lines[-1]], "a footer after the footer"),
    "interrupted": (
        lambda lines: [*lines[:-1], edited(lines[-1], interrupted=True)],
        "interrupted",
    ),
    "footer with another count": (
        lambda lines: [*lines[:-1], edited(lines[-1], written=3)],
        "counts 3",
    ),
    "footer with other outcomes": (
        lambda lines: [*lines[:-1], edited(lines[-1], counts={"passed": 1, "failed": 1})],
        "the counts by outcome",
    ),
    "footer with another collection": (
        lambda lines: [*lines[:-1], edited(lines[-1], collected=3)],
        "the header collected 2 checks, the footer 3",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_way_of_being_broken_is_incomplete(
    tmp_path: Path, lines: list[bytes], name: str
) -> None:
    breaks, words = BROKEN[name]
    results = read(tmp_path, breaks(lines))
    assert words in " / ".join(results.problems)
    verdict = judge(results)
    assert (verdict.kind, verdict.exit_code, verdict.score) == ("incomplete", 4, 0.0)


def test_no_cut_of_a_conforming_file_is_conforming(tmp_path: Path, lines: list[bytes]) -> None:
    whole = b"".join(lines)
    for length in [*range(0, len(whole) - 1, 17), len(whole) - 2]:
        assert judge(read(tmp_path, whole[:length])).kind == "incomplete"


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_no_damaged_byte_makes_a_failure_conforming(
    samples: Any, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    results = samples.results([samples.check(outcome="failed")], selected=("rmsnorm",))
    samples.write(folder / "results.jsonl", results)
    content = bytearray((folder / "results.jsonl").read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    assert judge(read(folder, bytes(content))).kind != "conforming"


def test_an_error_stands_instead_of_the_header_or_after_it(
    samples: Any, tmp_path: Path, lines: list[bytes]
) -> None:
    error = b'{"kind": "error", "message": "no torch", "exit_code": 3}\n'
    for content in ([error], [lines[0], error], [*lines[:2], error]):
        results = read(tmp_path, content)
        assert results.error is not None
        assert results.problems == ()
        assert judge(results).kind == "error"
    with ResultsWriter(tmp_path / "results.jsonl") as writer:
        writer.error("no torch", 3)
    assert judge(read_results(tmp_path / "results.jsonl")).exit_code == 3


def test_many_problems_are_counted_not_listed(tmp_path: Path, lines: list[bytes]) -> None:
    results = read(tmp_path, [*lines[:2], *([b"?\n"] * 1000), *lines[2:]])
    assert len(results.problems) == MAX_PROBLEMS + 1
    assert results.problems[-1] == "and 980 more problems"


def test_records_are_frozen(samples: Any) -> None:
    with pytest.raises(AttributeError):
        samples.check().outcome = "passed"
    assert replace(samples.check(), outcome="failed").missed
    assert isinstance(samples.check(), CheckRecord)
