"""How long a benchmark takes, by profile: the only place where these numbers stand."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from conformance.bench.timing import Effort


@dataclass(frozen=True)
class BenchProfile:
    """Seconds for a whole benchmark of one candidate, and what of it goes where.

    `component` bounds one component in one format, `scaling` is the share of the time for sweeps.
    """

    name: str
    total: float
    component: float
    ceilings: float
    scaling: float
    width: float


PROFILES = {
    "quick": BenchProfile("quick", 60.0, 4.0, 0.8, 0.0, 0.03),
    "standard": BenchProfile("standard", 300.0, 15.0, 2.0, 0.35, 0.015),
    "thorough": BenchProfile("thorough", 1800.0, 90.0, 4.0, 0.35, 0.005),
}

CHECKING = 0.3
"""Share of a component's time that is kept for checking values."""

LEAST = 0.25
"""A row gets so many seconds even when the time is nearly over."""


@dataclass
class Clock:
    """What is left of the time of a run."""

    total: float
    started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until the run should be over."""
        return self.total - (time.monotonic() - self.started)

    @property
    def over(self) -> bool:
        """Whether nothing more should be begun."""
        return self.left < LEAST


def row_effort(
    profile: BenchProfile, clock: Clock, max_seconds: float | None, rows_left: int, passes: int
) -> Effort:
    """The effort for the next row: its share of what is left, and never more than its bound."""
    measuring = clock.left - profile.scaling * profile.total
    share = (1.0 - CHECKING) * measuring / max(1, rows_left)
    bound = (max_seconds or profile.component) / passes
    return Effort(seconds=max(LEAST, min(bound, share)), width=profile.width)
