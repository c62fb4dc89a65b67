"""Property-based exploration with Hypothesis, reproducible from a key."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.internal.conjecture import providers

from conformance.candidate.messages import Outcome
from conformance.suite.failure import CheckFailure


def explore(strategy: Any, test: Callable[[Any], None], examples: int, key: str) -> None:
    """Run `test` on that many examples; the CheckFailure of the smallest failing one is raised."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=False,  # the seed below decides, also where Hypothesis recognises a CI
        verbosity=Verbosity.quiet,
        backend="hypothesis",
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
        with _nothing_from_around():
            run()
    except CheckFailure as failure:
        raise failure.with_traceback(None) from None
    except hypothesis.errors.Flaky as flaky:
        raise CheckFailure(
            Outcome.FAILED,
            "the candidate answered the same input differently when it was asked again",
        ) from flaky


@contextmanager
def _nothing_from_around() -> Iterator[None]:
    """Keep Hypothesis from drawing constants that it finds in the source files around it.

    Which these are depends on how the suite is installed and on what has been imported so far, so
    that a check on its own would draw other examples than the same check in a whole run. Versions
    of Hypothesis that do not do this have nothing to be replaced.
    """
    before = getattr(providers, "_get_local_constants", None)
    if before is None:
        yield
        return
    none = type(providers.GLOBAL_CONSTANTS)()
    providers._get_local_constants = lambda: none
    try:
        yield
    finally:
        providers._get_local_constants = before
