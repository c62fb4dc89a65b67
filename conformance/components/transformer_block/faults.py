"""What people write instead of the block: its wiring, its norms, the weights it hands on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from conformance.components.rmsnorm.oracle import rmsnorm
from conformance.components.transformer_block.oracle import (
    Map,
    attention_stage,
    feed_forward_stage,
    norm_gains,
    projection_weights,
    transformer_block,
)
from conformance.diagnosis.catalogue import Mistakes
from conformance.numerics import array as m
from conformance.numerics.array import Array

MISTAKES = Mistakes("transformer_block")
fault = MISTAKES.fault

Weights = Mapping[str, Array]

MISTAKES.combined(
    "block-post-norm",
    attention_stage=lambda x, norm, attend: norm(x + attend(x)),
    feed_forward_stage=lambda x, norm, feed: norm(x + feed(x)),
)

MISTAKES.combined(
    "block-sublayer-output-normalised",
    attention_stage=lambda x, norm, attend: x + norm(attend(x)),
    feed_forward_stage=lambda x, norm, feed: x + norm(feed(x)),
)


def without_residual(x: Array, norm: Map, sublayer: Map) -> Array:
    """What the sublayer gives, alone."""
    return sublayer(norm(x))


fault("block-first-residual-missing", "attention_stage")(without_residual)
fault("block-second-residual-missing", "feed_forward_stage")(without_residual)
fault("block-residuals-missing", "attention_stage", "feed_forward_stage")(without_residual)


def residual_normalised(x: Array, norm: Map, sublayer: Map) -> Array:
    """The sublayer's result, added to what the sublayer has seen."""
    normalised = norm(x)
    return normalised + sublayer(normalised)


fault("block-first-residual-normalised", "attention_stage")(residual_normalised)
fault("block-second-residual-normalised", "feed_forward_stage")(residual_normalised)


def norm_missing(x: Array, norm: Map, sublayer: Map) -> Array:
    """A sublayer that sees the stream as it is."""
    return x + sublayer(x)


fault("block-first-norm-missing", "attention_stage")(norm_missing)
fault("block-second-norm-missing", "feed_forward_stage")(norm_missing)


@fault("block-second-residual-from-input", "block_wiring")
def second_residual_from_input(x: Array, norm1: Map, attend: Map, norm2: Map, feed: Map) -> Array:
    return x + feed(norm2(attention_stage(x, norm1, attend)))


@fault("block-input-added-twice", "block_wiring")
def input_added_twice(x: Array, norm1: Map, attend: Map, norm2: Map, feed: Map) -> Array:
    return x + feed_forward_stage(attention_stage(x, norm1, attend), norm2, feed)


@fault("block-parallel", "block_wiring")
def parallel(x: Array, norm1: Map, attend: Map, norm2: Map, feed: Map) -> Array:
    return attention_stage(x, norm1, attend) + feed(norm2(x))


@fault("block-feed-forward-first", "block_wiring")
def feed_forward_first(x: Array, norm1: Map, attend: Map, norm2: Map, feed: Map) -> Array:
    return attention_stage(feed_forward_stage(x, norm2, feed), norm1, attend)


def left_out(x: Array, norm: Map, sublayer: Map) -> Array:
    """The stream goes past the sublayer."""
    return x


fault("block-feed-forward-missing", "feed_forward_stage")(left_out)
fault("block-attention-missing", "attention_stage")(left_out)


@fault("block-output-normalised", "block_wiring")
def output_normalised(x: Array, norm1: Map, attend: Map, norm2: Map, feed: Map) -> Array:
    return norm2(feed_forward_stage(attention_stage(x, norm1, attend), norm2, feed))


@fault("block-residual-scaled", "attention_stage", "feed_forward_stage")
def residual_scaled(x: Array, norm: Map, sublayer: Map) -> Array:
    return x + 0.5 * sublayer(norm(x))


@fault("block-sum-divided-by-root-two", "attention_stage", "feed_forward_stage")
def sum_divided_by_root_two(x: Array, norm: Map, sublayer: Map) -> Array:
    return (x + sublayer(norm(x))) / math.sqrt(2.0)


@fault("block-attention-sees-normalised-twice", "attention_stage")
def attention_sees_normalised_twice(x: Array, norm: Map, attend: Map) -> Array:
    return x + attend(norm(norm(x)))


@fault("block-residual-detached", "feed_forward_stage")
def residual_detached(x: Array, norm: Map, feed: Map) -> Array:
    return m.detach(x) + feed(norm(x))


@fault("block-attention-without-gradient", "attention_stage")
def attention_without_gradient(x: Array, norm: Map, attend: Map) -> Array:
    return x + m.detach(attend(norm(x)))


@fault("block-drops-size-one-axes")
def drops_size_one_axes(**arguments: Any) -> Array:
    result = transformer_block(**arguments)
    return m.reshape(result, tuple(length for length in result.shape if length != 1))


@fault("block-batch-of-one-only")
def batch_of_one_only(*, in_features: Array, **others: Any) -> Array:
    one = m.reshape(in_features, (1, *in_features.shape[-2:]))
    return transformer_block(in_features=one, **others)


def normalised(x: Array, gain: Array, eps: float) -> Array:
    """RMSNorm with any eps."""
    return rmsnorm(d_model=x.shape[-1], eps=eps, weights=gain, in_features=x)


def ones(width: int, like: Array) -> Array:
    """A gain that changes nothing."""
    return m.constant(np.ones(width), like)


fault("block-eps-1e-6", "sublayer_norm")(lambda x, gain: normalised(x, gain, 1e-6))
fault("block-eps-1e-3", "sublayer_norm")(lambda x, gain: normalised(x, gain, 1e-3))


@fault("block-first-norm-shared", "norm_gains")
def first_norm_shared(weights: Weights) -> tuple[Array, Array]:
    first, _ = norm_gains(weights)
    return first, first


@fault("block-norms-swapped", "norm_gains")
def norms_swapped(weights: Weights) -> tuple[Array, Array]:
    first, second = norm_gains(weights)
    return second, first


@fault("block-gains-ignored", "norm_gains")
def gains_ignored(weights: Weights) -> tuple[Array, Array]:
    first, second = norm_gains(weights)
    return ones(first.shape[0], first), ones(second.shape[0], second)


@fault("block-one-projection-for-all", "projection_weights")
def one_projection_for_all(weights: Weights) -> tuple[Array, Array, Array, Array]:
    q, _, _, o = projection_weights(weights)
    return q, q, q, o
