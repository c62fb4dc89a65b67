"""Builders of the inputs on which mistakes in a transformer block show."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.components.multihead_self_attention.inputs import WEIGHTS, projections
from conformance.numerics.draw import Draw

Build = dict[str, Any]
ATTENTION = ("q_proj", "k_proj", "v_proj", "output_proj")
NAMES = (
    *(f"attn.{name}.weight" for name in ATTENTION),
    "ln1.weight",
    "ffn.w1.weight",
    "ffn.w2.weight",
    "ffn.w3.weight",
    "ln2.weight",
)


def gain(draw: Draw, size: int) -> np.ndarray:
    """A gain of norms (size,) that is neither 1 nor positive throughout."""
    return np.asarray(draw.uniform(size, low=0.5, high=1.5) * draw.signs(size))


def block_weights(draw: Draw, d_model: int, d_ff: int) -> Build:
    """The nine weights of a block, which keep the scale of their input, or nearly so."""
    attention = projections(draw, d_model)
    made = {
        f"attn.{name}.weight": attention[argument]
        for name, argument in zip(ATTENTION, WEIGHTS, strict=True)
    }
    return {
        **made,
        "ln1.weight": gain(draw, d_model),
        "ffn.w1.weight": draw.normal(d_ff, d_model, scale=d_model**-0.5),
        "ffn.w2.weight": draw.normal(d_model, d_ff, scale=1.5 * d_ff**-0.5),
        "ffn.w3.weight": draw.normal(d_ff, d_model, scale=d_model**-0.5),
        "ln2.weight": gain(draw, d_model),
    }


def arguments(
    draw: Draw,
    leading: tuple[int, ...],
    length: int,
    *,
    d_model: int = 12,
    num_heads: int = 3,
    d_ff: int = 20,
    max_seq_len: int = 9,
    theta: float = 50.5,
    scale: float = 1.0,
) -> Build:
    """Rows of size `scale` and the weights of a block."""
    return {
        "d_model": d_model,
        "num_heads": num_heads,
        "d_ff": d_ff,
        "max_seq_len": max_seq_len,
        "theta": theta,
        "weights": block_weights(draw, d_model, d_ff),
        "in_features": draw.normal(*leading, length, d_model, scale=scale),
    }


def plain(leading: tuple[int, ...], length: int, **sizes: Any) -> Any:
    """A builder of arguments of these sizes."""
    return lambda draw: arguments(draw, leading, length, **sizes)


def scaled(leading: tuple[int, ...], length: int, factors: Build, **sizes: Any) -> Any:
    """The same with some of the weights multiplied by a factor."""

    def build(draw: Draw) -> Build:
        made = arguments(draw, leading, length, **sizes)
        for name, factor in factors.items():
            made["weights"][name] = made["weights"][name] * factor
        return made

    return build


def tiny_stream(draw: Draw) -> Build:
    """Rows of 1e-1 to 1e-5 that stay small behind the attention: eps counts in both norms."""
    made = arguments(draw, (2,), 6)
    made["in_features"] *= np.array([1e-1, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5])[:, None]
    made["weights"]["attn.output_proj.weight"] *= 1e-3
    return made


def one_hot_gains(draw: Draw) -> Build:
    """Each norm lets its own half of the features through: exchanged or shared gains show."""
    made = arguments(draw, (2,), 4, d_model=8, num_heads=2, d_ff=10)
    made["weights"]["ln1.weight"] = np.repeat([2.0, 0.0], 4)
    made["weights"]["ln2.weight"] = np.repeat([0.0, 0.5], 4)
    return made


def later_tokens_dominate(draw: Draw) -> Build:
    """Later tokens point elsewhere and attract all attention."""
    made = arguments(draw, (2,), 5, d_model=8, num_heads=2, d_ff=10)
    made["in_features"] *= 2.0 ** np.arange(5)[:, None] / 4
    return made


def shuffled(build: Any) -> Any:
    """The same arguments with the dictionary of weights in another order."""

    def shuffle(draw: Draw) -> Build:
        made = build(draw)
        names = list(made["weights"])
        order = draw.permutation(len(names))
        return {**made, "weights": {names[i]: made["weights"][names[i]] for i in order}}

    return shuffle


def rows_of_all_magnitudes(draw: Draw) -> Build:
    """Rows from 1e-2 to 1e4."""
    made = arguments(draw, (2,), 5)
    made["in_features"] *= np.array([1e4, 1.0, 1e-2, 1e2, 1e3])[:, None]
    return made
