"""Inputs on which mistakes in the next token's distribution show.

The cut of top-p is a jump: every case keeps the cumulative mass at least 0.04 away from top_p, far
more than rounding in any format can move it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from conformance.components.next_token.oracle import next_token
from conformance.numerics.draw import Draw
from conformance.suite.case import Case
from conformance.suite.component import Component

Build = Callable[[Draw], dict[str, Any]]
HALVES = ("bfloat16", "float16")
LOGITS = ("logits",)

FOUR = (0.5, 0.25, 0.15, 0.1)
SIX = (0.36, 0.24, 0.16, 0.12, 0.08, 0.04)
FLAT = (0.3, 0.25, 0.2, 0.15, 0.1)


def below_other_positions(draw: Draw, last: Any, seq: int = 3, scale: float = 2.0) -> Any:
    """Logits (..., seq, vocab) that end in `last` (..., vocab), after positions at random."""
    earlier = draw.normal(*last.shape[:-1], seq - 1, last.shape[-1], scale=scale)
    return np.concatenate((earlier, last[..., None, :]), axis=-2)


def _ordinary(*shape: int, scale: float = 1.5, **settings: Any) -> Build:
    """Logits of that shape at random."""
    return lambda draw: {"logits": draw.normal(*shape, scale=scale), **settings}


def _shuffled(draw: Draw, probabilities: Sequence[float], rows: int) -> Any:
    """Logits (rows, vocab) of these probabilities, in another order and moved in every row."""
    logits = np.log(np.array(probabilities))
    orders = [draw.permutation(len(probabilities)) for _ in range(rows)]
    return np.stack([logits[order] for order in orders]) + draw.uniform(rows, 1, low=-2, high=2)


def _of_probabilities(probabilities: Sequence[float], rows: int = 3, **settings: Any) -> Build:
    """The last position has these probabilities at temperature 1."""

    def build(draw: Draw) -> dict[str, Any]:
        last = _shuffled(draw, probabilities, rows)
        return {"logits": below_other_positions(draw, last), **settings}

    return build


def _powers(probabilities: Sequence[float], temperature: float, **settings: Any) -> Build:
    """The last position has these probabilities at that temperature, others at temperature 1."""

    def build(draw: Draw) -> dict[str, Any]:
        last = _shuffled(draw, probabilities, 3) * temperature
        logits = below_other_positions(draw, last)
        return {"logits": logits, "temperature": temperature, **settings}

    return build


def _sorted_vocabulary(draw: Draw) -> dict[str, Any]:
    """The most probable token last: sets that are read off unsorted tokens go wrong."""
    last = np.log(np.array([FOUR[::-1], FOUR[::-1]]))
    return {"logits": below_other_positions(draw, last), "top_p": 0.6}


def _large_elsewhere(draw: Draw, **settings: Any) -> dict[str, Any]:
    last = _shuffled(draw, SIX, 2)
    earlier = draw.signs(2, 3, 6) * np.array([1e4, 300.0, 90.0])[:, None]
    return {"logits": np.concatenate((earlier, last[:, None]), axis=1), **settings}


def _greedy(draw: Draw) -> dict[str, Any]:
    """Largest logits ahead of the next by 0.01 only, at different places."""
    last = np.stack([draw.permutation(7) for _ in range(4)]) * 0.01 + draw.integers(-3, 4, 4, 1)
    return {"logits": below_other_positions(draw, last), "temperature": 0.0}


def _ties(draw: Draw) -> dict[str, Any]:
    last = np.array([[1.0, 3.0, 2.0, 3.0], [2.0, 2.0, 2.0, 2.0], [0.0, -1.0, 4.0, 4.0]])
    return {"logits": below_other_positions(draw, last), "temperature": 0.0}


def _rows(draw: Draw, **settings: Any) -> dict[str, Any]:
    """Sets of one, two, three and four tokens in one batch, at top_p = 0.7."""
    rows = [(0.8, 0.1, 0.05, 0.03, 0.02), (0.5, 0.3, 0.1, 0.06, 0.04), (0.4, 0.25, 0.2, 0.1, 0.05)]
    rows += [(0.21, 0.205, 0.2, 0.195, 0.19)]
    last = np.concatenate([_shuffled(draw, row, 1) for row in rows])
    return {"logits": below_other_positions(draw, last), **settings}


def _extreme(draw: Draw, **settings: Any) -> dict[str, Any]:
    """Rows at +1e4, at -1e4, and spread over both."""
    last = np.stack(
        (
            1e4 + draw.permutation(6) * 0.5,
            -1e4 + draw.permutation(6) * 0.5,
            draw.permutation(6) * 4000.0 - 1e4,
            draw.permutation(6) * 40.0,
        )
    )
    return {"logits": below_other_positions(draw, last), **settings}


def _forbidden(draw: Draw, **settings: Any) -> dict[str, Any]:
    last = np.array([[-np.inf, 1.0, 0.0, 2.5, -np.inf], [0.5, -np.inf, -2.0, 1.5, 3.0]])
    return {"logits": below_other_positions(draw, last), **settings}


VALUES = (
    Case(
        "ordinary",
        "NEXT-DEFINITION",
        "logits of order one at temperature 1",
        _ordinary(2, 4, 9, temperature=1.0, top_p=None),
        flags=("ordinary",),
    ),
    Case(
        "vocabulary-300",
        "NEXT-DEFINITION",
        "a larger vocabulary, all of which is kept",
        _ordinary(2, 2, 300, temperature=1.0, top_p=None),
        flags=("ordinary",),
    ),
    Case(
        "long-sequence",
        "NEXT-LAST-POSITION",
        "the last of eleven positions",
        _ordinary(2, 11, 6, temperature=1.0),
        flags=("ordinary",),
    ),
    Case(
        "large-elsewhere",
        "NEXT-LAST-POSITION",
        "the positions before the last hold logits of 1e4, 300 and 90 of both signs",
        _large_elsewhere,
        flags=("other-positions",),
    ),
    Case(
        "large-elsewhere-nucleus",
        "NEXT-LAST-POSITION",
        "the same with a nucleus to cut",
        lambda draw: _large_elsewhere(draw, temperature=1.0, top_p=0.7),
        flags=("other-positions", "nucleus"),
    ),
    Case(
        "nothing-given",
        "NEXT-DEFAULTS",
        "logits only",
        _ordinary(2, 3, 6),
        flags=("ordinary",),
    ),
    Case(
        "temperature-only",
        "NEXT-DEFAULTS",
        "top_p left away",
        _ordinary(2, 3, 6, temperature=0.7),
        flags=("temperature",),
    ),
    Case(
        "top-p-only",
        "NEXT-DEFAULTS",
        "temperature left away",
        _of_probabilities(FOUR, top_p=0.6),
        flags=("nucleus",),
    ),
    *(
        Case(
            f"temperature-{name}",
            "NEXT-TEMPERATURE",
            why,
            _ordinary(2, 3, 7, temperature=temperature, top_p=None),
            flags=("temperature",),
        )
        for name, temperature, why in (
            ("half", 0.5, "0.5 sharpens"),
            ("two", 2.0, "2 flattens"),
            ("seven-tenths", 0.7, "a usual value that is no power of two"),
            ("tenth", 0.1, "0.1: ten times the logits"),
            ("hundred", 100.0, "100: close to uniform, and still not uniform"),
        )
    ),
    Case(
        "greedy",
        "NEXT-GREEDY",
        "runners-up 0.01 behind: temperatures that are merely small do not reach 1",
        _greedy,
        flags=("greedy",),
    ),
    Case(
        "greedy-nucleus",
        "NEXT-GREEDY",
        "a nucleus of one token is left as it is",
        lambda draw: {**_greedy(draw), "top_p": 0.9},
        flags=("greedy", "nucleus"),
    ),
    Case(
        "greedy-ties",
        "NEXT-GREEDY-TIES",
        "two largest logits, and all equal",
        _ties,
        flags=("greedy",),
    ),
)

NUCLEUS = (
    *(
        Case(
            f"four-{int(100 * top_p)}",
            "NEXT-TOP-P",
            f"0.5, 0.25, 0.15, 0.1 in any order: top_p = {top_p} keeps {kept}",
            _of_probabilities(FOUR, temperature=1.0, top_p=top_p),
            flags=("nucleus",),
        )
        for top_p, kept in ((0.6, "two"), (0.82, "three"), (0.95, "all four"))
    ),
    Case(
        "six-70",
        "NEXT-TOP-P",
        "0.36, 0.24, 0.16, 0.12, 0.08, 0.04: top_p = 0.7 keeps three",
        _of_probabilities(SIX, temperature=1.0, top_p=0.7),
        flags=("nucleus",),
    ),
    Case(
        "crossing-first",
        "NEXT-CROSSING-TOKEN",
        "the first token alone is above top_p = 0.3: it stays, and alone",
        _of_probabilities(FOUR, temperature=1.0, top_p=0.3),
        flags=("nucleus",),
    ),
    Case(
        "crossing-second",
        "NEXT-CROSSING-TOKEN",
        "the second carries the mass from 0.5 to 0.75, across 0.65: it stays, the third goes",
        _of_probabilities(FOUR, temperature=1.0, top_p=0.65),
        flags=("nucleus",),
    ),
    Case(
        "crossing-last",
        "NEXT-CROSSING-TOKEN",
        "only the last token reaches top_p = 0.95",
        _of_probabilities(FLAT, temperature=1.0, top_p=0.95),
        flags=("nucleus",),
    ),
    Case(
        "flat",
        "NEXT-RENORMALISED",
        "0.3, 0.25, 0.2, 0.15, 0.1 at 0.5: 6/11 and 5/11 remain",
        _of_probabilities(FLAT, temperature=1.0, top_p=0.5),
        flags=("nucleus",),
    ),
    Case(
        "outside",
        "NEXT-OUTSIDE-NUCLEUS",
        "a long tail that goes as a whole",
        _of_probabilities((0.45, 0.35, *[0.02] * 10), temperature=1.0, top_p=0.7),
        flags=("nucleus",),
    ),
    Case(
        "top-p-one",
        "NEXT-TOP-P-ALL",
        "top_p = 1: the whole distribution",
        _of_probabilities(SIX, temperature=1.0, top_p=1.0),
        flags=("nucleus",),
    ),
    Case(
        "top-p-tiny",
        "NEXT-TOP-P-TINY",
        "top_p = 1e-6: the most probable token",
        _of_probabilities(FLAT, temperature=1.0, top_p=1e-6),
        flags=("nucleus",),
    ),
    Case(
        "top-p-small",
        "NEXT-TOP-P-TINY",
        "top_p = 0.1 is below the most probable token, which stays",
        _of_probabilities(SIX, temperature=1.0, top_p=0.1),
        flags=("nucleus",),
    ),
    Case(
        "sharpened",
        "NEXT-TEMPERATURE-FIRST",
        "temperature 0.5: two tokens reach 0.68 after it, it would take three before it",
        _powers(FOUR, 0.5, top_p=0.68),
        flags=("temperature-and-nucleus",),
    ),
    Case(
        "flattened",
        "NEXT-TEMPERATURE-FIRST",
        "temperature 3: three tokens are needed after it, two would do before it",
        _powers(FLAT, 3.0, top_p=0.65),
        flags=("temperature-and-nucleus",),
    ),
    Case(
        "rising",
        "NEXT-VOCABULARY-ORDER",
        "the most probable token stands last",
        _sorted_vocabulary,
        flags=("nucleus",),
    ),
    Case(
        "rows",
        "NEXT-ROWS",
        "sets of one, two, three and four tokens in one batch",
        lambda draw: _rows(draw, temperature=1.0, top_p=0.7),
        flags=("rows", "nucleus"),
    ),
    Case(
        "rows-greedy",
        "NEXT-ROWS",
        "another most probable token in every sequence",
        lambda draw: _rows(draw, temperature=0.0),
        flags=("rows", "greedy"),
    ),
)

EXTREME = (
    Case(
        "huge",
        "NEXT-EXTREME",
        "all logits near 1e4, all near -1e4, and spread over both",
        lambda draw: _extreme(draw, temperature=1.0),
        flags=("extreme",),
    ),
    Case(
        "huge-sharp",
        "NEXT-EXTREME",
        "the same at temperature 0.01",
        lambda draw: _extreme(draw, temperature=0.01),
        flags=("extreme", "temperature"),
    ),
    Case(
        "huge-nucleus",
        "NEXT-EXTREME",
        "the same with a nucleus",
        lambda draw: _extreme(draw, temperature=0.5, top_p=0.75),
        flags=("extreme", "temperature-and-nucleus"),
    ),
    Case(
        "forbidden",
        "NEXT-FORBIDDEN-TOKENS",
        "logits of minus infinity at temperature 0.8",
        lambda draw: _forbidden(draw, temperature=0.8),
        flags=("extreme",),
    ),
    Case(
        "forbidden-nucleus",
        "NEXT-FORBIDDEN-TOKENS",
        "the same with a nucleus",
        lambda draw: _forbidden(draw, temperature=1.0, top_p=0.85),
        flags=("extreme", "nucleus"),
    ),
)

SHAPES = (
    *(
        Case(
            f"axes-{len(lead)}",
            "NEXT-LEADING-AXES",
            f"logits of shape {(*lead, 3, 5)} at temperature 0.7",
            _ordinary(*lead, 3, 5, temperature=0.7),
            flags=("shapes",),
        )
        for lead in ((), (2,), (2, 4), (2, 1, 3))
    ),
    Case(
        "axes-2-nucleus",
        "NEXT-LEADING-AXES",
        "two axes before the sequence, with a nucleus",
        lambda draw: {
            "logits": below_other_positions(draw, _shuffled(draw, SIX, 6).reshape(2, 3, 6)),
            "top_p": 0.7,
        },
        flags=("shapes", "nucleus"),
    ),
    Case(
        "all-equal",
        "NEXT-SIZES",
        "batch, sequence and vocabulary are all 5: another axis shows in the values only",
        _ordinary(5, 5, 5, temperature=0.7),
        flags=("shapes",),
    ),
    Case(
        "one-position",
        "NEXT-SIZES",
        "a sequence of one",
        _ordinary(3, 1, 6, temperature=0.7),
        flags=("shapes",),
    ),
    Case(
        "one-token",
        "NEXT-SIZES",
        "a vocabulary of one",
        _ordinary(2, 3, 1, temperature=0.7, top_p=0.5),
        flags=("shapes", "nucleus"),
    ),
    Case(
        "one-sequence",
        "NEXT-SIZES",
        "a batch of one keeps its axis",
        _ordinary(1, 4, 6, temperature=0.7),
        flags=("shapes",),
    ),
)

DTYPES = (
    Case(
        "half",
        "NEXT-HALF-VALUES",
        "logits of order one at temperature 0.7",
        _ordinary(2, 3, 7, temperature=0.7),
        flags=("half",),
        dtypes=HALVES,
    ),
    Case(
        "half-nucleus",
        "NEXT-HALF-VALUES",
        "0.5, 0.25, 0.15, 0.1 at 0.6",
        _of_probabilities(FOUR, temperature=1.0, top_p=0.6),
        flags=("half", "nucleus"),
        dtypes=HALVES,
    ),
    Case(
        "half-greedy",
        "NEXT-HALF-VALUES",
        "temperature 0",
        lambda draw: _rows(draw, temperature=0.0),
        flags=("half", "greedy"),
        dtypes=HALVES,
    ),
    Case(
        "double",
        "NEXT-FLOAT64",
        "temperature and nucleus in float64",
        _of_probabilities(SIX, temperature=1.0, top_p=0.7),
        dtypes=("float64",),
        golden=False,
    ),
    Case(
        "double-temperature",
        "NEXT-FLOAT64",
        "temperature 0.7 in float64",
        _ordinary(2, 3, 7, temperature=0.7),
        dtypes=("float64",),
        golden=False,
    ),
)

CALLS = tuple(
    Case(f"call-{name}", "NEXT-NO-STATE", why, build, flags=("several-calls",))
    for name, why, build in (
        ("first", "what the others are asked after", _of_probabilities(SIX, top_p=0.7)),
        ("other-top-p", "the same sizes, all tokens", _of_probabilities(SIX, temperature=0.5)),
        ("other-vocabulary", "another vocabulary", _of_probabilities(FOUR, top_p=0.6)),
        ("other-batch", "another batch", _of_probabilities(SIX, rows=2, temperature=2.0)),
    )
)

OPEN = (
    Case(
        "ties-at-the-cut",
        "NEXT-CUT-TIES",
        "three equal tokens of which one and a half are needed",
        lambda draw: {"logits": np.log(np.array([[[0.3, 0.3, 0.3, 0.1]]])), "top_p": 0.45},
        golden=False,
    ),
    Case(
        "negative-temperature",
        "NEXT-OUT-OF-RANGE",
        "temperature -1",
        _ordinary(1, 2, 4, temperature=-1.0),
        golden=False,
    ),
    Case(
        "top-p-zero",
        "NEXT-OUT-OF-RANGE",
        "top_p 0",
        _ordinary(1, 2, 4, top_p=0.0),
        golden=False,
    ),
)

COMPONENT = Component(
    name="next_token",
    oracle=next_token,
    cases=(*VALUES, *NUCLEUS, *EXTREME, *SHAPES, *DTYPES, *CALLS, *OPEN),
    pooled=(),
)
