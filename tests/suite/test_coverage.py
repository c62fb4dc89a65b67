"""The table of what is covered is counted from the code, and the page is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.coverage import COMMAND, coverage, coverage_markdown, is_law
from conformance.golden.load import GoldenStore, fixtures_folder
from conformance.spec import component_names, component_spec
from conformance.suite.check import checks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coverage.md"


def test_the_page_is_up_to_date() -> None:
    found = PAGE.read_text("utf-8")
    assert found == coverage_markdown() + "\n", f"write it anew: {COMMAND}"


@pytest.mark.parametrize("name", component_names())
def test_the_counts_are_those_of_the_specification_and_the_vectors(name: str) -> None:
    found = coverage(name)
    vectors = GoldenStore(fixtures_folder()).manifest["vectors"]
    assert sum(found.levels.values()) == len(component_spec(name).requirements)
    assert found.checks == sum(found.dtypes.values()) == len(list(checks(name)))
    assert found.vectors == sum(vector["component"] == name for vector in vectors)


def test_what_is_a_law() -> None:
    """By itself, through a helper of its module, and through a protocol."""
    found = {f"{name}::{law.name}" for name in component_names() for law in coverage(name).laws}
    laws = {"rope::keeps_length", "next_token::greedy_ties_are_a_distribution"}
    assert laws | {"transformer_lm::prefix", "softmax::order_is_kept"} <= found
    plain = {"rope::definition", "rope::gradient", "rope::no_state", "rope::module_forward"}
    assert not plain & found


def test_every_component_has_a_law() -> None:
    for name in component_names():
        assert any(is_law(check.function) for check in checks(name)), name
