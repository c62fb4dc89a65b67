"""What people write instead of the sinusoidal encoding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.rope.faults import angles_in, concatenated, exponents, in_degrees
from conformance.components.rope.faults_positions import Rows, as_array, beyond, in_order, squeezed
from conformance.components.rope.oracle import (
    inverse_frequencies,
    joined_pairs,
    position_angles,
    row_positions,
)
from conformance.components.sinusoidal.oracle import BASE, sinusoidal
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import refusing
from conformance.numerics import array as m
from conformance.numerics.arithmetic import Arithmetic
from conformance.numerics.array import Array
from conformance.numerics.dtypes import FLOAT32, FORMATS

MISTAKES = Mistakes("sinusoidal")
fault = MISTAKES.fault


def joining(identifier: str, join: Callable[[Array, Array], Array]) -> None:
    """Sines and cosines are put elsewhere: `join(sines, cosines)`."""
    fault(identifier, "joined_pairs")(join)


joining("sinusoidal-halves-concatenated", concatenated)
joining("sinusoidal-sine-and-cosine-swapped", lambda sine, cosine: joined_pairs(cosine, sine))
joining("sinusoidal-sine-only", lambda sine, cosine: joined_pairs(sine, sine))
joining("sinusoidal-cosine-negated", lambda sine, cosine: joined_pairs(sine, -cosine))


def frequency(identifier: str, numbers: Callable[[Any, int], Any]) -> None:
    """The pairs i turn by `10000^-numbers(i, width)`."""
    fault(identifier, "pair_exponents")(exponents(numbers))


frequency("sinusoidal-exponent-half", lambda i, d: i / d)
frequency("sinusoidal-exponent-double", lambda i, d: 4 * i / d)
frequency("sinusoidal-exponent-from-one", lambda i, d: 2 * (i + 1) / d)
frequency("sinusoidal-exponent-reaches-one", lambda i, d: i / max(d // 2 - 1, 1))
frequency("sinusoidal-frequencies-reversed", lambda i, d: (d - 2 - 2 * i) / d)


def based(identifier: str, other: Callable[[float], float]) -> None:
    """Frequencies of another base, made of the right one."""
    fault(identifier, "inverse_frequencies")(
        lambda like, width, base: inverse_frequencies(like, width, other(base))
    )


based("sinusoidal-exponent-sign", lambda base: 1.0 / base)
based("sinusoidal-base-1000", lambda base: 1000.0)
based("sinusoidal-logarithm-to-ten", lambda base: math.exp(math.log10(base)))

fault("sinusoidal-degrees", "position_angles")(in_degrees)
fault("sinusoidal-angles-in-bfloat16", "position_angles")(angles_in(FORMATS["bfloat16"]))


@fault("sinusoidal-integer-division", "position_angles")
def integer_division(positions: Array, width: int, base: float) -> Array:
    # Plain numbers: a divisor that is off by a rounding would move quotients by a whole.
    divisors = base ** (np.arange(0, width, 2) / width)
    return m.constant(positions.value[..., None] // divisors, positions)


def placed(identifier: str, rows: Rows) -> None:
    """Other positions are encoded: `rows(positions given, their shape, limit)`."""
    fault(identifier, "row_positions")(as_array(rows))


placed(
    "sinusoidal-positions-ignored",
    lambda p, shape, limit: np.broadcast_to(np.arange(shape[-1]), shape),
)
placed("sinusoidal-positions-from-one", lambda p, shape, limit: p + 1)
placed("sinusoidal-positions-relative", lambda p, shape, limit: p - p[..., :1])
placed("sinusoidal-positions-sorted", lambda p, shape, limit: in_order(p))
placed("sinusoidal-positions-as-bytes", lambda p, shape, limit: p.astype(np.uint8))
placed("sinusoidal-positions-of-first-row", lambda p, shape, limit: np.broadcast_to(p[:1], p.shape))
placed("sinusoidal-positions-normalised", lambda p, shape, limit: p / limit)
placed("sinusoidal-last-position-clamped", lambda p, shape, limit: np.minimum(p, limit - 2))
placed("sinusoidal-stays-flat", lambda p, shape, limit: p.reshape(-1))
placed("sinusoidal-whole-table", lambda p, shape, limit: np.arange(limit))
placed(
    "sinusoidal-table-one-short",
    refusing(row_positions, lambda p, shape, limit: beyond(p, limit - 1)),
)
placed("sinusoidal-vector-only", refusing(row_positions, lambda p, shape, limit: p.ndim != 1))


def encoding(identifier: str, encode: Callable[[Array, int, int], tuple[Array, Array]]) -> None:
    """Other angles of sines and of cosines: `encode(positions, width, limit)`."""

    def instead(
        *, d_model: int, max_seq_len: int, token_positions: Any, arithmetic: Arithmetic
    ) -> Array:
        rows = row_positions(token_positions, np.shape(token_positions), max_seq_len)
        positions = m.fresh(rows, FLOAT32, arithmetic)
        of_sines, of_cosines = encode(positions, d_model, max_seq_len)
        return joined_pairs(m.sin(of_sines), m.cos(of_cosines))

    fault(identifier)(instead)


def limit_as_base(positions: Array, width: int, limit: int) -> tuple[Array, Array]:
    """Angles whose base is the longest sequence."""
    angles = position_angles(positions, width, float(limit))
    return angles, angles


def slower_cosines(positions: Array, width: int, limit: int) -> tuple[Array, Array]:
    """Frequencies that fall from feature to feature."""
    angles = position_angles(positions, width, BASE)
    return angles, angles * BASE ** (-1.0 / width)


encoding("sinusoidal-base-is-limit", limit_as_base)
encoding("sinusoidal-exponent-per-feature", slower_cosines)


def around(identifier: str, change: Callable[[Array], Array]) -> None:
    """The right encoding, changed afterwards."""

    def instead(
        *, d_model: int, max_seq_len: int, token_positions: Any, arithmetic: Arithmetic
    ) -> Array:
        right = sinusoidal(
            d_model=d_model,
            max_seq_len=max_seq_len,
            token_positions=token_positions,
            arithmetic=arithmetic,
        )
        return change(right)

    fault(identifier)(instead)


around("sinusoidal-scaled-by-root-width", lambda y: y * y.shape[-1] ** 0.5)
around("sinusoidal-drops-size-one-axes", squeezed)
