"""What a failed check tells a reader about values that cannot be compared."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.candidate.inprocess import local_caller
from conformance.suite.check import checks
from conformance.suite.failure import CheckResult
from conformance.suite.grader import UNMEASURED, Context
from conformance.suite.profile import PROFILE
from conformance.suite.run import run_check


def _nan(in_features: torch.Tensor) -> torch.Tensor:
    return in_features * float("nan")


@pytest.fixture(scope="module")
def results() -> dict[str, CheckResult]:
    context = Context(local_caller({"run_silu": _nan}), PROFILE["quick"])
    return {check.name: run_check(check, context) for check in checks("silu")}


@pytest.mark.parametrize("name", ["definition", "reflection"])
def test_nan_has_no_error_and_no_tolerance(name: str, results: Any) -> None:
    """`reflection` is a law: there any finite value would do, so that its tolerance is infinite."""
    evidence = results[name].evidence
    assert "NaN in place of the finite number" in results[name].message
    assert evidence.error == UNMEASURED
    assert evidence.tolerance is None
    assert results[name].details({})["error"] == UNMEASURED
