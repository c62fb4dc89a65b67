"""Inputs on which mistakes in the embedding lookup show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.embedding.oracle import embedding
from conformance.numerics.draw import Draw
from conformance.suite.case import Case
from conformance.suite.component import Component

HALF = ("bfloat16", "float16")
RANKS = ((4,), (2, 3), (2, 1, 3), (2, 1, 2, 2), (1, 2, 1, 2, 2))
"""Axes of ids, from one to five of them."""


def arguments(weights: Any, token_ids: Any) -> dict[str, Any]:
    """Keyword arguments for a float64 table and integer ids."""
    vocab_size, d_model = weights.shape
    ids = np.asarray(token_ids, dtype=np.int64)
    return {
        "vocab_size": vocab_size,
        "d_model": d_model,
        "weights": weights,
        "token_ids": ids,
    }


def _sized(vocab_size: int, d_model: int, *axes: int) -> Callable[[Draw], dict[str, Any]]:
    def build(draw: Draw) -> dict[str, Any]:
        ids = draw.integers(0, vocab_size, *axes)
        return arguments(draw.normal(vocab_size, d_model), ids)

    return build


def _chosen(vocab_size: int, d_model: int, ids: Any) -> Callable[[Draw], dict[str, Any]]:
    def build(draw: Draw) -> dict[str, Any]:
        return arguments(draw.normal(vocab_size, d_model), ids)

    return build


def _magnitudes(draw: Draw) -> dict[str, Any]:
    scales = 10.0 ** np.array([-30, -9, -3, 0, 2, 9, 30])
    return arguments(draw.normal(7, 4) * scales[:, None], draw.permutation(7))


def _int32(draw: Draw) -> dict[str, Any]:
    made = _sized(11, 5, 2, 3)(draw)
    return {**made, "token_ids": made["token_ids"].astype(np.int32)}


LARGE_IDS = (69_999, 255, 256, 257, 2049, 32_767, 32_768, 65_535, 65_536, 0)

CASES = (
    Case(
        "ordinary",
        "EMBEDDING-DEFINITION",
        "irregular ids in a batch: anything but the id as the row's number shows",
        _chosen(11, 5, [[7, 0, 9], [10, 4, 1]]),
        flags=("ordinary",),
    ),
    Case(
        "other-table",
        "EMBEDDING-DEFINITION",
        "the sizes of the ordinary case with another table and other ids: remembered ones show",
        _chosen(11, 5, [[1, 8, 3], [2, 7, 6]]),
        flags=("ordinary",),
    ),
    Case(
        "magnitudes",
        "EMBEDDING-EXACT",
        "rows from 1e-30 to 1e30: any scaling, clipping or rounding shows",
        _magnitudes,
        flags=("magnitudes",),
    ),
    Case(
        "first-and-last",
        "EMBEDDING-ID-RANGE",
        "the ids 0 and vocab_size - 1: off by one, clipping and reserved ids show",
        _chosen(9, 4, [[0, 8], [8, 0], [1, 7]]),
        flags=("borders",),
    ),
    Case(
        "large-ids",
        "EMBEDDING-ID-RANGE",
        "ids around powers of two up to 69999: types that cannot hold them show",
        _chosen(70_000, 1, LARGE_IDS),
        flags=("large-ids",),
        golden=False,
    ),
    Case(
        "repeated",
        "EMBEDDING-REPEATED-IDS",
        "three ids spread over twelve places",
        _chosen(8, 3, [[5, 5, 2, 5], [2, 0, 0, 5], [5, 2, 5, 5]]),
        flags=("repeated-ids",),
    ),
    Case(
        "one-token",
        "EMBEDDING-SIZES",
        "a vocabulary of one token",
        _chosen(1, 4, [[0, 0, 0]]),
        flags=("size-one",),
    ),
    Case(
        "one-feature",
        "EMBEDDING-SIZES",
        "vectors of one feature keep their axis",
        _sized(7, 1, 2, 3),
        flags=("size-one",),
    ),
    Case(
        "one-id",
        "EMBEDDING-SIZES",
        "a batch of one sequence of one id",
        _chosen(7, 3, [[4]]),
        flags=("size-one",),
    ),
    Case(
        "equal-axes",
        "EMBEDDING-SIZES",
        "batch = sequence = vocabulary = width: indexing along the wrong axis raises no error",
        _sized(4, 4, 4, 4),
        flags=("equal-axes",),
    ),
    Case(
        "wide",
        "EMBEDDING-SIZES",
        "more features than tokens",
        _sized(3, 10, 2, 4),
        flags=("wide",),
    ),
    *(
        Case(
            f"rank-{len(axes)}",
            "EMBEDDING-LEADING-AXES",
            f"ids of shape {axes}: all axes are kept, in order",
            _sized(9, 3, *axes),
            flags=("leading-axes",),
        )
        for axes in RANKS
    ),
    Case(
        "scalar",
        "EMBEDDING-SCALAR",
        "one id, no axis",
        _chosen(6, 3, 4),
        flags=("scalar",),
    ),
    Case(
        "empty",
        "EMBEDDING-EMPTY",
        "two sequences of no ids",
        _sized(6, 3, 2, 0),
        flags=("empty",),
    ),
    Case(
        "int32",
        "EMBEDDING-INT32",
        "the ordinary lookup with 32-bit ids",
        _int32,
        flags=("int32",),
        golden=False,
    ),
    Case(
        "weight-gradient",
        "EMBEDDING-WEIGHT-GRADIENT",
        "repeated ids: their gradients add up; rows that do not occur get zero",
        _chosen(8, 3, [[5, 5, 2, 5], [2, 0, 7, 5]]),
        flags=("weight-gradient", "repeated-ids"),
        wrt=("weights",),
    ),
    Case(
        "half",
        "EMBEDDING-HALF-VALUES",
        "a table in 16 bits: copying it needs no arithmetic, so nothing is rounded",
        _sized(9, 5, 2, 3),
        flags=("low-precision",),
        dtypes=HALF,
    ),
)

COMPONENT = Component(name="embedding", oracle=embedding, cases=CASES, parameters=("weights",))
