"""The sinusoidal position encoding, exactly as defined."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.components.rope.oracle import joined_pairs, position_angles, row_positions
from conformance.definitions import piece
from conformance.numerics import array as m
from conformance.numerics.arithmetic import Arithmetic
from conformance.numerics.array import Array
from conformance.numerics.dtypes import FLOAT32

BASE = 10000.0


@piece
def sinusoidal(
    *, d_model: int, max_seq_len: int, token_positions: Any, arithmetic: Arithmetic
) -> Array:
    """`sin(p / 10000^(2i/d_model))` at feature 2i, the cosine of the same angle at 2i+1.

    `token_positions` integers (...), each below `max_seq_len`, which changes nothing else; the
    result is float32 (..., d_model). Vaswani et al. 2017, section 3.5.
    """
    rows = row_positions(token_positions, np.shape(token_positions), max_seq_len)
    positions = m.fresh(rows, FLOAT32, arithmetic)
    angles = position_angles(positions, d_model, BASE)
    return joined_pairs(m.sin(angles), m.cos(angles))
