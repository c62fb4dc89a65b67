"""The transformer language model, exactly as defined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.components.embedding.oracle import embedding
from conformance.components.linear.oracle import linear
from conformance.components.rmsnorm.oracle import rmsnorm
from conformance.components.transformer_block.oracle import EPS, Map, transformer_block
from conformance.definitions import piece
from conformance.numerics.array import Array


@piece
def transformer_lm(
    *,
    vocab_size: int,
    context_length: int,
    d_model: int,
    num_layers: int,
    num_heads: int,
    d_ff: int,
    rope_theta: float,
    weights: Mapping[str, Array],
    in_indices: Any,
) -> Array:
    """Logits of the token that follows each token.

    `in_indices` (..., seq); the result is (..., seq, vocab_size). Embedding, blocks 0 to
    num_layers - 1, final norm, linear head. Radford et al. 2018; course 3.1, 3.2 and 3.6.
    """

    def layer(number: int) -> Map:
        own = layer_weights(weights, number)
        return lambda x: transformer_block(
            d_model=d_model,
            num_heads=num_heads,
            d_ff=d_ff,
            max_seq_len=context_length,
            theta=rope_theta,
            weights=own,
            in_features=x,
        )

    table = weights["token_embeddings.weight"]
    x = embedding(vocab_size=vocab_size, d_model=d_model, weights=table, token_ids=in_indices)
    x = layer_stack(x, [layer(number) for number in layer_order(num_layers)])
    x = final_norm(x, final_gain(weights))
    return lm_head(x, head_weight(weights))


@piece
def layer_weights(weights: Mapping[str, Array], number: int) -> dict[str, Array]:
    """The weights of one block, without the prefix `layers.{number}.`."""
    prefix = f"layers.{number}."
    return {
        name.removeprefix(prefix): weight
        for name, weight in weights.items()
        if name.startswith(prefix)
    }


@piece
def layer_order(num_layers: int) -> Sequence[int]:
    """The numbers of the blocks in the order in which they run."""
    return range(num_layers)


@piece
def layer_stack(x: Array, layers: Iterable[Map]) -> Array:
    """The stream after all blocks, each of which continues what the one before it leaves."""
    for layer in layers:
        x = layer(x)
    return x


@piece
def final_norm(x: Array, gain: Array) -> Array:
    """The norm between the last block and the head."""
    return rmsnorm(d_model=x.shape[-1], eps=EPS, weights=gain, in_features=x)


@piece
def final_gain(weights: Mapping[str, Array]) -> Array:
    """The gain of the final norm."""
    return weights["ln_final.weight"]


@piece
def lm_head(x: Array, weight: Array) -> Array:
    """(..., seq, d_model) to logits (..., seq, vocab_size)."""
    return linear(d_in=x.shape[-1], d_out=weight.shape[0], weights=weight, in_features=x)


@piece
def head_weight(weights: Mapping[str, Array]) -> Array:
    """The weight of the head, (vocab_size, d_model)."""
    return weights["lm_head.weight"]
