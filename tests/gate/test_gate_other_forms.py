"""Stored inputs in other forms: every component has them, and their answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.candidate.inprocess import local_caller
from conformance.candidate.messages import Outcome
from conformance.golden.load import GoldenStore, fixtures_folder
from conformance.numerics import ensemble
from conformance.numerics.arithmetic import Arithmetic
from conformance.numerics.draw import Draw
from conformance.spec import component_names
from conformance.suite.check import checks
from conformance.suite.component import component
from conformance.suite.grader import Context, Grader, wrap
from conformance.suite.profile import PROFILE
from conformance.suite.run import run_check
from conformance.suite.transformed import FACTORS, FORMS, _at, _batch, _scaled, _taken
from reference_impl import adapters

NAMES = component_names()
GOLDEN = GoldenStore(fixtures_folder())


def exact(name: str, arguments: Any) -> Any:
    arithmetic = Arithmetic()
    oracle = component(name).oracle
    return ensemble.apply_oracle(oracle, wrap(arguments, arithmetic), arithmetic).value


def stored(name: str) -> list[Any]:
    """Small stored inputs in float32."""
    context = Context(local_caller({}), PROFILE["quick"], golden=GOLDEN)
    grade = Grader(component(name), "float32", context)
    cases = [c for c in component(name).cases if c.golden and "float32" in c.dtypes]
    return [grade.example(case).arguments for case in cases[:8]]


def test_every_component_has_other_forms() -> None:
    assert set(FORMS) == set(NAMES)
    for name in NAMES:
        (check,) = (c for c in checks(name) if c.name == "stored_inputs_in_other_forms")
        assert check.profile == "quick"
        assert check.requirement.level == "MUST"


@pytest.mark.parametrize("name", NAMES)
def test_rows_in_another_order_have_the_answers_in_that_order(name: str) -> None:
    found = 0
    for arguments in stored(name):
        together = _batch(FORMS[name], arguments)
        if not together or arguments[together[0]].shape[0] < 2:
            continue
        found += 1
        before = exact(name, arguments)
        order = Draw("rows", name).permutation(arguments[together[0]].shape[0])
        after = exact(name, _taken(arguments, together, order))
        np.testing.assert_allclose(after, before[order], rtol=1e-9, atol=1e-300)
        if "dim" not in arguments:
            fewer = exact(name, _taken(arguments, together, order[1:]))
            np.testing.assert_allclose(fewer, before[order[1:]], rtol=1e-9, atol=1e-300)
    assert found


@pytest.mark.parametrize("name", [name for name in NAMES if FORMS[name].scaled])
def test_a_factor_comes_out_in_front(name: str) -> None:
    for arguments in stored(name):
        before = exact(name, arguments)
        for path in FORMS[name].scaled:
            scaled = _scaled(arguments, path, Draw("factor", name))
            quotient = np.asarray(_at(scaled, path) / np.where(_at(arguments, path), 1, 1))
            whole = _at(arguments, path)
            (factor,) = {f for f in FACTORS if (quotient == whole * whole.dtype.type(f)).all()}
            np.testing.assert_allclose(
                exact(name, scaled), factor * before, rtol=1e-6, atol=1e-37, err_msg=path
            )


@pytest.mark.parametrize("name", NAMES)
def test_right_answers_pass(name: str) -> None:
    function = component(name).function
    caller = local_caller({function: getattr(adapters, function)})
    (check,) = (c for c in checks(name) if c.name == "stored_inputs_in_other_forms")
    for seed in range(3):
        context = Context(caller, PROFILE["quick"], seed=seed, golden=GOLDEN)
        result = run_check(check, context)
        assert result.outcome is Outcome.PASSED, result.message
        assert result.margin is not None
        assert result.margin < 0.5, "far within the tolerance"
