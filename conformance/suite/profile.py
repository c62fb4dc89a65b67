"""How much is asked in the three profiles; the only place where these numbers stand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """`examples` per law, and how often each case is drawn anew beside its golden draw."""

    name: str
    examples: int
    fresh_draws: int


PROFILE = {
    "quick": Profile("quick", examples=4, fresh_draws=0),
    "standard": Profile("standard", examples=12, fresh_draws=1),
    "thorough": Profile("thorough", examples=100, fresh_draws=10),
}

DEFAULT_PROFILE = "standard"
DEFAULT_SEED = 0
