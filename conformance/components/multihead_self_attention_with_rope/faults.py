"""What people write instead of the definition of multi-head self-attention with rope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conformance.components.multihead_self_attention.faults import samples
from conformance.components.multihead_self_attention.oracle import (
    Heads,
    join_heads,
    multihead_self_attention,
    split_heads,
)
from conformance.components.multihead_self_attention_with_rope.oracle import (
    multihead_self_attention_with_rope,
    positions_of_heads,
    rotated_heads,
    rotated_rows,
)
from conformance.definitions import replaced
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.numerics.dtypes import FORMATS, round_to

MISTAKES = Mistakes("multihead_self_attention_with_rope")
fault = MISTAKES.fault

# --- what is rotated ----------------------------------------------------------------------------

fault("mha-rope-rope-missing", "rotated_heads")(
    lambda heads, positions, theta, max_seq_len: heads,
)


@fault("mha-rope-rope-on-queries-only", "rotated_heads")
def on_queries_only(heads: Heads, positions: np.ndarray, theta: float, limit: int) -> Heads:
    return rotated_rows(heads[0], positions, theta, limit), heads[1], heads[2]


@fault("mha-rope-rope-on-keys-only", "rotated_heads")
def on_keys_only(heads: Heads, positions: np.ndarray, theta: float, limit: int) -> Heads:
    return heads[0], rotated_rows(heads[1], positions, theta, limit), heads[2]


@fault("mha-rope-rope-on-values-too", "rotated_heads")
def on_values_too(heads: Heads, positions: np.ndarray, theta: float, limit: int) -> Heads:
    q, k, v = rotated_heads(heads, positions, theta, limit)
    return q, k, rotated_rows(v, positions, theta, limit)


@fault("mha-rope-rope-keys-turned-back", "rotated_heads")
def keys_turned_back(heads: Heads, positions: np.ndarray, theta: float, limit: int) -> Heads:
    q, _, v = rotated_heads(heads, positions, theta, limit)
    return q, rotated_rows(heads[1], -positions, theta, limit), v


@fault("mha-rope-rope-queries-one-ahead", "rotated_heads")
def queries_one_ahead(heads: Heads, positions: np.ndarray, theta: float, limit: int) -> Heads:
    _, k, v = rotated_heads(heads, positions, theta, limit)
    return rotated_rows(heads[0], positions + 1, theta, limit), k, v


@fault("mha-rope-mask-of-full-length", "rotated_heads")
def mask_of_full_length(heads: Heads, positions: np.ndarray, theta: float, limit: int) -> Heads:
    """The rotation is where the length of the sequence meets that of the longest one."""
    if heads[0].shape[-2] != limit:
        raise ValueError("a mask of another length than the sequence")
    return rotated_heads(heads, positions, theta, limit)


# --- over which width ---------------------------------------------------------------------------


@fault("mha-rope-rope-over-whole-width", "rotated_rows")
def over_whole_width(x: Array, positions: np.ndarray, theta: float, limit: int) -> Array:
    num_heads = x.shape[-3]
    of_tokens = positions[..., 0, :] if positions.ndim > 1 else positions
    return split_heads(rotated_rows(join_heads(x), of_tokens, theta, limit), num_heads)


@fault("mha-rope-rope-frequencies-of-model-width", "rotated_rows")
def frequencies_of_model_width(x: Array, positions: np.ndarray, theta: float, limit: int) -> Array:
    """A row continued by zeros up to the width of the model turns like one of that width."""
    num_heads, d_k = x.shape[-3], x.shape[-1]
    parts = [x, *(x * 0.0 for _ in range(num_heads - 1))]
    wide = m.reshape(m.stack(parts, axis=-2), (*x.shape[:-1], num_heads * d_k))
    return rotated_rows(wide, positions, theta, limit)[..., :d_k]


# --- which positions ----------------------------------------------------------------------------

fault("mha-rope-positions-meet-heads", "positions_of_heads")(
    lambda token_positions, length: (
        np.arange(length) if token_positions is None else np.asarray(token_positions)
    )
)


fault("mha-rope-positions-required", "positions_of_heads")(
    refusing(positions_of_heads, lambda token_positions, length: token_positions is None)
)


def repeated_for_samples(heads: Heads, positions: np.ndarray, theta: float, limit: int) -> Heads:
    """Positions (batch, seq) that meet (batch, heads, seq)."""
    of_tokens = positions[..., 0, :] if positions.ndim > 1 else positions
    repeated = of_tokens + np.zeros((samples(heads[0]), 1), dtype=np.int64)
    return rotated_heads(heads, repeated, theta, limit)


@fault("mha-rope-positions-meet-heads-crash")
def positions_meet_heads(*, token_positions: Any = None, **others: Any) -> Array:
    pieces = {} if token_positions is None else {"rotated_heads": repeated_for_samples}
    with replaced(pieces):
        return multihead_self_attention_with_rope(token_positions=token_positions, **others)


@fault("mha-rope-default-positions-meet-heads")
def default_positions_meet_heads(*, token_positions: Any = None, **others: Any) -> Array:
    pieces = {"rotated_heads": repeated_for_samples} if token_positions is None else {}
    with replaced(pieces):
        return multihead_self_attention_with_rope(token_positions=token_positions, **others)


@fault("mha-rope-angles-in-bfloat16", "positions_of_heads")
def positions_in_bfloat16(token_positions: Any, length: int) -> np.ndarray:
    """Positions are what suffers most: frequencies have no large numbers to lose."""
    positions = positions_of_heads(token_positions, length)
    return round_to(positions, FORMATS["bfloat16"]).astype(np.int64)


# --- the whole ----------------------------------------------------------------------------------


@fault("mha-rope-causal-by-position")
def causal_by_position(*, token_positions: Any = None, **others: Any) -> Array:
    at = positions_of_heads(token_positions, others["in_features"].shape[-2])
    visible = at[..., :, None] >= at[..., None, :]
    with replaced({"causal_mask": lambda length: visible}):
        return multihead_self_attention_with_rope(token_positions=token_positions, **others)


@fault("mha-rope-batch-as-one-sequence")
def batch_as_one_sequence(
    *, in_features: Array, token_positions: Any = None, **others: Any
) -> Array:
    """As one sequence the tokens stand at 0, 1, 2, ... throughout the batch."""
    tokens = m.reshape(in_features, (-1, in_features.shape[-1]))
    result = multihead_self_attention_with_rope(in_features=tokens, **others)
    return m.reshape(result, in_features.shape)


@fault("mha-rope-rotated-before-projection")
def rotated_before_projection(*, in_features: Array, **others: Any) -> Array:
    turned = rotated_tokens(in_features, others)
    return multihead_self_attention(in_features=turned, **plain(others))


@fault("mha-rope-rotated-after-attention")
def rotated_after_attention(**arguments: Any) -> Array:
    return rotated_tokens(multihead_self_attention(**plain(arguments)), arguments)


def rotated_tokens(x: Array, arguments: Mapping[str, Any]) -> Array:
    """Tokens (..., seq, d_model) turned as a whole, by the positions as they are given."""
    given = arguments.get("token_positions")
    positions = np.arange(x.shape[-2]) if given is None else np.asarray(given)
    return rotated_rows(x, positions, arguments["theta"], arguments["max_seq_len"])


def plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without those that only the rotation takes."""
    rotary = ("theta", "max_seq_len", "token_positions")
    return {name: value for name, value in arguments.items() if name not in rotary}
