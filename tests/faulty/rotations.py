"""Faults of the rotation inside attention, each used in every component that rotates.

Left out are those that cancel in the score of a query and a key: any permutation of features and
any turn that both have in common.
"""

from typing import Any

import torch
from torch import Tensor

from ..parts import Attention, angles, frequencies, keep, merge, rope, split, turn, wide
from .pieces import Piece


def half_split(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    """Rotation of the pairs (i, i + d_k/2)."""
    angle = angles(positions, x.shape[-1], theta)
    a, b = wide(x).chunk(2, dim=-1)
    c, s = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
    return torch.cat((a * c - b * s, a * s + b * c), dim=-1).to(x.dtype)


def whole_width(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    """Rotation of all heads' features as one long vector."""
    flat = positions.squeeze(-2) if positions.ndim > 1 else positions
    return split(rope(merge(x), flat, theta), x.shape[-3])


def model_width(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    """Rotation with the first frequencies of a vector as wide as the model."""
    own = frequencies(x.shape[-1] * x.shape[-3], theta)[: x.shape[-1] // 2]
    return turn(x, positions[..., None] * own)


def odd_from_rotated_even(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    """Rotation whose second row sees the first row's result."""
    y, angle = wide(x), angles(positions, x.shape[-1], theta)
    c, s = angle.cos().to(y.dtype), angle.sin().to(y.dtype)
    even = y[..., 0::2] * c - y[..., 1::2] * s
    return torch.stack((even, even * s + y[..., 1::2] * c), -1).flatten(-2).to(x.dtype)


def ungraded(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    """Rotation under torch.no_grad."""
    with torch.no_grad():
        return rope(x, positions, theta)


def rotating(q: Any, k: Any = None, v: Any = keep) -> Attention:
    """Attention with other rotations of queries and keys, and of values."""
    return Attention(rotate_q=q, rotate_k=k or q, rotate_v=v)


ROTATIONS = [
    Piece("rope-missing", rotating(keep)),
    Piece("rope-on-queries-only", rotating(rope, keep)),
    Piece("rope-on-keys-only", rotating(keep, rope)),
    Piece("rope-on-values-too", rotating(rope, rope, rope)),
    Piece("rope-half-split", rotating(half_split)),
    Piece("rope-wrong-direction", rotating(lambda x, p, theta, limit: rope(x, -p, theta))),
    Piece("rope-keys-turned-back", rotating(rope, lambda x, p, theta, limit: rope(x, -p, theta))),
    Piece(
        "rope-queries-one-ahead", rotating(lambda x, p, theta, limit: rope(x, p + 1, theta), rope)
    ),
    Piece("rope-over-whole-width", rotating(whole_width)),
    Piece("rope-frequencies-of-model-width", rotating(model_width)),
    Piece("rope-theta-always-10000", rotating(lambda x, p, theta, limit: rope(x, p, 10000.0))),
    Piece("rope-exponent-half", rotating(lambda x, p, theta, limit: rope(x, p, theta**0.5))),
    Piece("rope-odd-from-rotated-even", rotating(odd_from_rotated_even)),
    Piece("rope-without-gradient", rotating(ungraded), "gradient"),
]
