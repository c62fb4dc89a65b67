"""Run one check and turn whatever happens into a result."""

from __future__ import annotations

import time

from conformance.candidate.messages import Outcome
from conformance.suite.check import Check
from conformance.suite.failure import CheckFailure, CheckResult
from conformance.suite.grader import Context, Grader


def run_check(check: Check, context: Context) -> CheckResult:
    """Run a check against the candidate of `context`.

    Exceptions of the harness itself are not caught: they are internal errors, never a verdict.
    """
    grader = Grader(check.component, check.dtype, context, key=check.id)
    start = time.perf_counter()
    try:
        check.function(grader)
    except CheckFailure as failure:
        return CheckResult(
            failure.outcome,
            failure.message,
            failure.margin if failure.margin is not None else None,
            time.perf_counter() - start,
            tuple(grader.notes),
            failure.evidence,
        )
    return CheckResult(
        Outcome.PASSED,
        "; ".join(grader.notes),
        grader.margin,
        time.perf_counter() - start,
        tuple(grader.notes),
    )
