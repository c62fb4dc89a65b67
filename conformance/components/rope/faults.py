"""What people write instead of RoPE: which features are paired, how fast they turn, which way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.rope.faults_positions import MISTAKES
from conformance.components.rope.oracle import (
    cosine_and_sine,
    inverse_frequencies,
    joined_pairs,
    position_angles,
    turned_pairs,
)
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.numerics.dtypes import FORMATS, Format, round_to

fault = MISTAKES.fault

Pair = tuple[Array, Array]
Turning = Callable[[Array, Array, Array, Array], Pair]


def halves(x: Array) -> Pair:
    """First and second half of the features."""
    middle = x.shape[-1] // 2
    return x[..., :middle], x[..., middle:]


def concatenated(first: Array, second: Array) -> Array:
    """All first features of the pairs, then all second ones."""
    joined = m.stack((first, second), axis=-2)
    return m.reshape(joined, (*first.shape[:-1], 2 * first.shape[-1]))


MISTAKES.combined("rope-half-split", feature_pairs=halves, joined_pairs=concatenated)
fault("rope-halves-concatenated", "joined_pairs")(concatenated)
fault("rope-halves-interleaved", "feature_pairs")(halves)
fault("rope-pair-order-swapped", "joined_pairs")(lambda first, second: joined_pairs(second, first))
fault("rope-pairs-not-joined", "joined_pairs")(lambda first, second: m.stack((first, second)))


def turning(identifier: str, turn: Turning) -> None:
    """Pairs are turned otherwise: `turn(first, second, cosine, sine)`."""
    fault(identifier, "turned_pairs")(turn)


turning("rope-wrong-direction", lambda a, b, c, s: turned_pairs(a, b, c, -s))
turning("rope-sine-and-cosine-swapped", lambda a, b, c, s: turned_pairs(a, b, s, c))
turning("rope-reflection", lambda a, b, c, s: (a * c + b * s, a * s - b * c))
turning("rope-both-plus", lambda a, b, c, s: (a * c + b * s, a * s + b * c))
turning("rope-cosine-only", lambda a, b, c, s: (a * c, b * c))
turning("rope-encoding-added", lambda a, b, c, s: (a + s, b + c))


@fault("rope-odd-from-rotated-even", "turned_pairs")
def odd_from_rotated_even(a: Array, b: Array, cosine: Array, sine: Array) -> Pair:
    even = a * cosine - b * sine
    return even, even * sine + b * cosine


@fault("rope-frequency-per-feature", "turned_pairs")
def frequency_per_feature(a: Array, b: Array, cosine: Array, sine: Array) -> Pair:
    pairs = cosine.shape[-1]
    even, odd = ((..., np.arange(start, 2 * pairs, 2) % pairs) for start in (0, 1))
    return a * cosine[even] - b * sine[even], a * sine[odd] + b * cosine[odd]


@fault("rope-half-rotated", "turned_pairs")
def half_rotated(a: Array, b: Array, cosine: Array, sine: Array) -> Pair:
    pairs = a.shape[-1]
    first, second = turned_pairs(a, b, cosine, sine)
    even, odd = 2 * np.arange(pairs), 2 * np.arange(pairs) + 1
    return m.where(even < pairs, first, a), m.where(odd < pairs, second, b)


@fault("rope-last-pair-skipped", "turned_pairs")
def last_pair_skipped(a: Array, b: Array, cosine: Array, sine: Array) -> Pair:
    first, second = turned_pairs(a, b, cosine, sine)
    rotated = np.arange(a.shape[-1]) < a.shape[-1] - 1
    return m.where(rotated, first, a), m.where(rotated, second, b)


def exponents(numbers: Callable[[Any, int], Any]) -> Callable[[Array, int], Array]:
    """Other exponents of the frequencies: `numbers(i, width)` for the pairs i."""

    def instead(like: Array, width: int) -> Array:
        pairs = np.arange(0, width, 2) // 2
        return m.constant(numbers(pairs, width) * width, like) / width

    return instead


def frequency(identifier: str, numbers: Callable[[Any, int], Any]) -> None:
    """The pairs i turn by `theta^-numbers(i, width)`."""
    fault(identifier, "pair_exponents")(exponents(numbers))


frequency("rope-exponent-half", lambda i, d: i / d)
frequency("rope-exponent-double", lambda i, d: 4 * i / d)
frequency("rope-exponent-from-one", lambda i, d: 2 * (i + 1) / d)
frequency("rope-exponent-odd", lambda i, d: (2 * i + 1) / d)
frequency("rope-exponent-reaches-one", lambda i, d: i / max(d // 2 - 1, 1))
frequency("rope-one-frequency", lambda i, d: 0 * i)
frequency("rope-frequencies-reversed", lambda i, d: (d - 2 - 2 * i) / d)
frequency(
    "rope-slow-frequencies-stretched",
    lambda i, d: np.where(i < d // 4, 2 * i / d, 2 * i / d + 0.3),
)

fault("rope-theta-always-10000", "inverse_frequencies")(
    lambda like, width, base: inverse_frequencies(like, width, 10000.0)
)
fault("rope-theta-inverted", "inverse_frequencies")(
    lambda like, width, base: inverse_frequencies(like, width, 1.0 / base)
)


def in_degrees(positions: Array, width: int, base: float) -> Array:
    """Angles that are taken for degrees and converted."""
    return position_angles(positions, width, base) * (np.pi / 180.0)


def angles_in(fmt: Format) -> Callable[[Array, int, float], Array]:
    """Angles of which positions, frequencies and products are rounded to a narrow format."""

    def instead(positions: Array, width: int, base: float) -> Array:
        frequencies = round_to(inverse_frequencies(positions, width, base).value, fmt)
        rows = round_to(positions.value, fmt)[..., None]
        return m.constant(round_to(rows * frequencies, fmt), positions)

    return instead


def tables_in_bfloat16(angles: Array) -> Pair:
    """Cosines and sines that have passed through bfloat16."""
    cosine, sine = cosine_and_sine(angles)
    return m.rounded(cosine, FORMATS["bfloat16"]), m.rounded(sine, FORMATS["bfloat16"])


def wrapped_at_pi(angles: Array) -> Array:
    """Angles modulo half a turn."""
    return angles - m.constant(np.floor(angles.value / np.pi) * np.pi, angles)


fault("rope-degrees", "position_angles")(in_degrees)
fault("rope-angles-in-bfloat16", "position_angles")(angles_in(FORMATS["bfloat16"]))
fault("rope-angles-in-float16", "position_angles")(angles_in(FORMATS["float16"]))
fault("rope-positions-interpolated", "position_angles")(
    lambda positions, width, base: position_angles(positions / 4.0, width, base)
)
fault("rope-angle-wrapped-at-pi", "position_angles")(
    lambda positions, width, base: wrapped_at_pi(position_angles(positions, width, base))
)
fault("rope-tables-in-bfloat16", "cosine_and_sine")(tables_in_bfloat16)
