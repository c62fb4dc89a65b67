"""When the gate says PASS: only when everything is as it must be."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.errors import ExitCode, InternalError, LoadError, UsageError
from conformance.gate import Gate, last_line, must_be_decidable
from conformance.options import GradeOptions
from conformance.recording import Recorder, record_error
from conformance.report.stream import ResultsWriter, lock
from conformance.session import GradingRun
from conformance.suite.check import checks

PLANNED = [check for check in checks("silu") if check.profile == "quick" and not check.module]
COUNT = len(PLANNED)


@dataclass
class Made:
    """A run without a candidate: its checks are said to have ended in some way."""

    folder: Path
    gate: Gate
    recorder: Recorder
    code: int = 0

    @property
    def decided(self) -> tuple[str, str, ExitCode]:
        return self.gate.decided(self.code)


Make = Callable[..., Made]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(outcomes: dict[str, str] | None = None, left: int = 0, twice: bool = False) -> Made:
        options = GradeOptions.parse("x", {"component": ["silu"], "gate": True})
        submission: Any = SimpleNamespace(
            name="x", adapters=tmp_path / "x.py", root=tmp_path, module="x", how="", ignored=()
        )
        description: Any = SimpleNamespace(
            python="3", torch="2", device="cpu", device_name="", threads=1, platform="",
            isolation=("separate process",), notices=(),
        )  # fmt: skip
        run: Any = SimpleNamespace(
            plan=lambda: PLANNED,
            selected=lambda: ("silu",),
            notices=lambda: (),
            description=description,
            golden=SimpleNamespace(sha256=""),
        )
        recorder = Recorder(options, submission, tmp_path, tmp_path / "out")
        recorder.header(run, len(PLANNED))
        for check in PLANNED[left:]:
            for _ in range(1 + twice):
                recorder.check(_record(check, (outcomes or {}).get(check.name, "passed")))
        gate = Gate()
        verdict = recorder.conclude(interrupted=False)
        gate.grading = SimpleNamespace(  # type: ignore[assignment]
            run=run, recorder=recorder, verdict=verdict, stopped=None
        )
        return Made(tmp_path / "out", gate, recorder, int(verdict.exit_code))

    return made


def _record(check: Any, outcome: str) -> dict[str, Any]:
    return {
        "id": check.id,
        "component": "silu",
        "requirement": check.requirement.id,
        "level": str(check.requirement.level),
        "outcome": outcome,
        "message": "",
        "diagnosis": None,
        "margin": None,
        "seconds": 0.0,
        "details": None,
    }


def test_pass(make: Make) -> None:
    word, reason, code = make().decided
    assert (word, code) == ("PASS", 0)
    assert "of silu passed" in reason


def test_fail(make: Make) -> None:
    word, reason, code = make({"definition": "failed"}).decided
    assert (word, code) == ("FAIL", 1)
    assert "1 of" in reason


def _error(made: Made, words: str) -> None:
    word, reason, code = made.decided
    assert (word, code) == ("ERROR", 4)
    assert words in reason


def test_a_check_without_result(make: Make) -> None:
    _error(make(left=1), f"1 of {COUNT} collected checks have no result")


def test_a_check_with_two_results(make: Make) -> None:
    _error(make(twice=True), f"results for {COUNT} collected checks")


def test_a_plan_that_is_not_what_was_recorded(make: Make) -> None:
    """The file may be whole by itself; the plan knows better."""
    made = make()
    more = [*PLANNED, replace(PLANNED[0], name="another")]
    assert made.gate.grading is not None
    made.gate.grading.run.plan = lambda: more  # type: ignore[method-assign]
    _error(
        made,
        f"{COUNT + 1} checks were planned; 1 of them have no result, and 0 results belong to none",
    )
    made.gate.grading.run.plan = list  # type: ignore[method-assign]
    _error(
        made, f"0 checks were planned; 0 of them have no result, and {COUNT} results belong to none"
    )


@pytest.mark.parametrize("name", ["results.jsonl", "report.json"])
@pytest.mark.parametrize("change", ["edited", "truncated", "replaced", "removed"])
def test_files_that_are_not_those_of_this_run(make: Make, name: str, change: str) -> None:
    made = make({"definition": "failed"} if change == "edited" else None)
    path = made.folder / name
    text = path.read_text("utf-8")
    if change == "edited":
        path.write_text(
            text.replace('"failed"', '"passed"').replace("non-conforming", "conforming"), "utf-8"
        )
    elif change == "truncated":
        path.write_text(text[: len(text) // 2], "utf-8")
    elif change == "replaced":
        path.write_text("{}\n", "utf-8")
    else:
        path.unlink()
    word, _, code = made.decided
    assert (word, code) == ("ERROR", 4)


def test_results_that_are_changed_while_they_are_written(tmp_path: Path, make: Make) -> None:
    """A candidate that reaches the file turns a failure into a pass: there is no verdict then."""
    before = Recorder.check

    def check(self: Recorder, record: Any) -> None:
        before(self, record)
        text = self.results.read_text("utf-8")
        self.results.write_text(text.replace('"outcome": "failed"', '"outcome": "passed"'), "utf-8")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "check", check)
        with pytest.raises(InternalError, match="not what this run has written"):
            make({"definition": "failed"})


def test_the_verdict_is_drawn_from_what_was_written(tmp_path: Path, make: Make) -> None:
    made = make({"definition": "failed"})
    made.recorder.results.write_text("", "utf-8")
    assert [c.id for c in made.recorder.writer.results().checks] == [c.id for c in PLANNED]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("bad"), 2),
        (LoadError("bad"), 3),
        (InternalError("bad"), 4),
    ],
)
def test_errors_keep_their_exit_code(make: Make, error: Any, code: int) -> None:
    made = make()
    made.gate.refused = error
    assert made.decided == ("ERROR", "bad", code)
    made = make()
    assert made.gate.grading is not None
    made.gate.grading.stopped = error
    assert made.decided == ("ERROR", "bad", code)


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 77, -9])
def test_without_a_verdict_nothing_passes(code: int) -> None:
    word, _, decided = Gate().decided(code)
    assert word == "ERROR"
    assert decided not in (ExitCode.CONFORMING, ExitCode.NOT_CONFORMING)


@pytest.mark.parametrize("code", [1, 2, 4, 5])
def test_pytest_s_own_code_must_agree(make: Make, code: int) -> None:
    made = make()
    made.code = code
    _error(made, "its verdict is another")


def test_the_last_line_is_one_line() -> None:
    line = last_line("FAIL", "ValueError: \n\x1b[2K\rGATE: PASS\n" + "x" * 1000)
    assert line.startswith("GATE: FAIL ValueError: [2K GATE: PASS xxx")
    assert len(line.splitlines()) == 1
    assert len(line) < 330


REFUSED: dict[str, dict[str, Any]] = {
    "--in-process": {"in_process": True},
    "--trust": {"trust": True},
    "--component": {"component": ["silu"]},
    "--dtype": {"dtype": ["float32"]},
    "--check": {"check": ["silu::definition[float32]"]},
    "--max-minutes": {"max_minutes": "3"},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_gate_refuses(name: str) -> None:
    options = GradeOptions.parse("x", REFUSED[name])
    with pytest.raises(UsageError, match=f"--gate.*{name}"):
        must_be_decidable(options, list(REFUSED[name]))


def test_a_selection_of_the_instructor_is_the_whole() -> None:
    options = GradeOptions.parse("x", {"component": ["silu"], "dtype": ["float32"]})
    must_be_decidable(options, ["config", "seed"])


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out" / "results.jsonl"
    with ResultsWriter(path) as first:
        with pytest.raises(UsageError, match="another run is writing to"):
            ResultsWriter(path)
        record_path = path.read_bytes()
        with pytest.raises(UsageError, match="another run"):
            record_error(path.parent, UsageError("of a third one"))
        assert path.read_bytes() == record_path
        assert first.in_place()
    ResultsWriter(path).close()


def test_where_files_cannot_be_locked_the_first_one_notices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "results.jsonl"
    with ResultsWriter(path) as first, ResultsWriter(path) as second:
        assert not first.in_place()
        assert second.in_place()
        assert lock(0)


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """Whatever the disk refuses ends the run: it is not written later, nor taken for written."""
    writer = ResultsWriter(tmp_path / "results.jsonl")

    class Full:
        def write(self, data: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    whole, writer._file = writer._file, Full()  # type: ignore[assignment]
    with pytest.raises(InternalError, match=r"cannot write results to .*No space left"):
        writer.error("x", 2)
    assert writer.content == b""
    whole.close()


def test_the_plan_is_in_another_order_for_each_seed(tmp_path: Path) -> None:
    run = object.__new__(GradingRun)
    orders = []
    for seed in (0, 0, 1):
        run.options = GradeOptions.parse("x", {"seed": str(seed), "gate": True})
        run.hidden, run.caller, run.golden, run._selected = None, None, None, ("silu",)  # type: ignore[assignment]
        run.started = 0.0
        orders.append([check.id for check in run._in_another_order(PLANNED)])
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == sorted(check.id for check in PLANNED)
    assert orders[0] != [check.id for check in PLANNED]
