"""The matrix of a rotation in the plane, exactly as defined."""

from __future__ import annotations

from conformance.definitions import piece
from conformance.numerics import array as m
from conformance.numerics.array import Array


@piece
def rotation(*, angles: Array) -> Array:
    """`[[cos t, -sin t], [sin t, cos t]]` for each angle t in radians: (...) -> (..., 2, 2).

    Turns a column vector counter-clockwise. Su et al. 2021, eq. 13.
    """
    cosine, sine = m.cos(angles), m.sin(angles)
    entries = m.stack((cosine, -sine, sine, cosine))
    return m.reshape(entries, (*angles.shape, 2, 2))
