"""Property-based exploration with Hypothesis, reproducible from a key."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, settings

from conformance.candidate.messages import Outcome
from conformance.suite.failure import CheckFailure


def explore(strategy: Any, test: Callable[[Any], None], examples: int, key: str) -> None:
    """Run `test` on that many examples; the CheckFailure of the smallest failing one is raised."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @hypothesis.seed(zlib.crc32(key.encode()))
    @hypothesis.given(strategy)
    def run(example: Any) -> None:
        test(example)

    try:
        run()
    except CheckFailure as failure:
        raise failure.with_traceback(None) from None
    except hypothesis.errors.Flaky as flaky:
        raise CheckFailure(
            Outcome.FAILED,
            "the candidate answered the same input differently when it was asked again",
        ) from flaky
