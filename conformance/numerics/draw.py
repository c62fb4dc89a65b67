"""Reproducible inputs: the same key gives the same numbers on every machine and NumPy version.

NumPy promises stable streams for its bit generators only, not for its distributions. Everything
here is made of raw bits, and real numbers lie on a grid of 2^-12, so that the last digit of a
platform's logarithm or cosine cannot show.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from conformance.numerics.dtypes import FloatArray

GRID = 2.0**12


class Draw:
    """A stream of random arrays that is determined by its key."""

    def __init__(self, *key: object) -> None:
        digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
        self._bits = np.random.PCG64(int.from_bytes(digest[:16], "little"))

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> FloatArray:
        """Uniform in [low, high), on the grid."""
        return np.floor((low + (high - low) * self._unit(shape)) * GRID) / GRID

    def normal(self, *shape: int, scale: float = 1.0) -> FloatArray:
        """Normal with mean 0 and standard deviation `scale` (Box and Muller 1958).

        The grid is laid before scaling, so that tiny scales keep their digits.
        """
        radius = np.sqrt(-2.0 * np.log(1.0 - self._unit(shape)))
        standard = radius * np.cos(2.0 * np.pi * self._unit(shape))
        return np.round(standard * GRID) / GRID * scale

    def integers(self, low: int, high: int, *shape: int) -> NDArray[np.int64]:
        """Uniform integers in [low, high)."""
        return (low + np.floor(self._unit(shape) * (high - low))).astype(np.int64)

    def flags(self, *shape: int, probability: float = 0.5) -> NDArray[np.bool_]:
        """True with the given probability."""
        return np.asarray(self._unit(shape) < probability)

    def signs(self, *shape: int) -> FloatArray:
        """-1.0 or 1.0, each in half of the cases."""
        return np.where(self.flags(*shape), 1.0, -1.0)

    def permutation(self, count: int) -> NDArray[np.int64]:
        """The integers below `count` in random order."""
        return np.argsort(self._unit((count,)), kind="stable").astype(np.int64)

    def _unit(self, shape: tuple[int, ...]) -> FloatArray:
        size = int(np.prod(shape, dtype=np.int64))
        raw = self._bits.random_raw(size) >> np.uint64(11)
        return (raw.astype(np.float64) * 2.0**-53).reshape(shape)
