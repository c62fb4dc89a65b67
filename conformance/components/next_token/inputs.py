"""How the inputs of the next token's cases are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from conformance.numerics.draw import Draw

Build = Callable[[Draw], dict[str, Any]]

FOUR = (0.5, 0.25, 0.15, 0.1)
SIX = (0.36, 0.24, 0.16, 0.12, 0.08, 0.04)
PAIRS = (0.3, 0.3, 0.2, 0.2)
FLAT = (0.3, 0.25, 0.2, 0.15, 0.1)


def below_other_positions(draw: Draw, last: Any, seq: int = 2, scale: float = 2.0) -> Any:
    """Logits (..., seq, vocab) that end in `last` (..., vocab), after positions at random."""
    earlier = draw.normal(*last.shape[:-1], seq - 1, last.shape[-1], scale=scale)
    return np.concatenate((earlier, last[..., None, :]), axis=-2)


def in_full(arguments: dict[str, Any]) -> dict[str, Any]:
    """The same call with temperature and top_p given."""
    return {"logits": arguments["logits"], "temperature": 1.0, "top_p": None, **arguments}


def ordinary(*shape: int, scale: float = 1.5, **settings: Any) -> Build:
    """Logits of that shape at random."""
    return lambda draw: {"logits": draw.normal(*shape, scale=scale), **settings}


def shuffled(draw: Draw, probabilities: Sequence[float], rows: int) -> Any:
    """Logits (rows, vocab) of these probabilities, in another order and moved in every row."""
    logits = np.log(np.array(probabilities))
    orders = [draw.permutation(len(probabilities)) for _ in range(rows)]
    return np.stack([logits[order] for order in orders]) + draw.uniform(rows, 1, low=-2, high=2)


def of_probabilities(probabilities: Sequence[float], rows: int = 3, **settings: Any) -> Build:
    """The last position has these probabilities at temperature 1."""

    def build(draw: Draw) -> dict[str, Any]:
        last = shuffled(draw, probabilities, rows)
        return {"logits": below_other_positions(draw, last), **settings}

    return build


def tempered(probabilities: Sequence[float], temperature: float, **settings: Any) -> Build:
    """The last position has these probabilities at that temperature, others at temperature 1."""

    def build(draw: Draw) -> dict[str, Any]:
        last = shuffled(draw, probabilities, 3) * temperature
        logits = below_other_positions(draw, last)
        return {"logits": logits, "temperature": temperature, **settings}

    return build


def sorted_vocabulary(draw: Draw) -> dict[str, Any]:
    """The most probable token last: sets that are read off unsorted tokens go wrong."""
    last = np.log(np.array([FOUR[::-1], FOUR[::-1]]))
    return {"logits": below_other_positions(draw, last, seq=3), "top_p": 0.6}


def large_elsewhere(**settings: Any) -> Build:
    """Logits of 1e4, 300 and 90 of both signs at the positions before the last."""

    def build(draw: Draw) -> dict[str, Any]:
        last = shuffled(draw, SIX, 2)
        earlier = draw.signs(2, 3, 6) * np.array([1e4, 300.0, 90.0])[:, None]
        return {"logits": np.concatenate((earlier, last[:, None]), axis=1), **settings}

    return build


def close_runners_up(**settings: Any) -> Build:
    """Largest logits ahead of the next by 0.01 only, at different places, for temperature 0."""

    def build(draw: Draw) -> dict[str, Any]:
        last = np.stack([draw.permutation(7) for _ in range(4)]) * 0.01
        moved = last + draw.integers(-3, 4, 4, 1)
        return {"logits": below_other_positions(draw, moved), "temperature": 0.0, **settings}

    return build


def ties(draw: Draw) -> dict[str, Any]:
    """Two and four largest logits, for temperature 0."""
    last = np.array([[1.0, 3.0, 2.0, 3.0], [2.0, 2.0, 2.0, 2.0], [0.0, -1.0, 4.0, 4.0]])
    return {"logits": below_other_positions(draw, last), "temperature": 0.0}


def different_rows(**settings: Any) -> Build:
    """Sets of one, two, three and four tokens in one batch, at top_p = 0.7."""
    distributions = (
        (0.8, 0.1, 0.05, 0.03, 0.02),
        (0.5, 0.3, 0.1, 0.06, 0.04),
        (0.4, 0.25, 0.2, 0.1, 0.05),
        (0.21, 0.205, 0.2, 0.195, 0.19),
    )

    def build(draw: Draw) -> dict[str, Any]:
        last = np.concatenate([shuffled(draw, row, 1) for row in distributions])
        return {"logits": below_other_positions(draw, last), **settings}

    return build


def huge(**settings: Any) -> Build:
    """Rows at 1e4, at -1e4, and spread over both."""

    def build(draw: Draw) -> dict[str, Any]:
        steps = np.stack([draw.permutation(6) for _ in range(4)])
        scale = np.array([[0.5], [0.5], [4000.0], [40.0]])
        start = np.array([[1e4], [-1e4], [-1e4], [0.0]])
        return {"logits": below_other_positions(draw, start + scale * steps), **settings}

    return build


def forbidden(**settings: Any) -> Build:
    """Logits of minus infinity among others."""
    last = np.array([[-np.inf, 1.0, 0.0, 2.5, -np.inf], [0.5, -np.inf, -2.0, 1.5, 3.0]])
    return lambda draw: {"logits": below_other_positions(draw, last, seq=3), **settings}
