"""A class on a Dask cluster: two processes of this machine, and a grader that only pretends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dask
import psutil
import pytest
from distributed import LocalCluster

from conformance.batch import cluster
from conformance.batch.grade import WORK
from conformance.cli import main
from conformance.errors import ExitCode, UsageError

TIMINGS = ("seconds", "peak_mib")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler with two workers; a task whose worker dies is not tried again."""
    settings = {
        "distributed.scheduler.allowed-failures": 0,
        "logging": dict.fromkeys(cluster.LOGGERS, "critical"),
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        ) as made,
    ):
        yield made.scheduler_address


def quiet(text: str) -> None:
    pass


def lines(out: Path) -> dict[str, dict[str, Any]]:
    found = [json.loads(raw) for raw in (out / "record.jsonl").read_bytes().splitlines()]
    return {one["name"]: {k: v for k, v in one.items() if k not in TIMINGS} for one in found}


def until(what: Callable[[], Any]) -> None:
    for _ in range(600):
        if what():
            return
        time.sleep(0.05)
    raise AssertionError("waited half a minute in vain")


def gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def one(folder: Path, word: str) -> Path:
    """A class of one."""
    (folder / "zoe").mkdir(parents=True, exist_ok=True)
    (folder / "zoe" / "adapters.py").write_text(word, "utf-8")
    return folder


def test_the_same_as_without_it(
    a_class: Path, driver: ModuleType, scheduler: str, tmp_path: Path
) -> None:
    (a_class / "jan.zip").write_bytes(b"no archive")
    (tmp_path / "near").mkdir()
    driver.batch(a_class, tmp_path / "near" / "out").run(quiet)
    out = tmp_path / "far" / "out"
    dask_name = scheduler.replace("tcp://", "dask://")
    batch = driver.batch(a_class, out, jobs=None, executor=dask_name)
    assert batch.run(quiet) is ExitCode.INTERNAL
    assert lines(out) == lines(tmp_path / "near" / "out")
    assert "with 2 jobs" in (out / "class.md").read_text("utf-8")
    said: list[str] = []
    driver.batch(a_class, out, executor=scheduler).run(said.append)
    assert sum("graded before" in text for text in said) == 10


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_what_nobody_waits_for_ends(
    how: signal.Signals, driver: ModuleType, scheduler: str, tmp_path: Path
) -> None:
    folder, out = one(tmp_path / "class", "hang"), tmp_path / "out"
    command = [sys.executable, driver.__file__, str(folder), str(out), "1", scheduler]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until((tmp_path / "asked").exists)
    pid = int((tmp_path / "asked").read_text().split()[1])
    process.send_signal(how)
    process.wait(60)
    if how is signal.SIGINT:
        assert gone(pid)
    one(folder, "right")
    # waits for what is left of the earlier one
    assert driver.batch(folder, out, executor=scheduler).run(quiet) is ExitCode.CONFORMING
    assert gone(pid)
    assert lines(out)["zoe"]["verdict"] == "conforming"


def test_who_takes_a_worker_along_costs_only_itself(
    driver: ModuleType, scheduler: str, tmp_path: Path
) -> None:
    folder, out = one(tmp_path / "class", "kill-worker"), tmp_path / "out"
    assert driver.batch(folder, out, executor=scheduler).run(quiet) is ExitCode.INTERNAL
    line = lines(out)["zoe"]
    assert line["failure"] == "infrastructure"
    assert "1 Dask worker died while grading it" in line["reason"]
    one(folder, "right")
    assert driver.batch(folder, out, executor=scheduler).run(quiet) is ExitCode.CONFORMING


def test_workers_that_see_other_files_are_refused(
    driver: ModuleType, scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = one(tmp_path / "class", "right"), tmp_path / "out"
    monkeypatch.setattr(cluster, "TOKEN", "elsewhere")  # what the workers do not find
    with pytest.raises(UsageError, match=r"does not see .*shared file system") as error:
        driver.batch(folder, out, executor=scheduler).run(quiet)
    assert str(out) in str(error.value)
    assert not (tmp_path / "asked").exists()


def test_the_submission_itself_has_to_be_seen(tmp_path: Path) -> None:
    (tmp_path / WORK).mkdir()
    (tmp_path / WORK / cluster.TOKEN).write_text("1")
    assert cluster.unseen(str(tmp_path), "1", str(tmp_path)) == ""
    assert cluster.unseen(str(tmp_path), "2", str(tmp_path)) == str(tmp_path)
    assert cluster.unseen(str(tmp_path), "1", str(tmp_path / "zoe")) == str(tmp_path / "zoe")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dask://127.0.0.1:1", "no Dask scheduler answers there"),
        ("tcp://nonsense", "no Dask scheduler answers there"),
        ("dask://", "give dask://HOST:PORT"),
    ],
)
def test_where_nobody_answers(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    with pytest.raises(UsageError, match=message):
        cluster.Cluster(name, 1)


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(UsageError, match=r"transformer-conformance\[dask\]"):
        cluster.Cluster("dask://127.0.0.1:1", 1)


def test_a_submission_must_not_reach_the_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "class" / "a").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    words = ["grade-all", "class", "--executor", "dask://127.0.0.1:1"]
    assert main(words) == 2
    assert "add --require-sandbox" in capsys.readouterr().err
    assert main([*words, "--require-sandbox"]) == 2
    assert "no Dask scheduler answers" in capsys.readouterr().err
