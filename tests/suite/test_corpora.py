"""The suite against the corpora: no correct variant fails, faults and null models are caught.

A sample that stays fast; `python tests/measure.py` measures everything.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import measure

from conformance.spec import component_names

NAMES = component_names()
EVERY = 9
"""One in so many faults is tried."""


def _task(corpus: str, name: str) -> measure.Task:
    return measure.Task(corpus, name, (0,), "quick", "", stored=True)


@pytest.mark.parametrize("name", NAMES)
def test_correct_variants_are_not_called_wrong(name: str) -> None:
    rows = measure.rows(_task("variants", name))
    assert len({row.entry for row in rows}) >= 5
    assert measure.false_alarms(rows) == []


@pytest.mark.parametrize("name", NAMES)
def test_faults_are_caught_at_their_level(name: str) -> None:
    rows = measure.rows(_task("faults", name), every=EVERY)
    assert len({row.entry for row in rows}) >= 3
    assert measure.survivors(rows) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_null_model_passes_a_value_check(name: str) -> None:
    rows = measure.rows(_task("nulls", name))
    assert len({row.entry for row in rows}) >= 5
    assert measure.null_passes(rows) == []
