"""Builders of the inputs on which mistakes in attention show."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.numerics.draw import Draw

Build = dict[str, Any]

BIG = 100.0
"""A feature of this size in query and key gives a product of 1e4."""


def operands(
    draw: Draw, leading: tuple[int, ...], queries: int, keys: int, d_k: int, d_v: int
) -> Build:
    """Queries, keys and values of order one; the scores then have a standard deviation of 1."""
    return {
        "Q": draw.normal(*leading, queries, d_k),
        "K": draw.normal(*leading, keys, d_k),
        "V": draw.normal(*leading, keys, d_v),
    }


def random_mask(draw: Draw, *shape: int) -> np.ndarray:
    """A mask (..., queries, keys) without symmetry: every query sees a key, none sees all."""
    *_, queries, keys = shape
    mask = draw.flags(*shape)
    rows = np.arange(queries)
    seen = (2 * rows + 1) % keys
    if keys > 1:
        mask[..., rows, (seen + 1 + rows % (keys - 1)) % keys] = False
    mask[..., rows, seen] = True
    return mask


def plain(leading: tuple[int, ...], queries: int, keys: int, d_k: int, d_v: int) -> Any:
    return lambda draw: operands(draw, leading, queries, keys, d_k, d_v)


def masked(leading: tuple[int, ...], *sizes: int, mask_leading: tuple[int, ...] = ()) -> Any:
    """Operands of those sizes with a random mask of those leading axes."""
    queries, keys = sizes[:2]

    def build(draw: Draw) -> Build:
        mask = random_mask(draw, *mask_leading, queries, keys)
        return {**operands(draw, leading, *sizes), "mask": mask}

    return build


def one_row(mask_leading: tuple[int, ...]) -> Any:
    """A mask (..., 1, keys) that holds for all queries, for a batch of two with three heads."""
    return lambda draw: {
        **operands(draw, (2, 3), 4, 6, 5, 2),
        "mask": random_mask(draw, *mask_leading, 1, 6),
    }


def last_queries(draw: Draw) -> Build:
    """The last three of eight places as queries, causal among all eight as keys."""
    return {
        **operands(draw, (2, 2), 3, 8, 4, 3),
        "mask": np.tril(np.ones((8, 8), dtype=bool))[-3:],
    }


def scores_of_zero(draw: Draw) -> Build:
    """One query and one visible key are zero, the others are not."""
    made: Build = masked((2,), 4, 5, 6, 3)(draw)
    made["Q"][:, 1] = 0.0
    made["K"][:, 2] = 0.0
    made["mask"][:, 2] = True
    return made


def weights_visible(draw: Draw) -> Build:
    one_hot = np.broadcast_to(np.eye(5), (2, 5, 5)).copy()
    return {**operands(draw, (2,), 3, 5, 4, 5), "V": one_hot}


def weights_visible_masked(draw: Draw) -> Build:
    return {**weights_visible(draw), "mask": random_mask(draw, 2, 3, 5)}


def mask_none(draw: Draw) -> Build:
    return {**operands(draw, (2,), 6, 6, 4, 3), "mask": None}


def mask_all_true(draw: Draw) -> Build:
    return {**operands(draw, (2,), 6, 6, 4, 3), "mask": np.ones((6, 6), dtype=bool)}


def causal(draw: Draw) -> Build:
    return {**operands(draw, (3,), 5, 5, 4, 6), "mask": np.tril(np.ones((5, 5), dtype=bool))}


def anti_causal(draw: Draw) -> Build:
    """The mirror image of causal: a transposed mask, and one put in silently, show."""
    return {**operands(draw, (3,), 5, 5, 4, 6), "mask": np.triu(np.ones((5, 5), dtype=bool))}


def single_visible(draw: Draw) -> Build:
    """Each query sees one key, and gets its value unchanged."""
    mask = np.zeros((2, 5, 6), dtype=bool)
    mask[0, np.arange(5), [3, 0, 5, 2, 2]] = True
    mask[1, np.arange(5), [1, 4, 4, 0, 5]] = True
    return {**operands(draw, (2,), 5, 6, 3, 4), "mask": mask}


def own_token_hidden(draw: Draw) -> Build:
    return {**operands(draw, (2,), 6, 6, 4, 3), "mask": ~np.eye(6, dtype=bool)}


def lead(made: Build, queries: Any, keys: Any) -> Build:
    """Put features in front that add `queries * keys` to the products; other features stay."""
    q, k = made["Q"].copy(), made["K"].copy()
    q[..., 0], k[..., 0] = queries, keys
    return {**made, "Q": q, "K": k}


def hidden_dominates(draw: Draw) -> Build:
    """Hidden keys score 1e4 / sqrt(d_k) * 2 above visible ones, which differ by order one."""
    mask = random_mask(draw, 1, 6)
    keys = np.where(mask[0], 0.0, 2 * BIG)
    return {**lead(operands(draw, (2,), 4, 6, 4, 3), BIG, keys), "mask": np.repeat(mask, 4, 0)}


def visible_far_below(draw: Draw) -> Build:
    """Visible keys score -1e4, hidden ones around 0."""
    mask = random_mask(draw, 1, 6)
    keys = np.where(mask[0], -2 * BIG, 0.0)
    return {**lead(operands(draw, (2,), 4, 6, 4, 3), BIG, keys), "mask": np.repeat(mask, 4, 0)}


def rows_of_all_magnitudes(draw: Draw) -> Build:
    """Scores shifted row by row by 0, 1e4, -1e4, 200 and -200; within a row they differ by 1."""
    shift = np.array([0.0, 2 * BIG, -2 * BIG, 4.0, -4.0])
    return lead(operands(draw, (2,), 5, 6, 4, 3), shift, BIG)


def entries_of_all_magnitudes(draw: Draw) -> Build:
    """The same from batch entry to batch entry."""
    shift = np.array([0.0, -4.0, 4.0])[:, None]
    return lead(operands(draw, (3,), 4, 5, 4, 3), shift, BIG)


def saturated(draw: Draw) -> Build:
    """Scores from -1e4 to 1e4 within a row: one key takes all, ties of two share."""
    keys = np.array([-2 * BIG, 2 * BIG, BIG, 2 * BIG, 0.0, -BIG])
    made = lead(operands(draw, (2,), 4, 6, 4, 3), np.array([1.0, -1.0, 0.5, -0.5]) * BIG, keys)
    made["K"][..., 1:] = 0.0
    return made


def long(draw: Draw) -> Build:
    """257 keys; every 16th one stands out by up to 1e3."""
    made = operands(draw, (2,), 3, 257, 8, 4)
    made["K"][:, ::16] *= 30.0
    made["Q"] *= np.array([1.0, 0.1, 10.0])[:, None]
    return made


def long_even(draw: Draw) -> Build:
    """257 keys of nearly equal scores: the sum is what counts."""
    made = operands(draw, (1,), 4, 257, 4, 3)
    return {**made, "Q": made["Q"] / 16}


def gradient_ties(draw: Draw) -> Build:
    made = operands(draw, (2,), 3, 5, 4, 3)
    made["Q"][:, 1] = 0.0
    made["K"][:, 3] = made["K"][:, 0]
    return made


def gradient_saturated(draw: Draw) -> Build:
    return rows_of_all_magnitudes(draw) | {"mask": random_mask(draw, 5, 6)}


def hidden_for_all(draw: Draw) -> Build:
    """Keys 1 and 4 of 6 are hidden from all; their scores and values are the largest."""
    made = operands(draw, (2, 3), 4, 6, 5, 3)
    mask = random_mask(draw, 4, 6)
    mask[:, [1, 4]] = False
    mask[:, 0] = True
    made["K"][..., [1, 4], :] *= 20.0
    made["V"][..., [1, 4], :] *= 20.0
    return {**made, "mask": mask}


def empty(draw: Draw) -> Build:
    return {**operands(draw, (0, 2), 3, 4, 5, 2), "mask": random_mask(draw, 3, 4)}


def nothing_visible(draw: Draw) -> Build:
    mask = random_mask(draw, 4, 5)
    mask[2] = False
    return {**operands(draw, (2,), 4, 5, 4, 3), "mask": mask}
