"""Numbers as a reader sees them, the same in every report."""

from __future__ import annotations

import math
from collections.abc import Sequence


def shown(value: float | str | None) -> str:
    """Three digits, or the text itself; empty for nothing."""
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:.3g}"


def shown_margin(margin: float | None) -> str:
    """A margin in three digits, in more where they decide whether it is above 1."""
    if margin is None:
        return "-"
    if math.isnan(margin):
        return "not a number"
    if math.isinf(margin):
        return "∞"
    return f"{margin:.6f}" if 0.995 <= margin < 1.005 and margin != 1.0 else f"{margin:.3g}"


def shown_score(score: float) -> str:
    """Two digits, rounded down: 1.00 is only ever shown for a full score."""
    return f"{math.floor(score * 100 + 1e-9) / 100:.2f}"


def plural(number: int, noun: str) -> str:
    """A number with its noun: "1 check", "3 checks"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Names in running text: "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
