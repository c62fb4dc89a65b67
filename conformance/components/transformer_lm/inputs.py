"""Builders of the inputs on which mistakes in the language model show."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.components.transformer_block.inputs import NAMES, block_weights, gain
from conformance.numerics.draw import Draw

Build = dict[str, Any]


def names(num_layers: int) -> tuple[str, ...]:
    """Names of all weights of a model, as `weights.<name>`."""
    blocks = [f"layers.{i}.{name}" for i in range(num_layers) for name in NAMES]
    whole = ("token_embeddings.weight", *blocks, "ln_final.weight", "lm_head.weight")
    return tuple(f"weights.{name}" for name in whole)


def model_weights(draw: Draw, vocab_size: int, d_model: int, num_layers: int, d_ff: int) -> Build:
    """All weights of a model; every layer has others."""
    made = {"token_embeddings.weight": draw.normal(vocab_size, d_model)}
    for number in range(num_layers):
        block = block_weights(draw, d_model, d_ff)
        made |= {f"layers.{number}.{name}": weight for name, weight in block.items()}
    made["ln_final.weight"] = gain(draw, d_model)
    made["lm_head.weight"] = draw.normal(vocab_size, d_model, scale=d_model**-0.5)
    return made


def arguments(
    draw: Draw,
    batch: int,
    length: int,
    *,
    vocab_size: int = 37,
    context_length: int = 16,
    d_model: int = 12,
    num_layers: int = 2,
    num_heads: int = 3,
    d_ff: int = 20,
    rope_theta: float = 50.5,
) -> Build:
    """Token ids and the weights of a model."""
    return {
        "vocab_size": vocab_size,
        "context_length": context_length,
        "d_model": d_model,
        "num_layers": num_layers,
        "num_heads": num_heads,
        "d_ff": d_ff,
        "rope_theta": rope_theta,
        "weights": model_weights(draw, vocab_size, d_model, num_layers, d_ff),
        "in_indices": draw.integers(0, vocab_size, batch, length),
    }


def plain(batch: int, length: int, **sizes: Any) -> Any:
    """A builder of arguments of these sizes."""
    return lambda draw: arguments(draw, batch, length, **sizes)


def scaled(batch: int, length: int, factors: Build, **sizes: Any) -> Any:
    """The same with every weight whose name ends in a key of `factors` multiplied by its value."""

    def build(draw: Draw) -> Build:
        made = arguments(draw, batch, length, **sizes)
        for name in made["weights"]:
            for ending, factor in factors.items():
                if name.endswith(ending):
                    made["weights"][name] = made["weights"][name] * factor
        return made

    return build


def with_ids(ids: Any, **sizes: Any) -> Any:
    """A builder of arguments with these token ids."""
    tokens = np.asarray(ids, dtype=np.int64)
    return lambda draw: {**arguments(draw, *tokens.shape, **sizes), "in_indices": tokens}


def ids_of_shape(*shape: int, **sizes: Any) -> Any:
    """A builder of arguments with token ids of any shape (..., seq)."""

    def build(draw: Draw) -> Build:
        made = arguments(draw, 1, 1, **sizes)
        return {**made, "in_indices": draw.integers(0, made["vocab_size"], *shape)}

    return build


def unlike_layers(draw: Draw) -> Build:
    """Layers whose feed-forward networks differ in magnitude: a wrong order shows at a glance."""
    made = arguments(draw, 2, 4, num_layers=3, d_model=8, num_heads=2, d_ff=6)
    for number, factor in enumerate((0.5, 4.0, 1.5)):
        made["weights"][f"layers.{number}.ffn.w2.weight"] *= factor
    return made


def uneven_final_gain(draw: Draw) -> Build:
    """A final gain from 1/8 to 8."""
    made = arguments(draw, 2, 5)
    made["weights"]["ln_final.weight"] = draw.signs(12) * 2.0 ** (draw.permutation(12) % 7 - 3)
    return made
