"""What lies in the submission's folder takes no part in the judge, however it is started."""

from __future__ import annotations

from typing import Any

import pytest

gated = pytest.mark.gated
LEFT_OUT = ("conftest.py", "numpy.py", "pytest.ini", "tabulate.py")


def notices(done: Any) -> str:
    return "\n".join(done.report["environment"]["notices"])


def nothing_was_executed(done: Any) -> None:
    assert done.code == 1, done.text
    assert done.report["verdict"] == "non-conforming"
    assert "evil takes part" not in done.text
    assert "was executed" not in done.text
    assert "was imported" not in done.text
    assert done.has_no_traceback()
    assert set(done.outcomes()) == set(done.outcomes("silu"))


@gated("hostile gate")
def test_with_the_folder_on_python_s_path(done: Any) -> None:
    nothing_was_executed(done)
    assert done.out.rstrip().splitlines()[-1].startswith("GATE: FAIL ")


@gated("hostile pytest")
def test_pytest_with_settings_that_load_a_plugin(done: Any) -> None:
    nothing_was_executed(done)


@gated("hostile module")
def test_python_m_pytest(done: Any) -> None:
    nothing_was_executed(done)


@gated("hostile gate")
def test_the_report_says_what_was_left_out(done: Any) -> None:
    (line,) = (n for n in notices(done).splitlines() if n.startswith("no part of the judge"))
    assert all(name in line for name in LEFT_OUT)
    assert line in done.out


@gated("hostile gate")
def test_its_conformance_toml_says_where_things_are_and_nothing_else(done: Any) -> None:
    assert "ignored in its conformance.toml: grade, timeout" in notices(done)
    assert "10 s for each call" in done.report["environment"]["isolation"]
    assert list(done.report["components"]) == ["silu"]


@gated("trusted")
def test_trust_is_pytest_as_ever(done: Any) -> None:
    assert done.code == 1
    assert "the conftest.py of the folder takes part" in done.out
    assert "took part in the judge (--trust)" in notices(done)
    assert "no part of the judge" not in notices(done)


def test_conformance_grade_has_no_trust(place: Any) -> None:
    done = place.run("grade {c}/right.py --trust")
    assert done.code == 2
    assert "--trust is for `pytest --impl=...`" in done.err
