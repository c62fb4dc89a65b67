"""The embedding lookup, exactly as defined."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.definitions import piece
from conformance.numerics import array as m
from conformance.numerics.array import Array


@piece
def embedding(*, vocab_size: int, d_model: int, weights: Array, token_ids: Any) -> Array:
    """Row `token_ids` of the table, unchanged.

    `weights` (vocab_size, d_model), `token_ids` integers (...) from 0 to vocab_size - 1; the result
    is (..., d_model). Course 3.4.3.
    """
    return m.take(weights, row_numbers(token_ids, weights))


@piece
def row_numbers(token_ids: Any, weights: Array) -> Any:
    """Which row of the table each id stands for: the one with that number."""
    return np.asarray(token_ids)
