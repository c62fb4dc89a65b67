"""The distribution of the next token, exactly as defined."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.components.softmax.oracle import softmax
from conformance.definitions import piece
from conformance.numerics import array as m
from conformance.numerics.arithmetic import Arithmetic
from conformance.numerics.array import Array
from conformance.numerics.dtypes import FLOAT64


@piece
def next_token(*, logits: Array, temperature: float = 1.0, top_p: float | None = None) -> Array:
    """`softmax(l / temperature)` of the last position's logits l, cut to the nucleus of `top_p`.

    `logits` (..., seq, vocab), result (..., vocab). Temperature 0 puts all probability on the
    largest logit, the first of them on a tie. With `top_p` the smallest set of most probable tokens
    whose mass reaches it is kept and renormalised, every other probability is 0; None keeps all.
    Holtzman et al. 2019, eq. 2-3; course section 6.

    Open are: scaling before or after the shift, and for 16-bit logits whether they are widened
    before they are scaled and whether the nucleus is renormalised in 16 bits.
    """
    last = last_position(logits)
    if temperature == 0:
        return greedy_cut(greedy(last), top_p)
    probabilities = tempered(last, temperature)
    if top_p is not None:
        probabilities = cut_to(probabilities, nucleus(last.value, temperature, top_p))
    return m.cast(probabilities, logits.format)


@piece
def last_position(logits: Array) -> Array:
    """The logits that follow the last token: (..., seq, vocab) -> (..., vocab)."""
    return logits[..., -1, :]


@piece
def tempered(last: Array, temperature: float) -> Array:
    """`softmax(l / temperature)` for a temperature that is not 0."""
    choose = last.arithmetic.choose
    scaled = last if choose(2) else m.upcast(last)
    if choose(2):
        scaled = scaled - m.maximum(scaled)
    return softmax(in_features=scaled / temperature, dim=-1)


@piece
def greedy(last: Array) -> Array:
    """All probability on the first of the largest logits."""
    first = np.argmax(last.value, axis=-1)
    places = np.arange(last.shape[-1])
    return m.constant(np.where(places == first[..., None], 1.0, 0.0), last)


@piece
def greedy_cut(one_hot: Array, top_p: float | None) -> Array:
    """The nucleus of a distribution that is all on one token: nothing is cut."""
    return one_hot


@piece
def cut_to(probabilities: Array, kept: Any) -> Array:
    """The probabilities of the tokens that are kept, divided by their mass; 0 elsewhere."""
    remaining = m.where(kept, probabilities, 0.0)
    return remaining / m.total(remaining)


@piece
def nucleus(last: Any, temperature: float, top_p: float) -> Any:
    """Which tokens belong to the smallest set of most probable ones whose mass reaches `top_p`.

    `last` (..., vocab) logits, exact; among equally probable tokens the first come first. The cut
    is where the result is discontinuous, so it is never moved by rounding: inputs on which a
    correct implementation could cut elsewhere are unfit as a case (`distance_from_cut`).
    """
    return smallest_set(_exactly_tempered(last, temperature), top_p)


@piece
def smallest_set(probabilities: Any, top_p: float) -> Any:
    """Which tokens belong to the smallest set whose mass reaches `top_p`: True for those."""
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    mass = np.cumsum(np.take_along_axis(probabilities, order, axis=-1), axis=-1)
    count = (mass < top_p).sum(axis=-1, keepdims=True) + 1
    rank = np.argsort(order, axis=-1, kind="stable")
    return rank < count


def distance_from_cut(last: Any, temperature: float, top_p: float) -> float:
    """How far any cumulative mass is from `top_p`: what the mass may be off by without effect."""
    ranked = -np.sort(-_exactly_tempered(last, temperature), axis=-1)
    return float(np.abs(np.cumsum(ranked, axis=-1)[..., :-1] - top_p).min(initial=1.0))


def _exactly_tempered(last: Any, temperature: float) -> Any:
    values = np.asarray(last, dtype=np.float64)
    return tempered(m.fresh(values, FLOAT64, Arithmetic()), temperature).value
