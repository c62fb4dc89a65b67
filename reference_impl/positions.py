"""Positions as rotations.

Both encodings give the pair of features (2i, 2i+1) the angle `position * base^(-2i/d)`: the first
pair turns by one radian per token, the last takes about `base` tokens for a radian. The sinusoidal
encoding *adds* (sin, cos) of that angle to the embedding; rotary embedding *turns* the pair by it.
"""

import torch
from torch import Tensor, nn

from .precision import at_least_float32


def position_angles(positions: Tensor, dim: int, base: float) -> Tensor:
    """Angles positions * base^(-2i/dim) for i = 0 .. dim/2 - 1, in radians.

    In float64: an angle of 1e5 radians in float32 would already be off by 4e-3.

    Args:
        positions: integers (...).
        dim: number of features, two for each angle; ValueError when it is odd.

    Returns:
        float64 (..., dim/2).
    """
    if dim % 2:
        raise ValueError(f"features are rotated in pairs, so their number must be even, not {dim}")
    two_i = torch.arange(0, dim, 2, device=positions.device, dtype=torch.float64)  # (dim/2)
    return positions.unsqueeze(-1) * base ** (-two_i / dim)  # (..., dim/2)


class SinusoidalEncoding(nn.Module):
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(p / 10000^(2i/D)).

    Vaswani et al. 2017, section 3.5. `forward` returns the encoding alone, to be added to the
    embeddings. PE(p + k) is PE(p) with every pair turned by a fixed angle; but the score of two
    *sums*, x_m + PE(m) and x_n + PE(n), has cross terms of content and position that depend on m
    and n separately. Rotary embedding has none.
    """

    table: Tensor

    def __init__(
        self,
        d_model: int,
        max_seq_len: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        angles = position_angles(torch.arange(max_seq_len), d_model, base=10000)
        table = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)  # (max_seq_len, D)
        table = table.to(device=device, dtype=dtype or torch.get_default_dtype())
        # A table follows from the arguments: it moves with the module but is not saved with it.
        self.register_buffer("table", table, persistent=False)

    def forward(self, token_positions: Tensor) -> Tensor:  # (...) integers
        return self.table[token_positions]  # (..., D)


def rotation_matrix(angles: Tensor) -> Tensor:
    """R(t) = [[cos t, -sin t], [sin t, cos t]], which turns a column vector by t radians.

    Angles add up when rotations are composed, R(a) R(b) = R(a + b), and turning back is
    transposing, R(t)^T = R(-t). Hence (R(m) q)^T (R(n) k) = q^T R(n - m) k: the score of rotated
    queries and keys knows the distance of their positions and nothing else.
    """
    cos, sin = angles.cos(), angles.sin()
    rows = torch.stack((cos, -sin), dim=-1), torch.stack((sin, cos), dim=-1)
    return torch.stack(rows, dim=-2)  # (..., 2, 2)


class RotaryPositionalEmbedding(nn.Module):
    """Turns the pair (2i, 2i+1) of each row by R(position * theta^(-2i/d_k)).

    Su et al. 2021, eq. 14-16 and section 3.4.2. Nothing is learned. The tables are kept in float64
    and used in the precision of the input, float32 at least.
    """

    cos: Tensor
    sin: Tensor

    def __init__(
        self,
        theta: float,
        d_k: int,
        max_seq_len: int,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        angles = position_angles(torch.arange(max_seq_len), d_k, base=theta)
        # A table follows from the arguments: it moves with the module but is not saved with it.
        cos, sin = angles.cos().to(device=device), angles.sin().to(device=device)
        self.register_buffer("cos", cos, persistent=False)  # (max_seq_len, d_k/2)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, x: Tensor, token_positions: Tensor) -> Tensor:
        """Rotate x (..., T, d_k); token_positions is (T,) or broadcasts to the (..., T) of x.

        IndexError when a position is not in the table (below max_seq_len).
        """
        wide = at_least_float32(x)
        cos = self.cos[token_positions].to(wide.dtype)  # (..., T, d_k/2)
        sin = self.sin[token_positions].to(wide.dtype)
        even, odd = wide[..., 0::2], wide[..., 1::2]  # (..., T, d_k/2)
        # R(angle) (even, odd)^T, without the zeros of the block-diagonal matrix (eq. 34)
        pairs = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
        return pairs.reshape(x.shape).to(x.dtype)  # (..., T, d_k)
