"""The sandbox as the command line shows it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

after = pytest.mark.after


@after("delegates")
def test_delegating_is_an_outcome_of_its_own(done: Any) -> None:
    assert done.code == 1
    assert set(done.outcomes("silu").values()) == {"delegated"}
    assert set(done.outcomes("softmax").values()) == {"passed"}
    message = (
        "uses the suite's own reference implementation (reference_impl) at delegates.py, line 6"
    )
    assert message in done.messages("silu")
    assert "uses the suite's own reference implementation" in done.text
    assert done.has_no_traceback()


@after("delegates")
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_the_report_names_the_sandbox(done: Any) -> None:
    isolation = done.report["environment"]["isolation"]
    named = "sandbox: bubblewrap" in isolation
    # where it may not work, as in most containers, the report says so
    assert (
        named
        or any("bubblewrap does not work here" in text for text in isolation)
        or any(text.startswith("sandbox: ") for text in isolation)
    )
    if named:
        assert "no network" in isolation


@pytest.mark.skipif(sys.platform == "win32", reason="programs are found otherwise")
def test_required_and_not_there(conformance: Any, tmp_path: Path) -> None:
    command = "grade {c}/right.py --component silu --require-sandbox --report out"
    done = conformance(command, PATH=str(tmp_path))
    assert done.code == 5
    assert done.text.count("--sandbox require: no sandbox works here") >= 1
    assert "apt-get install bubblewrap" in done.text
    assert done.report["verdict"] == "error"
    assert done.report["environment"]["exit_code"] == 5
    assert done.has_no_traceback()


def test_it_cannot_be_had_in_process(conformance: Any) -> None:
    done = conformance("grade {c}/right.py --component silu --in-process --sandbox require")
    assert done.code == 2
    assert "--in-process has no sandbox" in done.text
