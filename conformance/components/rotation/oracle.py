"""The matrix of a rotation in the plane, exactly as defined."""

from __future__ import annotations

from conformance.components.rope.oracle import cosine_and_sine
from conformance.definitions import piece
from conformance.numerics import array as m
from conformance.numerics.array import Array


@piece
def rotation(*, angles: Array) -> Array:
    """`[[cos t, -sin t], [sin t, cos t]]` for each angle t in radians: (...) -> (..., 2, 2).

    Turns a column vector counter-clockwise. Su et al. 2021, eq. 13.
    """
    return square_matrices(*matrix_entries(*cosine_and_sine(angles)))


@piece
def matrix_entries(cosine: Array, sine: Array) -> tuple[Array, Array, Array, Array]:
    """First row, then second row."""
    return cosine, -sine, sine, cosine


@piece
def square_matrices(*entries: Array) -> Array:
    """Four entries, row by row, as matrices: (...) four times -> (..., 2, 2)."""
    return m.reshape(m.stack(entries), (*entries[0].shape, 2, 2))
