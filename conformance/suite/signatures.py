"""How to call what the specification names only in part: constructors and `forward`.

The specification gives a composite class some keywords of its constructor and leaves the others
open. What a class takes is read from its signature; what has no known meaning there is never
guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformance.candidate.messages import Argument
from conformance.candidate.worker import SYNONYMS

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    **SYNONYMS,
    "use_rope": ("with_rope", "apply_rope", "use_rotary"),
    "rope": ("rotary", "rope_module", "pos_encoder", "positional_encoding"),
    "dropout": ("dropout_p", "dropout_rate", "p_drop", "attn_pdrop"),
    "bias": ("use_bias", "qkv_bias"),
}
"""Keyword of a constructor -> other names it has in the wild."""


@dataclass(frozen=True)
class Match:
    """Keywords for a constructor, or why they cannot be told.

    `names` gives each known keyword the name that it has here.
    """

    keywords: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


def match(
    signature: Sequence[Argument] | None,
    needed: Mapping[str, Any],
    known: Mapping[str, Any],
    spare: Mapping[str, Any],
) -> Match:
    """Keywords for a constructor of that signature.

    Without one that takes everything `needed` there is no match; `known` values are given where
    they are taken, `spare` ones only where nothing else would do. A parameter that has no default
    and no known meaning leaves no match either.
    """
    if signature is None:
        return Match(problem="its constructor cannot be inspected")
    taken = {argument.name: argument for argument in signature if argument.keyword}
    names = spelled((*needed, *known, *spare), taken)
    missing = [name for name in needed if name not in names]
    if missing:
        return Match(names=names, problem=f"its constructor does not take {', '.join(missing)}")
    given = {name: value for name, value in {**needed, **known}.items() if name in names}
    for name, value in spare.items():
        if name in names and taken[names[name]].required:
            given.setdefault(name, value)
    keywords = {names[name]: value for name, value in given.items()}
    asked = [a.name for a in signature if a.required and a.name not in keywords]
    if asked:
        problem = f"its constructor asks for more than is known: {', '.join(asked)}"
        return Match(names=names, problem=problem)
    return Match(keywords, names)


def spelled(wanted: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """Keyword -> the name it has among those that are taken; exact names go first."""
    free = list(taken)
    found: dict[str, str] = {}
    wanted = tuple(dict.fromkeys(wanted))
    for choices in ({n: (n,) for n in wanted}, {n: SPELLINGS.get(n, ()) for n in wanted}):
        for name in wanted:
            choice = next((c for c in choices[name] if c in free), None)
            if name not in found and choice is not None:
                found[name] = choice
                free.remove(choice)
    return found


def ways_to_call(
    forward: Sequence[Argument] | None, x: Any, at: Any = None
) -> list[tuple[Any, ...]]:
    """Arguments with which `forward` may be called on x (batch, seq, ...), the plainest first.

    Positions 0 .. seq - 1 are added where it takes any, as (seq,), (1, seq) or (batch, seq); none
    are left out where it asks for them. Empty when it asks for something else. With the positions
    `at` (seq,), these are given instead, and it is empty too where none are taken.
    """
    if not forward:
        return [(x,)] if at is None else []
    required = [argument for argument in forward if argument.required]
    places = [argument for argument in forward if argument.positional]
    if len(required) > 2 or any(not argument.positional for argument in required):
        return []
    second = places[1].name.lower() if len(places) > 1 else ""
    row = np.arange(x.shape[1], dtype=np.int64) if at is None else at
    rows = [row, row[None], np.tile(row, (x.shape[0], 1))]
    with_positions = [(x, given) for given in rows]
    if "pos" not in second or "start" in second:
        with_positions = []
    return with_positions if len(required) == 2 or at is not None else [(x,), *with_positions]
