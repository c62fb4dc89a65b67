"""Inputs on which mistakes in the next token's distribution show.

The cut of top-p is a jump: every case keeps the cumulative mass at least 0.04 away from top_p, far
more than rounding in any format can move it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from conformance.components.next_token.inputs import (
    FLAT,
    FOUR,
    PAIRS,
    SIX,
    below_other_positions,
    close_runners_up,
    different_rows,
    forbidden,
    huge,
    in_full,
    large_elsewhere,
    of_probabilities,
    ordinary,
    shuffled,
    sorted_vocabulary,
    tempered,
    ties,
)
from conformance.components.next_token.oracle import next_token
from conformance.suite.case import Case
from conformance.suite.component import Component

HALVES = ("bfloat16", "float16")
LOGITS = ("logits",)

VALUES = (
    Case(
        "ordinary",
        "NEXT-DEFINITION",
        "logits of order one at temperature 1",
        ordinary(2, 4, 9),
        flags=("ordinary",),
    ),
    Case(
        "vocabulary-300",
        "NEXT-DEFINITION",
        "a larger vocabulary, all of which is kept",
        ordinary(2, 2, 300),
        flags=("ordinary",),
    ),
    Case(
        "long-sequence",
        "NEXT-LAST-POSITION",
        "the last of eleven positions",
        ordinary(2, 11, 6),
        flags=("ordinary",),
    ),
    Case(
        "large-elsewhere",
        "NEXT-LAST-POSITION",
        "the positions before the last hold logits of 1e4, 300 and 90 of both signs",
        large_elsewhere(),
        flags=("other-positions",),
    ),
    Case(
        "large-elsewhere-nucleus",
        "NEXT-LAST-POSITION",
        "the same with a nucleus to cut",
        large_elsewhere(top_p=0.7),
        flags=("other-positions", "nucleus"),
    ),
    Case(
        "nothing-given",
        "NEXT-DEFAULTS",
        "logits only",
        ordinary(2, 3, 6),
        flags=("ordinary",),
    ),
    Case(
        "temperature-only",
        "NEXT-DEFAULTS",
        "top_p left away",
        ordinary(2, 3, 6, temperature=0.7),
        flags=("temperature",),
    ),
    Case(
        "top-p-only",
        "NEXT-DEFAULTS",
        "temperature left away",
        of_probabilities(FOUR, top_p=0.6),
        flags=("nucleus",),
    ),
    *(
        Case(
            f"temperature-{name}",
            "NEXT-TEMPERATURE",
            why,
            ordinary(2, 3, 7, temperature=temperature),
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
        close_runners_up(),
        flags=("greedy",),
    ),
    Case(
        "greedy-nucleus",
        "NEXT-GREEDY",
        "a nucleus of one token is left as it is",
        close_runners_up(top_p=0.9),
        flags=("greedy", "nucleus"),
    ),
    Case(
        "greedy-ties",
        "NEXT-GREEDY-TIES",
        "two largest logits, and all equal",
        ties,
        flags=("greedy",),
    ),
)

NUCLEUS = (
    *(
        Case(
            f"four-{int(100 * top_p)}",
            "NEXT-TOP-P",
            f"0.5, 0.25, 0.15, 0.1 in any order: top_p = {top_p} keeps {kept}",
            of_probabilities(FOUR, top_p=top_p),
            flags=("nucleus",),
        )
        for top_p, kept in ((0.6, "two"), (0.82, "three"), (0.95, "all four"))
    ),
    Case(
        "six-70",
        "NEXT-TOP-P",
        "0.36, 0.24, 0.16, 0.12, 0.08, 0.04: top_p = 0.7 keeps three",
        of_probabilities(SIX, top_p=0.7),
        flags=("nucleus",),
    ),
    Case(
        "ties-50",
        "NEXT-TOP-P",
        "0.3, 0.3, 0.2, 0.2: top_p = 0.5 keeps the two that are equally probable",
        of_probabilities(PAIRS, top_p=0.5),
        flags=("nucleus",),
    ),
    Case(
        "ties-90",
        "NEXT-TOP-P",
        "0.3, 0.3, 0.2, 0.2: top_p = 0.9 keeps all four",
        of_probabilities(PAIRS, top_p=0.9),
        flags=("nucleus",),
    ),
    *(
        Case(
            f"crossing-{name}",
            "NEXT-CROSSING-TOKEN",
            why,
            of_probabilities(probabilities, top_p=top_p),
            flags=("nucleus",),
        )
        for name, probabilities, top_p, why in (
            ("first", FOUR, 0.3, "the first token alone is above 0.3: it stays, and alone"),
            ("second", FOUR, 0.65, "the second carries the mass from 0.5 across 0.65 to 0.75"),
            ("last", FLAT, 0.95, "only the last token reaches 0.95"),
        )
    ),
    Case(
        "flat",
        "NEXT-RENORMALISED",
        "0.3, 0.25, 0.2, 0.15, 0.1 at 0.5: 6/11 and 5/11 remain",
        of_probabilities(FLAT, top_p=0.5),
        flags=("nucleus",),
    ),
    Case(
        "outside",
        "NEXT-OUTSIDE-NUCLEUS",
        "a long tail that goes as a whole",
        of_probabilities((0.45, 0.35, *[0.02] * 10), top_p=0.7),
        flags=("nucleus",),
    ),
    Case(
        "top-p-one",
        "NEXT-TOP-P-ALL",
        "top_p = 1: the whole distribution",
        of_probabilities(SIX, top_p=1.0),
        flags=("nucleus",),
    ),
    Case(
        "top-p-tiny",
        "NEXT-TOP-P-TINY",
        "top_p = 1e-6: the most probable token",
        of_probabilities(FLAT, top_p=1e-6),
        flags=("nucleus",),
    ),
    Case(
        "top-p-small",
        "NEXT-TOP-P-TINY",
        "top_p = 0.1 is below the most probable token, which stays",
        of_probabilities(SIX, top_p=0.1),
        flags=("nucleus",),
    ),
    Case(
        "sharpened",
        "NEXT-TEMPERATURE-FIRST",
        "temperature 0.5: two tokens reach 0.68 after it, it would take three before it",
        tempered(FOUR, 0.5, top_p=0.68),
        flags=("temperature-and-nucleus",),
    ),
    Case(
        "flattened",
        "NEXT-TEMPERATURE-FIRST",
        "temperature 3: three tokens are needed after it, two would do before it",
        tempered(FLAT, 3.0, top_p=0.65),
        flags=("temperature-and-nucleus",),
    ),
    Case(
        "rising",
        "NEXT-VOCABULARY-ORDER",
        "the most probable token stands last",
        sorted_vocabulary,
        flags=("nucleus",),
    ),
    Case(
        "rows",
        "NEXT-ROWS",
        "sets of one, two, three and four tokens in one batch",
        different_rows(top_p=0.7),
        flags=("rows", "nucleus"),
    ),
    Case(
        "rows-greedy",
        "NEXT-ROWS",
        "another most probable token in every sequence",
        different_rows(temperature=0.0),
        flags=("rows", "greedy"),
    ),
)

EXTREME = (
    *(
        Case(name, "NEXT-EXTREME", why, huge(**settings), flags=("extreme", *more))
        for name, why, settings, more in (
            ("huge", "logits near 1e4, near -1e4, and spread over both", {}, ()),
            ("huge-sharp", "the same at temperature 0.01", {"temperature": 0.01}, ("temperature",)),
            (
                "huge-nucleus",
                "the same with temperature and a nucleus",
                {"temperature": 0.5, "top_p": 0.75},
                ("temperature-and-nucleus",),
            ),
        )
    ),
    Case(
        "forbidden",
        "NEXT-FORBIDDEN-TOKENS",
        "logits of minus infinity at temperature 0.8",
        forbidden(temperature=0.8),
        flags=("extreme",),
    ),
    Case(
        "forbidden-nucleus",
        "NEXT-FORBIDDEN-TOKENS",
        "the same with a nucleus",
        forbidden(top_p=0.85),
        flags=("extreme", "nucleus"),
    ),
)

SHAPES = (
    *(
        Case(
            f"axes-{len(lead)}",
            "NEXT-LEADING-AXES",
            f"logits of shape {(*lead, 3, 5)} at temperature 0.7",
            ordinary(*lead, 3, 5, temperature=0.7),
            flags=("shapes",),
        )
        for lead in ((), (2,), (2, 4), (2, 1, 3))
    ),
    Case(
        "axes-2-nucleus",
        "NEXT-LEADING-AXES",
        "two axes before the sequence, with a nucleus",
        lambda draw: {
            "logits": below_other_positions(draw, shuffled(draw, SIX, 6).reshape(2, 3, 6)),
            "top_p": 0.7,
        },
        flags=("shapes", "nucleus"),
    ),
    Case(
        "axes-2-greedy",
        "NEXT-LEADING-AXES",
        "two axes before the sequence, at temperature 0",
        ordinary(2, 4, 3, 5, temperature=0.0),
        flags=("shapes", "greedy"),
    ),
    *(
        Case(name, "NEXT-SIZES", why, ordinary(*shape, temperature=0.7), flags=("shapes",))
        for name, why, shape in (
            ("all-equal", "all axes are 5: another axis shows in the values only", (5, 5, 5)),
            ("one-position", "a sequence of one", (3, 1, 6)),
            ("one-sequence", "a batch of one keeps its axis", (1, 4, 6)),
        )
    ),
    Case(
        "one-token",
        "NEXT-SIZES",
        "a vocabulary of one",
        ordinary(2, 3, 1, temperature=0.7, top_p=0.5),
        flags=("shapes", "nucleus"),
    ),
    *(
        Case(
            f"empty-{name}",
            "NEXT-EMPTY",
            f"no sequence at all, {name}",
            ordinary(0, 3, 5, **settings),
            flags=("shapes",),
            golden=False,
        )
        for name, settings in (
            ("plain", {"temperature": 0.7}),
            ("greedy", {"temperature": 0.0}),
            ("nucleus", {"top_p": 0.7}),
        )
    ),
)

DTYPES = (
    Case(
        "half",
        "NEXT-HALF-VALUES",
        "logits of order one at temperature 0.7",
        ordinary(2, 3, 7, temperature=0.7),
        flags=("half",),
        dtypes=HALVES,
    ),
    Case(
        "half-nucleus",
        "NEXT-HALF-VALUES",
        "0.5, 0.25, 0.15, 0.1 at 0.6",
        of_probabilities(FOUR, top_p=0.6),
        flags=("half", "nucleus"),
        dtypes=HALVES,
    ),
    Case(
        "half-greedy",
        "NEXT-HALF-VALUES",
        "temperature 0",
        different_rows(temperature=0.0),
        flags=("half", "greedy"),
        dtypes=HALVES,
    ),
    Case(
        "double",
        "NEXT-FLOAT64",
        "temperature and nucleus in float64",
        of_probabilities(SIX, top_p=0.7),
        dtypes=("float64",),
        golden=False,
    ),
    Case(
        "double-temperature",
        "NEXT-FLOAT64",
        "temperature 0.7 in float64",
        ordinary(2, 3, 7, temperature=0.7),
        dtypes=("float64",),
        golden=False,
    ),
)

CALLS = tuple(
    Case(f"call-{name}", "NEXT-NO-STATE", why, build, flags=("several-calls",))
    for name, why, build in (
        ("first", "what the others are asked after", of_probabilities(SIX, top_p=0.7)),
        ("other-top-p", "the same sizes, all tokens", of_probabilities(SIX, temperature=0.5)),
        ("other-vocabulary", "another vocabulary", of_probabilities(FOUR, top_p=0.6)),
        ("other-batch", "another batch", of_probabilities(SIX, rows=4, temperature=2.0)),
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
        ordinary(1, 2, 4, temperature=-1.0),
        golden=False,
    ),
    Case(
        "top-p-zero",
        "NEXT-OUT-OF-RANGE",
        "top_p 0",
        ordinary(1, 2, 4, top_p=0.0),
        golden=False,
    ),
)


def _in_full(case: Case) -> Case:
    """Every argument is given, so that defaults matter to their own requirement only."""
    if case.requirement == "NEXT-DEFAULTS":
        return case
    return replace(case, build=lambda draw: in_full(case.build(draw)))


COMPONENT = Component(
    name="next_token",
    oracle=next_token,
    cases=tuple(
        _in_full(case) for case in (*VALUES, *NUCLEUS, *EXTREME, *SHAPES, *DTYPES, *CALLS, *OPEN)
    ),
    pooled=(),
)
