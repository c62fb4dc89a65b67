"""A class from beginning to end, with a grader that only pretends."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

from conformance.batch.find import find
from conformance.batch.grade import WORK
from conformance.batch.record import Line, Record
from conformance.batch.settings import Settings
from conformance.batch.table import Effort, write_table
from conformance.errors import ExitCode, UsageError
from conformance.spec import requirement

TIMINGS = ("seconds", "peak_mib")


def quiet(text: str) -> None:
    pass


def lines(out: Path) -> dict[str, dict[str, Any]]:
    """The record by name, without what differs from run to run."""
    found = [json.loads(raw) for raw in (out / "record.jsonl").read_bytes().splitlines() if raw]
    return {
        one["name"]: {key: value for key, value in one.items() if key not in TIMINGS}
        for one in found
    }


def tables(out: Path) -> tuple[list[dict[str, str]], str]:
    """Both tables without timings."""
    with (out / "class.csv").open(encoding="utf-8", newline="") as file:
        rows = [{k: v for k, v in row.items() if k not in TIMINGS} for row in csv.DictReader(file)]
    return rows, (out / "class.md").read_text("utf-8").partition("## What it took")[0]


def asked(out: Path) -> list[str]:
    return [row.split()[0] for row in (out.parent / "asked").read_text().splitlines()]


def test_each_submission_ends_by_itself(a_class: Path, driver: ModuleType, tmp_path: Path) -> None:
    (a_class / "jan.zip").write_bytes(b"no archive")
    said: list[str] = []
    out = tmp_path / "out"
    assert driver.batch(a_class, out, jobs=3).run(said.append) is ExitCode.INTERNAL
    found = lines(out)
    told = {name: (one["verdict"], one["failure"]) for name, one in found.items()}
    assert told == {
        "ada": ("conforming", ""),
        "bob": ("non-conforming", ""),
        "cyd": ("non-conforming", ""),
        "dan": ("error", "infrastructure"),
        "eve": ("error", "infrastructure"),
        "fay": ("error", "candidate"),
        "gus": ("error", "infrastructure"),
        "hal": ("error", "infrastructure"),
        "ida": ("conforming", ""),
        "jan": ("error", "candidate"),
    }
    assert found["dan"]["exit_code"] == -signal.SIGABRT
    assert "no results" in found["eve"]["reason"]
    assert "the results say conforming" in found["hal"]["reason"]
    assert "the archive is refused" in found["jan"]["reason"]
    assert found["bob"]["mistakes"][0]["fault"] == "eps-outside"
    rows, text = tables(out)
    # first those of whom nothing is known, then the worst
    order = ["dan", "eve", "gus", "hal", "fay", "jan", "bob", "cyd", "ada", "ida"]
    assert [row["name"] for row in rows] == order
    assert re.search(r"^\| `RMSNORM-GAIN` \| .+ \| 2 of 4 \|$", text, flags=re.MULTILINE)
    assert "| eps stands outside the root | `rmsnorm` | 2 of 4 |" in text
    assert "- `ada`, `ida`" in text
    assert "warning: identical files: ada, ida" in said
    assert not (out / WORK).exists()


def test_what_is_done_is_not_done_again(a_class: Path, driver: ModuleType, tmp_path: Path) -> None:
    out = tmp_path / "out"
    driver.batch(a_class, out).run(quiet)
    before = (out / "record.jsonl").read_bytes(), tables(out)
    driver.batch(a_class, out).run(quiet)
    assert ((out / "record.jsonl").read_bytes(), tables(out)) == before
    (a_class / "bob" / "adapters.py").write_text("right\n", "utf-8")
    driver.batch(a_class, out, again=True).run(quiet)
    assert sorted(asked(out)[9:]) == ["bob", "dan", "eve", "gus", "hal"]
    assert (out / "record.jsonl").read_bytes().startswith(before[0])
    assert lines(out)["bob"]["verdict"] == "conforming"
    assert [row["verdict"] for row in tables(out)[0] if row["name"] == "bob"] == ["conforming"]


def test_who_takes_too_long_is_ended(driver: ModuleType, tmp_path: Path) -> None:
    folder, out = tmp_path / "slow", tmp_path / "out"
    (folder / "ada").mkdir(parents=True)
    (folder / "ada" / "adapters.py").write_text("hang", "utf-8")
    assert driver.batch(folder, out, limit=3 / 60).run(quiet) is ExitCode.INTERNAL
    line = lines(out)["ada"]
    assert (line["failure"], line["exit_code"]) == ("infrastructure", None)
    assert "took too long" in line["reason"]
    pid = next(int(row.split()[1]) for row in (tmp_path / "asked").open() if row.startswith("ada"))
    assert not psutil.pid_exists(pid)


def gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def until(what: Any) -> None:
    for _ in range(1200):
        if what():
            return
        time.sleep(0.05)
    raise AssertionError("waited a minute in vain")


def test_a_batch_that_is_killed_goes_on_where_it_was(
    a_class: Path, driver: ModuleType, tmp_path: Path
) -> None:
    out, whole = tmp_path / "killed" / "out", tmp_path / "whole" / "out"
    driver.batch(a_class, whole).run(quiet)
    (a_class / "cyd" / "adapters.py").write_text("hang", "utf-8")
    command = [sys.executable, driver.__file__, str(a_class), str(out), "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    until(lambda: (out.parent / "asked").exists() and "cyd" in asked(out))
    with pytest.raises(UsageError, match="another grade-all is writing"):
        driver.batch(a_class, out).run(quiet)
    process.kill()
    process.wait()
    hanging = int((out.parent / "asked").read_text().splitlines()[-1].split()[1])
    until(lambda: gone(hanging))
    assert set(lines(out)) == {"ada", "bob"}
    with (out / "record.jsonl").open("ab") as file:  # killed while it was writing
        file.write((whole / "record.jsonl").read_bytes()[:100])
    (a_class / "cyd" / "adapters.py").write_text("half\n", "utf-8")
    driver.batch(a_class, out).run(quiet)
    assert sorted(asked(out)) == sorted([*lines(whole), "cyd"])
    assert tables(out) == tables(whole)
    rows = (out / "record.jsonl").read_bytes().splitlines()
    assert sum(read(row) is None for row in rows) == 1
    assert {one["name"]: one for one in map(read, rows) if one is not None} == lines(whole)


def read(row: bytes) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(row)
    except ValueError:
        return None
    return {key: value for key, value in found.items() if key not in TIMINGS}


def test_other_settings_are_other_lines(tmp_path: Path) -> None:
    config = tmp_path / "course.toml"
    config.write_text("[grade]\nprofile = 'quick'\n", "utf-8")
    given = {"config": str(config)}
    marks = {Settings.read({}).mark, Settings.read(given).mark, Settings.read({"seed": "1"}).mark}
    config.write_text("[grade]\nprofile = 'quick'\nseed = 1\n", "utf-8")
    marks |= {Settings.read(given).mark, Settings.read({}, 7).mark}
    assert len(marks) == 5
    with Record(tmp_path / "out", "one") as record:
        record.add(Line("ada", "1", "one", "conforming"))
        record.add(Line("ada", "1", "two", "conforming"))
        assert record.done(again=False) == {"ada": frozenset("1")}
        assert record.last({"ada": "2"}) == {}
    with Record(tmp_path / "out", "three") as record:
        assert record.done(again=False) == {}


def test_what_cannot_hold_for_a_class_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "course.toml"
    config.write_text("[grade]\njunit = 'all.xml'\n", "utf-8")
    with pytest.raises(UsageError, match="junit cannot hold"):
        Settings.read({"config": str(config)})


def test_which_submissions_there_are(tmp_path: Path) -> None:
    for name in ("ada", "bob", ".git", "results"):
        (tmp_path / name).mkdir()
    for name in ("bob.zip", "cyd.tar.gz", "notes.txt", ".tar"):
        (tmp_path / name).write_text("")
    found, others = find([tmp_path], tmp_path / "results")
    assert [one.name for one in found] == ["ada", "bob", "bob.zip", "cyd"]
    assert [path.name for path in others] == ["notes.txt"]
    with pytest.raises(UsageError, match="inside the submission"):
        find([tmp_path], tmp_path / "ada" / "results")
    with pytest.raises(UsageError, match="no submission"):
        find([tmp_path / "ada"], tmp_path / "results")
    (tmp_path / "class.md").mkdir()
    with pytest.raises(UsageError, match="rename"):
        find([tmp_path], tmp_path / "results")


def test_how_platforms_hand_them_over(tmp_path: Path) -> None:
    folder = tmp_path / "class"
    for name in ("ada", "bob", "cyd"):
        (folder / name).mkdir(parents=True)
    for name in ("ada/hw.zip", "bob/hw.zip", "bob/adapters.py", "cyd/notes.txt"):
        (folder / name).write_text("")
    (folder / "dan.rar").write_bytes(b"Rar!\x1a\x07")
    (folder / "adapters_of_eve.py").write_text("")
    found, others = find([folder], tmp_path / "results")
    told = {one.name: (one.path.relative_to(folder).as_posix(), one.is_archive) for one in found}
    assert told == {
        "ada": ("ada/hw.zip", True),  # nothing else is in it
        "bob": ("bob", False),
        "cyd": ("cyd", False),
        "dan": ("dan.rar", True),
    }
    assert [path.name for path in others] == ["adapters_of_eve.py"]


@pytest.mark.parametrize("name", ["adapters.py", "tests/adapters.py", "conformance.toml"])
def test_one_submission_is_no_class(name: str, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    with pytest.raises(UsageError, match=f"this is one submission, it holds {name}"):
        find([tmp_path], tmp_path / "results")


def test_a_folder_without_submissions_says_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "grades.xlsx").write_text("")
    with pytest.raises(UsageError, match=r"no submission here, only grades\.xlsx; each is"):
        find([tmp_path], tmp_path / "results")


def test_what_the_class_has_in_common(tmp_path: Path) -> None:
    lines = [
        Line(
            "ada", "1", "m", "non-conforming", score=0.5, points=5.0, of=12.0, failed=("SILU-PURE",)
        ),
        Line(
            "bob", "2", "m", "non-conforming", score=0.2, points=2.0, of=12.0, failed=("SILU-PURE",)
        ),
        Line("cyd", "3", "m", "conforming", score=1.0, points=12.0, of=12.0),
        Line("dan", "4", "m", "error", failure="candidate", reason="nothing in it"),
    ]
    with Record(tmp_path, "m") as record:
        for line in lines:
            record.add(line)
        table = write_table(record, {line.name: line.sha256 for line in lines})
    table.write(tmp_path, Effort(4, 8.0, 2), ["a|b.py"])
    text = (tmp_path / "class.md").read_text("utf-8")
    assert "Points, of 12: lowest 0, median 3.5, highest 12." in text
    parts = ["## Cannot be graded", "| `dan` | nothing in it |", "## Passed over", "`a|b.py`"]
    parts += [
        "## Submissions, worst first",
        "| [`bob`](bob/report.md) | non-conf",
        "| [`ada`](ada/report.md) | non-conf",
        "| [`cyd`](cyd/report.md) |",
    ]
    assert [part for part in parts if part not in text] == []
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    sentence = requirement("SILU-PURE").sentence[:20]
    assert f"| `SILU-PURE` | {sentence}" in text
    assert "| 2 of 3, most |" in text


def test_a_name_is_no_formula_and_no_markup(driver: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "class"
    for name in ("=HYPERLINK(1)", "a|b`c"):
        (folder / name).mkdir(parents=True)
        (folder / name / "adapters.py").write_text("right\n", "utf-8")
    driver.batch(folder, tmp_path / "out").run(quiet)
    rows, text = tables(tmp_path / "out")
    assert [row["name"] for row in rows] == ["'=HYPERLINK(1)", "a|b`c"]
    assert re.search(
        r"^\| \[``a\\\|b`c``\]\(a%7Cb%60c/report\.md\) \| conforming", text, flags=re.MULTILINE
    )
