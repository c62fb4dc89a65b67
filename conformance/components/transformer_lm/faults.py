"""What people write instead of the model: its layers, final norm, head, and what it answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from conformance.components.embedding.oracle import embedding
from conformance.components.softmax.oracle import softmax
from conformance.components.transformer_block.faults import normalised, ones
from conformance.components.transformer_block.oracle import EPS, Map
from conformance.components.transformer_lm.oracle import (
    final_gain,
    final_norm,
    head_weight,
    lm_head,
    transformer_lm,
)
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array

MISTAKES = Mistakes("transformer_lm")
fault = MISTAKES.fault

Weights = Mapping[str, Array]


def bare(x: Array) -> Array:
    """RMSNorm without a gain."""
    return normalised(x, ones(x.shape[-1], x), EPS)


fault("lm-layers-sorted-as-text", "layer_order")(lambda n: sorted(range(n), key=str))
fault("lm-last-layer-skipped", "layer_order")(lambda n: range(n - 1))
fault("lm-first-layer-skipped", "layer_order")(lambda n: range(1, n))
fault("lm-layers-reversed", "layer_order")(lambda n: range(n)[::-1])
fault("lm-first-layer-repeated", "layer_order")(lambda n: [0] * n)
fault("lm-last-layer-repeated", "layer_order")(lambda n: [n - 1] * n)
fault("lm-layers-twice", "layer_order")(lambda n: [*range(n), *range(n)])
fault("lm-at-most-two-layers", "layer_order")(lambda n: range(min(n, 2)))
fault("lm-at-most-ten-layers", "layer_order")(lambda n: [int(str(i)[0]) for i in range(n)])


fault("lm-embedding-normalised", "embedding")(lambda **arguments: bare(embedding(**arguments)))


def between(change: Callable[[Array, Array], Array]) -> Callable[[Array, Iterable[Map]], Array]:
    """The layers with `change(stream, embedding)` after each of them."""

    def stack(x: Array, layers: Iterable[Map]) -> Array:
        embedded = x
        for layer in layers:
            x = change(layer(x), embedded)
        return x

    return stack


fault("lm-embedding-added-to-every-layer", "layer_stack")(between(lambda x, start: x + start))
fault("lm-norm-between-layers", "layer_stack")(between(lambda x, _: bare(x)))
fault("lm-stream-detached-between-layers", "layer_stack")(between(lambda x, _: m.detach(x)))

fault("lm-norm-eps-large", "sublayer_norm")(lambda x, gain: normalised(x, gain, 0.1))

fault("lm-final-norm-missing", "final_norm")(lambda x, gain: x)
fault("lm-final-norm-twice", "final_norm")(lambda x, gain: final_norm(final_norm(x, gain), gain))


@fault("lm-final-layer-norm", "final_norm")
def final_layer_norm(x: Array, gain: Array) -> Array:
    wide = m.upcast(x)
    return final_norm(m.cast(wide - m.mean(wide), x.format), gain)


@fault("lm-final-gain-ignored", "final_gain")
def final_gain_ignored(weights: Weights) -> Array:
    right = final_gain(weights)
    return ones(right.shape[0], right)


@fault("lm-final-norm-of-last-layer", "final_gain")
def final_norm_of_last_layer(weights: Weights) -> Array:
    numbers = [int(name.split(".")[1]) for name in weights if name.startswith("layers.")]
    return weights[f"layers.{max(numbers)}.ln2.weight"] if numbers else final_gain(weights)


MISTAKES.combined(
    "lm-head-before-final-norm",
    final_norm=lambda x, gain: x,
    lm_head=lambda x, weight: bare(lm_head(x, weight)),
)


@fault("lm-tied-head", "head_weight")
def tied_head(weights: Weights) -> Array:
    return weights["token_embeddings.weight"]


@fault("lm-head-reinterpreted", "head_weight")
def head_reinterpreted(weights: Weights) -> Array:
    right = head_weight(weights)
    return m.reshape(m.swap(right), right.shape)


def changed(change: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    """The head with `change(logits)` after it."""
    return lambda x, weight: change(lm_head(x, weight))


fault("lm-softmax-on-logits", "lm_head")(changed(lambda y: softmax(in_features=y, dim=-1)))
fault("lm-log-softmax-on-logits", "lm_head")(changed(lambda y: y - m.log_sum_exp(y)))
fault("lm-logits-capped", "lm_head")(changed(lambda y: 5.0 * m.tanh(y / 5.0)))


@fault("lm-logits-scaled", "lm_head")
def logits_scaled(x: Array, weight: Array) -> Array:
    return lm_head(x, weight) / math.sqrt(x.shape[-1])


def answered(change: Callable[[Array], Array]) -> Callable[..., Array]:
    """The model with `change(logits)` as its answer."""
    return lambda **arguments: change(transformer_lm(**arguments))


fault("lm-last-position-only")(answered(lambda y: y[..., -1, :]))
fault("lm-logits-transposed")(answered(m.swap))
fault("lm-logits-flattened")(
    answered(lambda y: m.reshape(y, (math.prod(y.shape[:-1]), y.shape[-1])))
)
fault("lm-drops-size-one-axes")(
    answered(lambda y: m.reshape(y, tuple(length for length in y.shape if length != 1)))
)
fault("lm-logits-one-late")(answered(lambda y: y[..., np.roll(np.arange(y.shape[-2]), 1), :]))


@fault("lm-padded-to-context")
def padded_to_context(*, context_length: int, in_indices: Any, **more: Any) -> Array:
    ids = np.asarray(in_indices)
    missing = max(context_length - ids.shape[-1], 0)
    padded = np.pad(ids, [(0, 0)] * (ids.ndim - 1) + [(0, missing)])
    return transformer_lm(context_length=context_length, in_indices=padded, **more)


@fault("lm-batch-shares-first-sequence")
def batch_shares_first_sequence(*, in_indices: Any, **more: Any) -> Array:
    ids = np.asarray(in_indices)
    if ids.ndim == 1:  # there is no batch
        return transformer_lm(in_indices=ids, **more)
    first = transformer_lm(in_indices=ids[:1], **more)
    return m.broadcast_to(first, (len(ids), *first.shape[1:]))


def shaped(shape: Callable[[Any, int], Any]) -> Callable[..., Array]:
    """The model of `shape(ids, longest sequence)`."""

    def instead(*, context_length: int, in_indices: Any, **more: Any) -> Array:
        ids = shape(np.asarray(in_indices), context_length)
        return transformer_lm(context_length=context_length, in_indices=ids, **more)

    return instead


fault("lm-batch-of-one-only")(shaped(lambda ids, limit: ids.reshape(1, ids.shape[-1])))
fault("lm-ids-must-fill-context")(shaped(lambda ids, limit: ids.reshape(-1, limit)))

fault("lm-largest-id-asked-for")(
    refusing(transformer_lm, lambda in_indices, **more: not np.size(in_indices))
)
