"""What explanations cost, counted and not timed.

The candidate is asked at most twice as often as one that passes everything. How often definitions
are evaluated is bounded by the size of the catalogue, whatever fails and however often.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from asking import Candidate, adapting, corpus, parts

from conformance.diagnosis.search import PAIRS, PAIRS_OF_PARTS, expressible
from conformance.numerics import ensemble
from conformance.suite.component import component

EACH = 5
"""Evaluations per fault of the catalogue and per case: a few inputs tell that a fault fits not."""

Function = Callable[..., Any]


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The definitions that are evaluated, one entry for each time."""
    found: list[Any] = []
    apply_oracle = ensemble.apply_oracle

    def counted(oracle: Any, *others: Any) -> Any:
        found.append(oracle)
        return apply_oracle(oracle, *others)

    monkeypatch.setattr(ensemble, "apply_oracle", counted)
    return found


def fault(identifier: str) -> Function:
    """A fault of the corpus."""
    return next(entry.function for entry in corpus.faults() if entry.id == identifier)


def of_roots(x: Any, positions: Any, theta: float, limit: int) -> Any:
    """Angles that grow with the root of the position: nobody's mistake."""
    return parts.turn(x, parts.angles(positions.double().sqrt(), x.shape[-1], theta))


def gate_of_roots(x: Any, w1: Any, w2: Any, w3: Any) -> Any:
    """A gate that is nobody's mistake."""
    gate = (x @ w1.mT).abs().sqrt()
    return parts.linear(gate * (x @ w3.mT), w2)


KNOWN = [
    ("rope", "rope-half-split"),
    ("rmsnorm", "rmsnorm-layer-norm"),
    ("softmax", "softmax-axis-ignored"),
    ("scaled_dot_product_attention", "attention-no-scale"),
    ("transformer_block", "block-post-norm"),
]
UNKNOWN = [
    ("rope", adapting.rope_by(of_roots), PAIRS),
    ("swiglu", adapting.swiglu_by(gate_of_roots), PAIRS_OF_PARTS),
]
"""Component, what stands for it, and how many pairs of faults are tried at most."""


@pytest.mark.parametrize(("name", "identifier"), KNOWN)
def test_a_known_mistake_costs_little(name: str, identifier: str, evaluated: list[Any]) -> None:
    assert _evaluations(name, fault(identifier), evaluated) <= _each_fault_and_case(name)


@pytest.mark.parametrize(("name", "function", "pairs"), UNKNOWN)
def test_an_unknown_mistake_costs_no_more_than_the_pairs(
    name: str, function: Function, pairs: int, evaluated: list[Any]
) -> None:
    """Two inputs tell that a pair fits not, and all pairs are tried once."""
    most = _each_fault_and_case(name) + 2 * pairs
    assert _evaluations(name, function, evaluated) <= most


def _each_fault_and_case(name: str) -> int:
    owner = component(name)
    return EACH * (len(expressible(owner)) + len(owner.cases))


def _evaluations(name: str, function: Function, evaluated: list[Any]) -> int:
    """Evaluations for the explanations of a run; the candidate is not asked too often in it."""
    right = Candidate(**{name: adapting.CORRECT[name]})
    assert list(right.failures(name)) == []
    wrong = Candidate(**{name: function})
    evaluations = failures = 0
    for check, result in wrong.results(name):
        before = len(evaluated)
        wrong.doctor.explain(check, result)
        evaluations += len(evaluated) - before
        failures += result.outcome != "passed"
    assert failures > 5
    assert wrong.caller.calls <= 2 * right.caller.calls
    return evaluations


def test_what_is_known_is_not_searched_again(evaluated: list[Any]) -> None:
    """From the second failure on, one evaluation tells that the mistake explains it too."""
    candidate = Candidate(rope=fault("rope-half-split"))
    counts = []
    for check, result in candidate.results("rope"):
        before = len(evaluated), candidate.caller.calls
        if candidate.doctor.explain(check, result) is not None:
            counts.append((len(evaluated) - before[0], candidate.caller.calls - before[1]))
    assert len(counts) > 5
    assert all(evaluations <= 1 and calls == 0 for evaluations, calls in counts[1:])
