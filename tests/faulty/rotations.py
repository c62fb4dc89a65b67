"""Faults of the rotation inside attention, each used in every component that rotates.

Left out are those that cancel in the score of a query and a key: any permutation of features and
any turn that both have in common.
"""

from typing import Any

import torch
from torch import Tensor

from ..parts import Attention, angles, frequencies, keep, merge, rope, split, turn, wide
from .catalogue import CONVENTION, MISREAD, PYTORCH, SUBMISSIONS
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
    Piece(
        "rope-missing",
        "Does not rotate queries and keys.",
        "Shuffle the earlier tokens: does the last output notice?",
        rotating(keep),
        SUBMISSIONS,
    ),
    Piece(
        "rope-on-queries-only",
        "Rotates queries and leaves keys as they are.",
        "On what may the score of two tokens depend?",
        rotating(rope, keep),
    ),
    Piece(
        "rope-on-keys-only",
        "Rotates keys and leaves queries as they are.",
        "On what may the score of two tokens depend?",
        rotating(keep, rope),
    ),
    Piece(
        "rope-on-values-too",
        "Rotates values as well.",
        "Which vectors meet in the score?",
        rotating(rope, rope, rope),
        MISREAD,
    ),
    Piece(
        "rope-half-split",
        "Pairs feature i with feature i + d_k/2 instead of 2i with 2i + 1.",
        "Which two features make a pair? Two layouts are in use; only one is specified.",
        rotating(half_split),
        CONVENTION,
    ),
    Piece(
        "rope-wrong-direction",
        "Turns by the negative angle.",
        "Where does the pair (1, 0) go for a small positive angle?",
        rotating(lambda x, p, theta, limit: rope(x, -p, theta)),
    ),
    Piece(
        "rope-keys-turned-back",
        "Turns keys by the negative angle.",
        "On what may the score of two tokens depend?",
        rotating(rope, lambda x, p, theta, limit: rope(x, -p, theta)),
        MISREAD,
    ),
    Piece(
        "rope-queries-one-ahead",
        "Turns queries by the position after their own.",
        "What is the relative position of a token to itself?",
        rotating(lambda x, p, theta, limit: rope(x, p + 1, theta), rope),
    ),
    Piece(
        "rope-over-whole-width",
        "Rotates before splitting into heads, so that heads differ in their frequencies.",
        "Are all heads rotated alike?",
        rotating(whole_width),
        SUBMISSIONS,
    ),
    Piece(
        "rope-frequencies-of-model-width",
        "Divides exponents by d_model instead of d_k.",
        "How wide is the vector that is rotated?",
        rotating(model_width),
        SUBMISSIONS,
    ),
    Piece(
        "rope-theta-always-10000",
        "Uses the base 10000 whatever theta is given.",
        "Is the argument used anywhere?",
        rotating(lambda x, p, theta, limit: rope(x, p, 10000.0)),
        SUBMISSIONS,
    ),
    Piece(
        "rope-exponent-half",
        "Uses i / d_k for the pair i instead of 2i / d_k.",
        "How does the slowest frequency compare with 1 / theta?",
        rotating(lambda x, p, theta, limit: rope(x, p, theta**0.5)),
        MISREAD,
    ),
    Piece(
        "rope-odd-from-rotated-even",
        "Computes the odd feature from the even one that is already rotated.",
        "Which of the four products needs a value that has been overwritten?",
        rotating(odd_from_rotated_even),
        SUBMISSIONS,
    ),
    Piece(
        "rope-without-gradient",
        "Rotates under torch.no_grad, so queries and keys get no gradient.",
        "The tables need no gradient; the vectors do.",
        rotating(ungraded),
        PYTORCH,
        "gradient",
    ),
]
