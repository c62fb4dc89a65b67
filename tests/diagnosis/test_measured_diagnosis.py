"""The diagnosis against the corpus of faults: what is named is what was made.

A sample that stays fast; `python tests/diagnosing.py` and `python tests/agreement.py` measure
everything.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import agreement
import diagnosing

from conformance.spec import component_names

NAMES = component_names()
SLOW = ("multihead_self_attention_with_rope", "transformer_block", "transformer_lm")
EVERY = 13
EVERY_OF_SLOW = 32
"""One in so many faults is diagnosed."""

AGREEING = 4
"""One in so many wrong definitions is compared with its torch fault."""


@pytest.fixture(scope="module")
def rows() -> list[diagnosing.Row]:
    """The sample, component by component."""
    return [
        row
        for name in NAMES
        for row in diagnosing.rows(name, every=EVERY_OF_SLOW if name in SLOW else EVERY)
    ]


def test_the_sample_covers_all_components(rows: list[diagnosing.Row]) -> None:
    assert {row.component for row in rows} == set(NAMES)
    assert len(rows) >= 50


def test_no_wrong_mistake_is_called_certain(rows: list[diagnosing.Row]) -> None:
    wrong = [row for row in rows if row.verdict == "wrong" and row.diagnosis is not None]
    assert [row.fault for row in wrong if row.diagnosis.certainty == "certain"] == []


def test_nine_of_ten_mistakes_are_named_first(rows: list[diagnosing.Row]) -> None:
    missed = [row.fault for row in rows if row.verdict != "right"]
    assert len(missed) <= 0.1 * len(rows), missed


def test_the_component_with_the_mistake_is_named(rows: list[diagnosing.Row]) -> None:
    named = [row for row in rows if row.diagnosis is not None and row.diagnosis.fault]
    elsewhere = [row.fault for row in named if not row.root]
    assert len(elsewhere) <= 0.05 * len(named), elsewhere


@pytest.mark.parametrize("name", NAMES)
def test_wrong_definitions_compute_what_the_torch_faults_do(name: str) -> None:
    found, compared = agreement.disagreements(name, every=AGREEING)
    assert compared >= 4
    assert found == []
