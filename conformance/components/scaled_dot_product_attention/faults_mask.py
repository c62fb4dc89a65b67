"""What people write instead of the mask of scaled dot-product attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.components.scaled_dot_product_attention.oracle import (
    attention_weights,
    scaled_dot_product_attention,
    seen_keys,
    softmax_over_keys,
    without_hidden,
)
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array

MISTAKES = Mistakes("scaled_dot_product_attention")
fault = MISTAKES.fault
Shape = tuple[int, ...]


def up_to_diagonal(shape: Shape) -> np.ndarray:
    """(queries, keys), True where the key does not come later than the query."""
    queries, keys = shape[-2:]
    return np.arange(queries)[:, None] >= np.arange(keys)


def altered(
    identifier: str, change: Callable[[np.ndarray, Shape], np.ndarray | None]
) -> Callable[..., Any]:
    """Registers a change of the mask, given the shape of the scores; no mask stays no mask."""

    def seen_instead(mask: np.ndarray | None, shape: Shape) -> np.ndarray | None:
        return None if mask is None else change(mask, shape)

    return fault(identifier, "seen_keys")(seen_instead)  # type: ignore[no-any-return]


# --- another mask than the one that is given ----------------------------------------------------

altered("attention-mask-ignored", lambda mask, shape: None)

altered("attention-mask-inverted", lambda mask, shape: ~mask)

altered("attention-mask-transposed", lambda mask, shape: np.swapaxes(mask, -1, -2))

altered("attention-mask-from-first-query", lambda mask, shape: mask[..., :1, :])

altered(
    "attention-mask-from-first-sample",
    lambda mask, shape: mask[:1] if mask.ndim == len(shape) else mask,
)

altered(
    "attention-mask-from-first-head",
    lambda mask, shape: mask[..., :1, :, :] if mask.ndim == len(shape) > 2 else mask,
)

altered(
    "attention-mask-on-keys-only",
    lambda mask, shape: np.asarray(mask.all(axis=-2, keepdims=True)),
)

altered(
    "attention-mask-shifted",
    lambda mask, shape: np.concatenate((np.ones_like(mask[..., :1]), mask[..., :-1]), axis=-1),
)

altered("attention-causal-as-well", lambda mask, shape: mask & up_to_diagonal(shape))

fault("attention-none-means-causal", "seen_keys")(
    lambda mask, shape: up_to_diagonal(shape) if mask is None else mask
)

altered(
    "attention-single-query-unmasked",
    lambda mask, shape: None if shape[-2] == 1 else mask,
)

altered(
    "attention-square-masks-only",
    lambda mask, shape: mask if mask.shape[-1] == mask.shape[-2] else None,
)

altered(
    "attention-head-axis-added-square",
    lambda mask, shape: mask[:, None] if mask.ndim == 2 else mask,
)

altered("attention-head-axis-always-added", lambda mask, shape: np.expand_dims(mask, 1))

altered("attention-mask-viewed-as-scores", lambda mask, shape: mask.reshape(shape))

fault("attention-none-crashes", "seen_keys")(refusing(seen_keys, lambda mask, shape: mask is None))

# --- another way to hide ------------------------------------------------------------------------

fault("attention-mask-added-as-number", "without_hidden")(lambda scores, seen: scores + seen)

fault("attention-mask-multiplied", "without_hidden")(lambda scores, seen: scores * seen)

fault("attention-filled-with-zero", "without_hidden")(
    lambda scores, seen: m.where(seen, scores, 1e-9)
)

fault("attention-filled-with-minus-100", "without_hidden")(
    lambda scores, seen: m.where(seen, scores, -100.0)
)

fault("attention-filled-with-minus-1e4", "without_hidden")(
    lambda scores, seen: m.where(seen, scores, -1e4)
)

fault("attention-filled-with-minus-1e9", "without_hidden")(
    lambda scores, seen: m.where(seen, scores, -1e9)
)

fault("attention-added-minus-10", "without_hidden")(lambda scores, seen: scores - 10.0 * ~seen)

fault("attention-added-minus-1e4", "without_hidden")(lambda scores, seen: scores - 1e4 * ~seen)

fault("attention-zero-times-infinity", "without_hidden")(
    lambda scores, seen: scores + np.where(seen, np.nan, -np.inf)
)


@fault("attention-full-shape-only", "without_hidden")
def full_shape_only(scores: Array, seen: np.ndarray) -> Array:
    """A mask as an index stands for the first axes of the scores, not for the last ones."""
    if seen.shape != scores.shape[: seen.ndim]:
        raise ValueError("a mask of another shape than the scores")
    return without_hidden(scores, seen[(..., *[None] * (scores.ndim - seen.ndim))])


# --- hidden somewhere else than in the scores ---------------------------------------------------


@fault("attention-masked-after-softmax", "attention_weights")
def masked_after_softmax(scores: Array, seen: np.ndarray | None) -> Array:
    weights = softmax_over_keys(scores)
    return weights if seen is None else m.where(seen, weights, 0.0)


@fault("attention-maximum-over-hidden-keys", "attention_weights")
def maximum_over_hidden_keys(scores: Array, seen: np.ndarray | None) -> Array:
    """Powers are rounded to their format: those far below the maximum become 0 there."""
    powers = m.rounded(m.exp(scores - m.maximum(scores)), scores.format)
    kept = powers if seen is None else powers * seen
    return kept / m.total(kept)


@fault("attention-leak-through-small-weight", "attention_weights")
def leak_through_small_weight(scores: Array, seen: np.ndarray | None) -> Array:
    if seen is None:
        return softmax_over_keys(scores)
    return 0.99 * attention_weights(scores, seen) + 0.01 * softmax_over_keys(scores)


@fault("attention-values-masked")
def values_masked(*, Q: Array, K: Array, V: Array, mask: Any = None) -> Array:
    values = V if mask is None else V * np.asarray(mask)[..., -1, :, None]
    return scaled_dot_product_attention(Q=Q, K=K, V=values)


fault("attention-mask-row-of-each-query", "seen_keys")(
    refusing(seen_keys, lambda mask, shape: mask is not None and mask.shape[-2] < shape[-2])
)
