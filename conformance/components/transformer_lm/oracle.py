"""The transformer language model, exactly as defined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.components.embedding.oracle import embedding
from conformance.components.linear.oracle import linear
from conformance.components.rmsnorm.oracle import rmsnorm
from conformance.components.transformer_block.oracle import EPS, transformer_block
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
    table = weights["token_embeddings.weight"]
    x = embedding(vocab_size=vocab_size, d_model=d_model, weights=table, token_ids=in_indices)
    for number in range(num_layers):
        x = transformer_block(
            d_model=d_model,
            num_heads=num_heads,
            d_ff=d_ff,
            max_seq_len=context_length,
            theta=rope_theta,
            weights=layer_weights(weights, number),
            in_features=x,
        )
    x = rmsnorm(d_model=d_model, eps=EPS, weights=weights["ln_final.weight"], in_features=x)
    head = weights["lm_head.weight"]
    return linear(d_in=d_model, d_out=vocab_size, weights=head, in_features=x)


@piece
def layer_weights(weights: Mapping[str, Array], number: int) -> dict[str, Array]:
    """The weights of one block, without the prefix `layers.{number}.`."""
    prefix = f"layers.{number}."
    return {
        name.removeprefix(prefix): weight
        for name, weight in weights.items()
        if name.startswith(prefix)
    }
