"""What people write instead of the lookup."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.embedding.oracle import embedding, row_numbers
from conformance.components.sinusoidal.oracle import sinusoidal
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.numerics.dtypes import FORMATS, round_to

MISTAKES = Mistakes("embedding")
fault = MISTAKES.fault


def rows(change: Callable[[Array], Array]) -> Callable[..., Array]:
    """The lookup with `change(rows)` as its answer."""
    return lambda **arguments: change(embedding(**arguments))


def table(change: Callable[[Array], Array]) -> Callable[..., Array]:
    """The lookup in `change(table)`."""
    return lambda *, weights, **more: embedding(weights=change(weights), **more)


def renumbered(change: Callable[[Any], Any]) -> Callable[[Any, Array], Any]:
    """Rows with the numbers `change(ids)`."""
    return lambda token_ids, weights: change(np.asarray(token_ids))


fault("embedding-next-row", "row_numbers")(lambda ids, w: (np.asarray(ids) + 1) % w.shape[0])
fault("embedding-previous-row", "row_numbers")(lambda ids, w: (np.asarray(ids) - 1) % w.shape[0])
fault("embedding-modulo-width", "row_numbers")(lambda ids, w: np.asarray(ids) % w.shape[1])
fault("embedding-last-id-clamped", "row_numbers")(lambda ids, w: np.minimum(ids, w.shape[0] - 2))

fault("embedding-ids-as-bytes", "row_numbers")(renumbered(lambda ids: ids % 256))
fault("embedding-ids-through-bfloat16", "row_numbers")(
    renumbered(lambda ids: round_to(ids, FORMATS["bfloat16"]).astype(np.int64))
)
fault("embedding-first-batch-row-for-all", "row_numbers")(
    renumbered(lambda ids: np.broadcast_to(ids[:1], ids.shape))
)
fault("embedding-stays-flat", "row_numbers")(renumbered(lambda ids: ids.reshape(-1)))


@fault("embedding-rows-in-sorted-order", "row_numbers")
@renumbered
def rows_in_sorted_order(ids: Any) -> Any:
    return np.sort(ids, axis=-1) if ids.ndim else ids


def too_narrow(token_ids: Any, weights: Array) -> bool:
    """Whether rows as wide as the largest id do not meet the table."""
    ids = np.asarray(token_ids)
    return not ids.size or bool(ids.max() + 1 != weights.shape[0])


fault("embedding-one-hot-too-narrow", "row_numbers")(refusing(row_numbers, too_narrow))
fault("embedding-two-axes-only", "row_numbers")(
    refusing(row_numbers, lambda token_ids, weights: np.ndim(token_ids) != 2)
)

fault("embedding-table-transposed")(table(m.swap))
fault("embedding-table-reinterpreted")(table(lambda w: m.swap(m.reshape(w, w.shape[::-1]))))
fault("embedding-table-detached")(table(m.detach))
fault("embedding-table-in-dtype-of-ids")(table(lambda w: m.constant(np.trunc(w.value), w)))

fault("embedding-scaled-by-root-width")(rows(lambda y: y * math.sqrt(y.shape[-1])))
fault("embedding-scaled-slightly")(rows(lambda y: y * 1.004))


@fault("embedding-drops-size-one-axes")
@rows
def drops_size_one_axes(y: Array) -> Array:
    return m.reshape(y, tuple(length for length in y.shape if length != 1))


def lengths(y: Array, least: float) -> Array:
    """Euclidean length of every row, `least` where it is shorter."""
    squares = m.total(m.square(y))
    return m.sqrt(m.where(squares.value > least * least, squares, least * least))


@fault("embedding-rows-normalised")
@rows
def rows_normalised(y: Array) -> Array:
    return y / lengths(y, 1e-12)


@fault("embedding-rows-scaled-in-place")
@rows
def rows_scaled_in_place(y: Array) -> Array:
    still = m.detach(y)
    length = lengths(still, 1e-12)
    return m.where(length.value > 1.0, still / (length + 1e-7), still)


@fault("embedding-positions-added")
@rows
def positions_added(y: Array) -> Array:
    *_, length, width = y.shape  # a single id has no place in a sequence
    encoded = sinusoidal(
        d_model=width,
        max_seq_len=length,
        token_positions=np.arange(length),
        arithmetic=y.arithmetic,
    )
    return y + encoded


def zeros(token_ids: Any) -> Any:
    """Where the id is 0, to meet rows."""
    return (np.asarray(token_ids) == 0)[..., None]


@fault("embedding-zero-is-padding")
def zero_is_padding(*, token_ids: Any, **more: Any) -> Array:
    found = embedding(token_ids=token_ids, **more)
    return m.where(~zeros(token_ids), found, 0.0)


@fault("embedding-padding-gets-no-gradient")
def padding_gets_no_gradient(*, token_ids: Any, **more: Any) -> Array:
    found = embedding(token_ids=token_ids, **more)
    return m.where(~zeros(token_ids), found, m.detach(found))


@fault("embedding-repeated-ids-counted-once")
def repeated_ids_counted_once(*, token_ids: Any, **more: Any) -> Array:
    """The place that comes last is the one whose gradient stays."""
    found = embedding(token_ids=token_ids, **more)
    ids = np.asarray(token_ids)
    backwards = ids.reshape(-1)[::-1]
    last = np.zeros(ids.size, dtype=bool)
    last[ids.size - 1 - np.unique(backwards, return_index=True)[1]] = True
    return m.where(last.reshape(*ids.shape, 1), found, m.detach(found))
