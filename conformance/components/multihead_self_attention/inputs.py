"""Builders of the inputs on which mistakes in multi-head attention show."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.numerics.draw import Draw

Build = dict[str, Any]
WEIGHTS = ("q_proj_weight", "k_proj_weight", "v_proj_weight", "o_proj_weight")
SHARPER = 1.5
"""Queries and keys are a little larger than their input, so that weights are far from even."""


def projections(draw: Draw, d_model: int) -> Build:
    """The four weights (d_model, d_model), which keep the scale of their input, or nearly so."""
    scale = d_model**-0.5
    sizes = (SHARPER * scale, SHARPER * scale, scale, scale)
    return {
        name: draw.normal(d_model, d_model, scale=size)
        for name, size in zip(WEIGHTS, sizes, strict=True)
    }


def signed_permutation(draw: Draw, size: int) -> np.ndarray:
    """A matrix that permutes features and flips some of their signs; not its own transpose."""
    order = np.roll(np.arange(size), 1 + int(draw.integers(0, max(size // 2 - 1, 1))))
    return np.asarray(np.eye(size)[order] * draw.signs(size))


def arguments(
    draw: Draw, leading: tuple[int, ...], length: int, d_model: int, num_heads: int
) -> Build:
    """Rows of order one, weights for `num_heads` heads."""
    return {
        "d_model": d_model,
        "num_heads": num_heads,
        **projections(draw, d_model),
        "in_features": draw.normal(*leading, length, d_model),
    }


def plain(leading: tuple[int, ...], length: int, d_model: int, num_heads: int) -> Any:
    """A builder of arguments of these sizes."""
    return lambda draw: arguments(draw, leading, length, d_model, num_heads)


def heads_visible(draw: Draw) -> Build:
    """With the identity as output projection the heads' results stand side by side."""
    return {**arguments(draw, (2,), 4, 12, 3), "o_proj_weight": np.eye(12)}


def permuting_weights(draw: Draw) -> Build:
    """Each projection is another permutation with signs: nothing but its direction matters."""
    weights = {name: signed_permutation(draw, 6) for name in WEIGHTS}
    return {**arguments(draw, (2,), 4, 6, 2), **weights}


def weights_of_different_size(draw: Draw) -> Build:
    """Each projection has its own magnitude: exchanged roles show at a glance."""
    made = arguments(draw, (2,), 5, 8, 2)
    for name, factor in zip(WEIGHTS, (0.25, 1.0, 4.0, 0.5), strict=True):
        made[name] = made[name] * factor
    return made


def uneven_heads(draw: Draw) -> Build:
    """Heads attend with different sharpness and answer in different magnitudes."""
    made = arguments(draw, (2,), 5, 12, 3)
    made["q_proj_weight"] *= np.repeat([0.1, 1.0, 4.0], 4)[:, None]
    made["v_proj_weight"] *= np.repeat([4.0, 1.0, 0.25], 4)[:, None]
    return made


def later_tokens_dominate(draw: Draw) -> Build:
    """Every token is larger than the one before: whoever sees the future answers with it."""
    made = arguments(draw, (2,), 5, 8, 2)
    made["in_features"] *= 2.0 ** np.arange(5)[:, None] / 4
    return made


def far_below_the_hidden(draw: Draw) -> Build:
    """The first token's score with itself is -2e4, that with the hidden zero token is 0."""
    made = arguments(draw, (2,), 3, 8, 2)
    made["q_proj_weight"] = -made["k_proj_weight"]
    made["in_features"][:, 0] = 200.0 * draw.signs(2, 8)
    made["in_features"][:, 1] = 0.0
    return made


def zero_token(draw: Draw) -> Build:
    """A token of zeros: all its scores are 0, and none of them is a mask."""
    made = arguments(draw, (2,), 5, 8, 2)
    made["in_features"][:, 2] = 0.0
    return made


def rows_of_all_magnitudes(draw: Draw) -> Build:
    """Tokens from 1e-2 to 60: scores up to several thousand."""
    made = arguments(draw, (2,), 6, 8, 2)
    made["in_features"] *= np.array([1.0, 60.0, 0.01, 10.0, 1.0, 60.0])[:, None]
    return made


def equal_tokens(draw: Draw) -> Build:
    """All tokens of a sequence alike: every weighted mean is the value itself."""
    made = arguments(draw, (2,), 4, 8, 2)
    made["in_features"] = np.repeat(made["in_features"][:, :1], 4, axis=1)
    return made
