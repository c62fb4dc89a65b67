"""The distribution of the next token, exactly as defined."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.components.softmax.oracle import softmax
from conformance.definitions import piece
from conformance.numerics import array as m
from conformance.numerics.array import Array


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
    last = logits[..., -1, :]
    if temperature == 0:
        return _greedy(last)
    choose = last.arithmetic.choose
    scaled = last if choose(2) else m.upcast(last)
    if choose(2):
        scaled = scaled - m.maximum(scaled)
    probabilities = softmax(in_features=scaled / temperature, dim=-1)
    if top_p is not None:
        kept = m.where(nucleus(last.value, temperature, top_p), probabilities, 0.0)
        probabilities = kept / m.total(kept)
    return m.cast(probabilities, logits.format)


def _greedy(last: Array) -> Array:
    first = np.argmax(last.value, axis=-1)
    places = np.arange(last.shape[-1])
    return m.constant(np.where(places == first[..., None], 1.0, 0.0), last)


@piece
def nucleus(last: Any, temperature: float, top_p: float) -> Any:
    """Which tokens belong to the smallest set of most probable ones whose mass reaches `top_p`.

    `last` (..., vocab) logits, exact; among equally probable tokens the first come first. The cut
    is where the result is discontinuous, so it is never moved by rounding: inputs on which a
    correct implementation could cut elsewhere are unfit as a case (`distance_from_cut`).
    """
    probabilities = _exact_softmax(last, temperature)
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    mass = np.cumsum(np.take_along_axis(probabilities, order, axis=-1), axis=-1)
    count = (mass < top_p).sum(axis=-1, keepdims=True) + 1
    rank = np.argsort(order, axis=-1, kind="stable")
    return rank < count


def distance_from_cut(last: Any, temperature: float, top_p: float) -> float:
    """How far any cumulative mass is from `top_p`: what the mass may be off by without effect."""
    ranked = -np.sort(-_exact_softmax(last, temperature), axis=-1)
    return float(np.abs(np.cumsum(ranked, axis=-1)[..., :-1] - top_p).min())


def _exact_softmax(last: Any, temperature: float) -> Any:
    values = np.asarray(last, dtype=np.float64) / temperature
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)
