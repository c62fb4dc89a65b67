"""What people write instead of the definition of next_token.

A mistake about the position replaces `last_position`, about the temperature `tempered` or `greedy`,
about the set of tokens `smallest_set`, about what is done with it `cut_to`, so that one of each can
be combined.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.next_token.oracle import (
    cut_to,
    greedy,
    last_position,
    next_token,
    nucleus,
    smallest_set,
    tempered,
)
from conformance.components.softmax.oracle import softmax
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import axes_other_than, refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array

MISTAKES = Mistakes("next_token")
fault = MISTAKES.fault
combined = MISTAKES.combined

MOST = 50
"""Tokens that a library's top-k keeps unless it is told otherwise."""


def whole(by: Callable[[Array, float, float | None], Array]) -> Callable[..., Array]:
    """The component computed by a function of logits, temperature and top_p."""

    def component(*, logits: Array, temperature: float = 1.0, top_p: float | None = None) -> Array:
        return by(logits, temperature, top_p)

    return component


def right(logits: Array, temperature: float, top_p: float | None) -> Array:
    """The component itself."""
    return next_token(logits=logits, temperature=temperature, top_p=top_p)


fault("next-token-first-position", "last_position")(lambda logits: logits[..., 0, :])

fault("next-token-last-but-one-position", "last_position")(
    lambda logits: logits[..., max(logits.shape[-2] - 2, 0), :]
)

fault("next-token-mean-over-positions", "last_position")(
    lambda logits: m.mean(logits, -2)[..., 0, :]
)

fault("next-token-largest-over-positions", "last_position")(
    lambda logits: m.maximum(logits, -2, through=True)[..., 0, :]
)

fault("next-token-position-three-always", "last_position")(
    lambda logits: logits[..., min(3, logits.shape[-2] - 1), :]
)

fault("next-token-all-positions", "last_position")(lambda logits: logits)

fault("next-token-one-row-kept", "last_position")(lambda logits: logits[..., -1:, :])


@fault("next-token-softmax-over-positions")
@whole
def softmax_over_positions(logits: Array, temperature: float, top_p: float | None) -> Array:
    """The last row of a softmax over the sequence."""
    scaled = logits / temperature if temperature else logits
    shares = m.rounded(softmax(in_features=scaled, dim=-2)[..., -1, :], logits.format)
    if top_p is None or top_p >= 1:
        return shares
    return cut_to(shares, smallest_set(shares.value, top_p))


fault("next-token-temperature-ignored", "tempered")(lambda last, t: tempered(last, 1.0))

fault("next-token-temperature-multiplied", "tempered")(lambda last, t: tempered(last, 1.0 / t))

fault("next-token-temperature-squared", "tempered")(lambda last, t: tempered(last, t * t))

fault("next-token-temperature-not-below-half", "tempered")(
    lambda last, t: tempered(last, max(t, 0.5))
)

fault("next-token-temperature-after-top-p", "nucleus")(lambda last, t, p: nucleus(last, 1.0, p))

fault("next-token-zero-temperature-ignored")(whole(lambda logits, t, p: right(logits, t or 1.0, p)))

fault("next-token-zero-temperature-nearly")(whole(lambda logits, t, p: right(logits, t or 0.1, p)))


fault("next-token-zero-temperature-divides", "greedy")(lambda last: tempered(last, 0.0))


@fault("next-token-zero-temperature-uniform")
@whole
def zero_temperature_uniform(logits: Array, temperature: float, top_p: float | None) -> Array:
    """Equal logits, at temperature 0."""
    if temperature:
        return right(logits, temperature, top_p)
    return right(m.constant(np.zeros(logits.shape), logits), 1.0, top_p)


def backwards(x: Array) -> Array:
    """The vocabulary in the opposite order."""
    return x[..., ::-1]


fault("next-token-greedy-last-on-ties", "greedy")(lambda last: backwards(greedy(backwards(last))))


@fault("next-token-greedy-all-ties", "greedy")
def greedy_all_ties(last: Array) -> Array:
    """The mass shared among the largest."""
    equal = last.value == last.value.max(axis=-1, keepdims=True)
    return m.constant(equal / equal.sum(axis=-1, keepdims=True), last)


@fault("next-token-greedy-over-batch", "greedy")
def greedy_over_batch(last: Array) -> Array:
    """The largest logit of all rows together, for every row."""
    rows = last.value.reshape(-1, last.shape[-1])
    one_hot = np.arange(last.shape[-1]) == rows.sum(axis=0).argmax()
    return m.constant(np.broadcast_to(np.where(one_hot, 1.0, 0.0), last.shape), last)


fault("next-token-greedy-index", "greedy")(
    lambda last: m.constant(last.value.argmax(axis=-1).astype(np.float64), last)
)


@fault("next-token-logits-answered")
@whole
def logits_answered(logits: Array, temperature: float, top_p: float | None) -> Array:
    """Scaled logits, whatever top_p is; one-hot at temperature 0."""
    last = last_position(logits)
    return last / temperature if temperature else greedy(last)


fault("next-token-log-probabilities")(
    whole(lambda logits, t, p: m.log(m.rounded(right(logits, t, p), logits.format)))
)

fault("next-token-top-p-ignored", "cut_to")(lambda probabilities, kept: probabilities)

fault("next-token-top-p-not-renormalised", "cut_to")(
    lambda probabilities, kept: m.where(kept, probabilities, 0.0)
)


def below_one(by: Callable[[Any, float], Any]) -> Callable[[Any, float], Any]:
    """A set of tokens by(probabilities, top_p); all of them where top_p is 1."""

    def chosen(probabilities: Any, top_p: float) -> Any:
        if top_p >= 1:
            return np.ones(probabilities.shape, dtype=bool)
        return by(probabilities, top_p)

    return chosen


def before(values: Any) -> Any:
    """The sum of what comes before each entry."""
    sums = np.cumsum(values, axis=-1)
    return np.concatenate((np.zeros((*values.shape[:-1], 1)), sums[..., :-1]), axis=-1)


def by_rank(keeps: Callable[[Any, Any, float], Any]) -> Callable[[Any, float], Any]:
    """The set of ranks for which keeps(probabilities, mass before, top_p), most probable first."""

    @below_one
    def chosen(probabilities: Any, top_p: float) -> Any:
        order = np.argsort(-probabilities, axis=-1, kind="stable")
        ranked = np.take_along_axis(probabilities, order, axis=-1)
        kept = np.broadcast_to(keeps(ranked, before(ranked), top_p), ranked.shape)
        return np.take_along_axis(kept, np.argsort(order, axis=-1, kind="stable"), axis=-1)

    return chosen


without_crossing = by_rank(lambda q, mass, p: mass + q < p)


def cut_by(chosen: Callable[[Any, float], Any]) -> Callable[[Array, float | None], Array]:
    """A one-hot distribution cut like any other, which may leave nothing to divide by."""

    def cut(one_hot: Array, top_p: float | None) -> Array:
        return one_hot if top_p is None else cut_to(one_hot, chosen(one_hot.value, top_p))

    return cut


combined(
    "next-token-top-p-without-crossing",
    smallest_set=without_crossing,
    greedy_cut=cut_by(without_crossing),
)

fault("next-token-top-p-without-crossing-keeps-first", "smallest_set")(
    by_rank(lambda q, mass, p: (mass + q < p) | (mass == 0))
)

fault("next-token-top-p-one-too-many", "smallest_set")(
    by_rank(lambda q, mass, p: np.insert(mass[..., :-1], 0, 0.0, axis=-1) < p)
)

fault("next-token-top-p-as-least-probability", "smallest_set")(
    by_rank(lambda q, mass, p: (q >= 1 - p) | (mass == 0))
)

fault("next-token-top-p-as-complement", "smallest_set")(by_rank(lambda q, mass, p: mass < 1 - p))

fault("next-token-top-p-as-count", "smallest_set")(
    by_rank(lambda q, mass, p: np.arange(q.shape[-1]) < math.ceil(p * q.shape[-1]))
)

fault("next-token-top-p-of-logits", "nucleus")(
    lambda last, temperature, top_p: by_rank(lambda _, mass, p: mass < p)(last, top_p)
)

fault("next-token-top-p-unsorted", "smallest_set")(below_one(lambda q, p: before(q) < p))


@fault("next-token-top-p-ascending", "smallest_set")
@below_one
def ascending(probabilities: Any, top_p: float) -> Any:
    """The least probable tokens whose mass reaches top_p."""
    order = np.argsort(probabilities, axis=-1, kind="stable")
    kept = before(np.take_along_axis(probabilities, order, axis=-1)) < top_p
    return np.take_along_axis(kept, np.argsort(order, axis=-1, kind="stable"), axis=-1)


@below_one
def of_first_row(probabilities: Any, top_p: float) -> Any:
    """The first row's set, for every row."""
    kept = smallest_set(probabilities, top_p)
    return np.broadcast_to(kept.reshape(-1, kept.shape[-1])[0], kept.shape)


def one_hot_of_first_row(one_hot: Array, top_p: float | None) -> Array:
    """Nothing where the token is not the first row's: too little to divide by."""
    return one_hot if top_p is None else m.where(of_first_row(one_hot.value, top_p), one_hot, 0.0)


combined(
    "next-token-top-p-of-first-row",
    smallest_set=of_first_row,
    greedy_cut=one_hot_of_first_row,
)


def in_order(x: Array, order: Any) -> Array:
    """Each row's entries in an order of its own."""
    return m.take(x, (*np.indices(order.shape)[:-1], order))


def descending(values: Any) -> Any:
    """Where the entries of each row come from when they are sorted, largest first."""
    return np.argsort(-values, axis=-1, kind="stable")


@fault("next-token-top-p-left-sorted")
@whole
def left_sorted(logits: Array, temperature: float, top_p: float | None) -> Array:
    """Probabilities by rank, where something is cut."""
    answer = right(logits, temperature, top_p)
    if top_p is None or top_p >= 1:
        return answer
    return in_order(answer, descending(answer.value))


@fault("next-token-top-p-scattered-backwards")
@whole
def scattered_backwards(logits: Array, temperature: float, top_p: float | None) -> Array:
    """Probabilities by rank, gathered by the order that led there."""
    answer = right(logits, temperature, top_p)
    if top_p is None or top_p >= 1:
        return answer
    order = descending(right(logits, temperature, None).value)
    return in_order(in_order(answer, descending(answer.value)), order)


@fault("next-token-top-p-logits-set-to-zero")
@whole
def logits_set_to_zero(logits: Array, temperature: float, top_p: float | None) -> Array:
    """A softmax in which dropped tokens have logit 0."""
    answer = right(logits, temperature, top_p)
    if top_p is None or temperature == 0:
        return answer
    return tempered(m.where(answer.value != 0, last_position(logits), 0.0), temperature)


@fault("next-token-top-k-as-well", "last_position")
def top_k_as_well(logits: Array) -> Array:
    """The last logits, those below the fiftieth forbidden."""
    last = last_position(logits)
    least = np.sort(last.value, axis=-1)[..., -min(MOST, last.shape[-1]), None]
    return m.where(last.value >= least, last, -np.inf)


@fault("next-token-end-token-suppressed", "last_position")
def end_token_suppressed(logits: Array) -> Array:
    """The last logits, token 0 forbidden."""
    last = last_position(logits)
    return m.where(np.arange(last.shape[-1]) != 0, last, -np.inf)


fault("next-token-three-axes-only", "last_position")(refusing(last_position, axes_other_than(3)))

fault("next-token-top-p-required")(whole(refusing(right, lambda logits, t, p: p is None)))

fault("next-token-drops-size-one-axes")(whole(lambda logits, t, p: squeezed(right(logits, t, p))))


def squeezed(x: Array) -> Array:
    """`x` without its axes of length one."""
    return m.reshape(x, tuple(n for n in x.shape if n != 1))


fault("next-token-rows-stacked", "last_position")(
    refusing(last_position, lambda logits: 0 in logits.shape)
)
