"""Looks through the catalogue for the faults that fit everything a candidate answered."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import numpy as np

from conformance.definitions import pieces_used
from conformance.diagnosis.catalogue import Fault, faults
from conformance.diagnosis.match import Hypothesis, Match, match
from conformance.diagnosis.observe import Observation
from conformance.numerics import ensemble
from conformance.numerics.arithmetic import Arithmetic
from conformance.numerics.dtypes import FloatArray
from conformance.spec import component_names
from conformance.suite.component import Component
from conformance.suite.grader import Example, wrap

PAIRS = 1500
"""So many pairs of faults of a basic component are tried at most."""

PAIRS_OF_PARTS = 400
"""So many pairs are tried in a component that is built on others, where each costs more."""

MORE_INPUTS = 8
"""So many further inputs are asked to tell faults apart."""

APART = 0.05
"""Predictions that differ by more than this, relatively, can be told apart by an answer."""

Ask = Callable[[Example], Observation | None]


@cache
def used_pieces(owner: Component) -> frozenset[str]:
    """The pieces of definitions that a component is made of, its own included."""
    case = owner.cases[0]
    exact = Arithmetic()
    arguments = wrap(case.arguments(case.dtypes[0]), exact)
    with pieces_used() as names, np.errstate(all="ignore"):
        ensemble.apply_oracle(owner.oracle, arguments, exact)
    return frozenset(names)


@cache
def expressible(owner: Component) -> tuple[Fault, ...]:
    """The faults that a wrong definition of this component can have: its own, then its parts'.

    Where a fault of the component is one of a part, the part's stands for both. The parts come
    nearest first: of two mistakes that look the same from outside, the one in the larger part is
    told first.
    """
    used = used_pieces(owner)
    own = [fault for fault in faults(owner.name).values() if fault.pieces and not fault.same_as]
    parts = [
        fault
        for name in reversed(component_names())
        if name in used and name != owner.name
        for fault in faults(name).values()
        if fault.pieces and not fault.same_as and not fault.alone and set(fault.pieces) <= used
    ]
    return (*own, *parts)


def singles(owner: Component, observations: Sequence[Observation]) -> list[Match]:
    """The single faults that fit all observations."""
    hypotheses = (Hypothesis.of(owner, fault) for fault in expressible(owner))
    return fitting(hypotheses, owner, observations)


def pairs(
    owner: Component, observations: Sequence[Observation], known: Iterable[Fault]
) -> list[Match]:
    """Two faults together that fit all observations.

    Two of the component's own; or one that is `known` of a part of it, with any other.
    """
    everything = expressible(owner)
    own = [fault for fault in everything if fault.component == owner.name]
    most = PAIRS if len(own) == len(everything) else PAIRS_OF_PARTS
    chosen: Iterator[tuple[Fault, Fault]] = itertools.chain(
        itertools.product([fault for fault in known if fault in everything], everything),
        itertools.combinations(own, 2),
    )
    together = (
        Hypothesis.of(owner, first, second)
        for first, second in itertools.islice(
            ((a, b) for a, b in chosen if not set(a.pieces) & set(b.pieces)), most
        )
    )
    return fitting(together, owner, observations)


def fitting(
    hypotheses: Iterable[Hypothesis], owner: Component, observations: Sequence[Observation]
) -> list[Match]:
    """The hypotheses that fit, those that leave the fewest exceptions unexplained.

    The smallest wrong answer is looked at first: it rules most of them out. Exceptions come last.
    """
    ordered = sorted(observations, key=lambda o: (o.raised, not o.wrong, o.size))
    found = [match(hypothesis, ordered, owner.pooled) for hypothesis in hypotheses]
    kept = [one for one in found if one is not None and not _proves_nothing(one, ordered)]
    fewest = min((one.unexplained for one in kept), default=0)
    return [one for one in kept if one.unexplained == fewest]


def _proves_nothing(one: Match, observations: Sequence[Observation]) -> bool:
    """Whether it predicts only exceptions, on inputs without numbers, that read like others.

    Much can go wrong where an axis has length 0.
    """
    shown = [o for o in observations if one.hypothesis.fits(o) and one.hypothesis.shows(o)]
    if not all(o.raised and o.empty for o in shown):
        return False
    return not all(
        fault.message and re.search(fault.message, o.reply.message)
        for fault in one.hypothesis.faults
        for o in shown
    )


def narrowed(
    matches: Sequence[Match],
    owner: Component,
    dtype: str,
    observations: list[Observation],
    ask: Ask,
) -> list[Match]:
    """The matches that still fit when inputs are asked on which their predictions differ.

    What is asked is added to `observations`.
    """
    left = list(matches)
    asked = 0
    for draw, case in itertools.product((1, 2), owner.cases):
        if len(left) < 2 or asked == MORE_INPUTS:
            break
        if dtype not in case.dtypes:
            continue
        example = Example(case.arguments(dtype, draw), case.name, case.why, case.wrt)
        if not _tells_apart(left, example):
            continue
        observation = ask(example)
        asked += 1
        if observation is None:
            break
        fitted = [one for one in left if one.hypothesis.fits(observation)]
        if fitted:
            observations.append(observation)
            left = fitted
    return left


def _tells_apart(matches: Sequence[Match], example: Example) -> bool:
    predictions = [one.hypothesis.predict(example) for one in matches]
    first = predictions[0]
    return any(not _alike(first, other) for other in predictions[1:])


def _alike(left: object, right: object) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return isinstance(left, str) and isinstance(right, str)
    pairs = zip(left, right, strict=False)  # type: ignore[call-overload]
    return all(a.shape == b.shape and _close(a, b) for a, b in pairs)


def _close(left: FloatArray, right: FloatArray) -> bool:
    """Equal for the purpose of telling predictions apart, NaN and infinities included."""
    finite = np.isfinite(left) & np.isfinite(right)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True):
        return False
    scale = float(np.abs(right[finite]).max(initial=0.0))
    return bool((np.abs(left[finite] - right[finite]) <= APART * scale).all())
