"""Recorded results, made as for the tests of the reports, and rubrics."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from conformance.course import Rubric, Worth
from conformance.report import Details, ErrorRecord, Results

_FILE = Path(__file__).resolve().parents[1] / "report" / "conftest.py"


@pytest.fixture(scope="session")
def samples() -> Any:
    spec = importlib.util.spec_from_file_location("samples_of_the_reports", _FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Samples()


@pytest.fixture(scope="session")
def rubric() -> Rubric:
    """The components of the typical evening."""
    return Rubric(
        (
            Worth("rmsnorm", Fraction(10)),
            Worth("rope", Fraction(8), Fraction(2)),
            Worth("glu", Fraction(5)),
        )
    )


@pytest.fixture(scope="session")
def passing(samples: Any) -> Results:
    """Everything that the rubric counts, and it passes."""
    ids = ("rmsnorm::a", "rope::a", "glu::a")
    checks = [samples.check(id) for id in ids]
    checks.append(samples.check("rope::b", level="SHOULD"))
    return samples.results(checks, selected=("rmsnorm", "rope", "glu"))


@pytest.fixture(scope="session")
def nothing(samples: Any, passing: Results) -> dict[str, Results]:
    """Runs that prove nothing, although every check in them passed."""
    header = passing.header
    assert header is not None
    skipped = [*passing.checks[:1], *(replace(c, outcome="skipped") for c in passing.checks[1:])]
    return {
        "killed": replace(passing, footer=None, problems=("the footer is missing",)),
        "damaged": replace(passing, problems=("line 3: cut off, or not JSON",)),
        "deselected": replace(passing, header=replace(header, deselected=3)),
        "partial": replace(passing, header=replace(header, complete_selection=False)),
        "in process": replace(passing, header=replace(header, isolation=("none: in process",))),
        "skipped": samples.results(skipped, selected=header.selected),
        "not selected": samples.results(passing.checks[:1], selected=("rmsnorm",)),
        "usage": Results(None, error=ErrorRecord("--seed x: give a whole number", 2)),
        "internal": replace(passing, error=ErrorRecord("a mistake of the suite", 4)),
        "nothing at all": Results(None),
    }


@pytest.fixture(scope="session")
def hidden(samples: Any) -> Results:
    """A wrong answer and an exception on inputs that nobody may see."""
    details = Details(
        sentence="The sentence stays.",
        case="drawn-3",
        inputs="in_features = float32 (2,): [0.777123, 0.888456]",
        expected="0.555123 in row [0.555123, 0.666456]",
        got="0.777123 in row [0.777123, 0.888456]",
        where="[0]",
        error=0.222,
        tolerance=1.5e-7,
        printed="0.777123 was given",
        traceback='  File "m.py", line 3, in f\nValueError: 0.777123',
        replay="conformance grade . --check 'rmsnorm::a'",
        counterexample="report/counterexamples/a.safetensors",
        counterexample_replay="conformance replay a.safetensors",
        hidden=True,
        hidden_message="worst at [0]: expected 0.555123, got 0.777123",
    )
    wrong = samples.check(
        "rmsnorm::a",
        outcome="failed",
        margin=1.48e6,
        details=details,
        message="the result is wrong in 2 of 2 entries; worst at [0]: expected 0.555123, "
        "got 0.777123, 1.48e+06 times the tolerance of 1.5e-07",
    )
    raised = samples.check(
        "rope::a", outcome="raised", message="ValueError: 0.777123", details=details
    )
    odd = replace(raised, id="rope::b", message="My0777123Error: gotcha")
    return samples.results([wrong, raised, odd])
