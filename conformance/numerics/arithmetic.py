"""Three ways to carry out the elementary operations of a definition.

`Arithmetic` is exact (float64). `Perturbed` is Monte Carlo arithmetic (Parker 1997): every result
is moved by one unit roundoff of the working format with a random sign. `Honest` really rounds every
result to the working format and sums in one of the orders that a definition leaves open. The spread
of a definition over these three is what a *correct* implementation may be off by (see `ensemble`).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from conformance.numerics.dtypes import FloatArray, Format, accumulator, round_to

ORDERS = ("running", "reversed", "pairwise", "chunked")
CHUNK = 8
POOL_SIZE = 1 << 15
SMALLEST_STEP = 2.0**-52
"""The last bit of 1 in float64: half of it, its unit roundoff, would be lost when added to 1."""
LARGEST_EXPANSION = 1 << 20
"""Products of a matrix product that are expanded for a sum in a given order; above, BLAS sums."""


class Arithmetic:
    """Exact arithmetic: float64, nothing is rounded. Base class of the others."""

    exact = True
    numbers: type = np.float64
    """Kind of number that constants are made of; `object` for mpmath's."""

    def __init__(self, form: int = 0) -> None:
        """`form` picks among the algebraic forms that a definition offers (see `choose`)."""
        self._form = form
        self._choices = 0

    def choose(self, count: int) -> int:
        """Index of the algebraic form to use at this place of the definition, below `count`.

        Exact arithmetic always takes the first. The others rotate, so that places differ.
        """
        if self.exact:
            return 0
        self._choices += 1
        return (self._form + self._choices - 1) % count

    def round(self, values: FloatArray, fmt: Format) -> FloatArray:
        """The result of one elementary operation in format `fmt`."""
        return values

    def sum(self, values: FloatArray, axis: int, fmt: Format) -> FloatArray:
        """Sum along one axis (kept with length 1), accumulated as `fmt` is accumulated."""
        return np.asarray(values.sum(axis=axis, keepdims=True))

    def matmul(self, left: FloatArray, right: FloatArray, fmt: Format) -> FloatArray:
        """Matrix product over the last two axes, accumulated as `fmt` is accumulated."""
        return np.asarray(np.matmul(left, right))


def _sum_error(total: FloatArray, squares: FloatArray, count: int) -> FloatArray:
    """Size of the error of a running sum, in unit roundoffs of its accumulator.

    Every addition is off by a random roundoff of the partial sum at that place (Higham and Mary
    2019), so that the variance is the sum of the squared partial sums. Between 0 and the total
    these are about `k/n * total` plus a random walk of the terms:
    n * (total^2 / 3 + sum of squares / 2).
    """
    return np.sqrt(count * (total * total / 3.0 + squares / 2.0))


@cache
def _sign_pool(seed: int) -> FloatArray:
    """`POOL_SIZE` random signs, twice over so that a stretch of them is one slice."""
    raw = np.random.PCG64(seed).random_raw(POOL_SIZE // 64)
    flags = np.unpackbits(raw.astype("<u8").view(np.uint8))
    pool = np.tile(flags.astype(np.float64) * 2.0 - 1.0, 2)
    pool.flags.writeable = False
    return pool


class Perturbed(Arithmetic):
    """Monte Carlo arithmetic: each result moved by one unit roundoff, the sign drawn at random."""

    exact = False

    def __init__(self, seed: int, form: int = 0) -> None:
        super().__init__(form)
        self._pool = _sign_pool(seed)
        self._next = seed * 7919

    def _signs(self, shape: tuple[int, ...]) -> FloatArray:
        size = math.prod(shape)
        # A stride that is coprime to the pool: places of a definition get unrelated signs.
        self._next = (self._next + 10007 + size) % POOL_SIZE
        signs = self._pool[self._next : self._next + size]
        if signs.size < size:
            signs = np.resize(self._pool[self._next : self._next + POOL_SIZE], size)
        return signs.reshape(shape)

    def round(self, values: FloatArray, fmt: Format) -> FloatArray:
        signs = self._signs(values.shape)
        with np.errstate(invalid="ignore"):
            moved = values * (1.0 + max(fmt.unit, SMALLEST_STEP) * signs)
        if np.isinf(values).any():
            moved = np.where(np.isinf(values), values, moved)  # minus infinity stays (masks)
        if fmt.name == "float16":  # its subnormals are coarse enough to matter
            quantum = np.where((values != 0) & (np.abs(values) < fmt.tiny), fmt.quantum / 2, 0.0)
            moved = moved + quantum * signs
        return moved

    def sum(self, values: FloatArray, axis: int, fmt: Format) -> FloatArray:
        total = values.sum(axis=axis, keepdims=True)
        squares = np.square(values).sum(axis=axis, keepdims=True)
        count = values.shape[axis]
        return self._accumulated(total, squares, count, fmt, product_unit=0.0)

    def matmul(self, left: FloatArray, right: FloatArray, fmt: Format) -> FloatArray:
        total = np.matmul(left, right)
        squares = np.matmul(np.square(left), np.square(right))
        return self._accumulated(total, squares, left.shape[-1], fmt, product_unit=fmt.unit)

    def _accumulated(
        self,
        total: FloatArray,
        squares: FloatArray,
        count: int,
        fmt: Format,
        product_unit: float,
    ) -> FloatArray:
        if count == 1 and product_unit == 0.0:
            return total
        size = accumulator(fmt).unit * _sum_error(total, squares, count)
        size = size + product_unit * np.sqrt(squares)
        return self.round(total + self._signs(total.shape) * size, fmt)


class Honest(Arithmetic):
    """Really rounds every result to the working format; sums in the given order."""

    exact = False

    def __init__(self, order: str, form: int = 0, wide_accumulator: bool = True) -> None:
        """`wide_accumulator=False` sums 16-bit terms in 16 bits, as a loop over tensors does."""
        super().__init__(form)
        self._order = order
        self._wide = wide_accumulator

    def round(self, values: FloatArray, fmt: Format) -> FloatArray:
        return round_to(values, fmt)

    def _accumulator(self, fmt: Format) -> Format:
        return accumulator(fmt) if self._wide else fmt

    def sum(self, values: FloatArray, axis: int, fmt: Format) -> FloatArray:
        moved = np.moveaxis(values, axis, -1)
        total = self._ordered_sum(moved, self._accumulator(fmt))
        return np.moveaxis(round_to(total, fmt)[..., None], -1, axis)

    def matmul(self, left: FloatArray, right: FloatArray, fmt: Format) -> FloatArray:
        accumulate = self._accumulator(fmt)
        inner = left.shape[-1]
        products = left.size * right.shape[-1]
        if products > LARGEST_EXPANSION or inner == 0:
            product = np.matmul(left.astype(accumulate.numpy), right.astype(accumulate.numpy))
            return round_to(product, fmt)
        terms = round_to(
            left[..., :, None, :] * np.swapaxes(right, -1, -2)[..., None, :, :], accumulate
        )
        return round_to(self._ordered_sum(terms, accumulate), fmt)

    def _ordered_sum(self, terms: FloatArray, fmt: Format) -> FloatArray:
        """Sum along the last axis in `fmt`."""
        narrow = terms.astype(fmt.numpy)
        if narrow.shape[-1] == 0:
            return np.zeros(narrow.shape[:-1])
        with np.errstate(over="ignore", invalid="ignore"):
            if self._order == "reversed":
                narrow = narrow[..., ::-1]
            if self._order == "chunked":
                narrow = _chunk_sums(narrow)
            if self._order == "pairwise":
                return _pairwise(narrow).astype(np.float64)
            return np.add.accumulate(narrow, axis=-1)[..., -1].astype(np.float64)


def _chunk_sums(terms: np.ndarray) -> np.ndarray:
    """Running sums of `CHUNK` neighbours each, as a blocked kernel forms them."""
    short = -terms.shape[-1] % CHUNK
    if short:
        padding = np.zeros((*terms.shape[:-1], short), dtype=terms.dtype)
        terms = np.concatenate((terms, padding), axis=-1)
    chunks = terms.reshape(*terms.shape[:-1], terms.shape[-1] // CHUNK, CHUNK)
    return np.add.accumulate(chunks, axis=-1)[..., -1]


def _pairwise(terms: np.ndarray) -> np.ndarray:
    """Sum by halves, as a tree reduction does."""
    while terms.shape[-1] > 1:
        if terms.shape[-1] % 2:
            padding = np.zeros((*terms.shape[:-1], 1), dtype=terms.dtype)
            terms = np.concatenate((terms, padding), axis=-1)
        half = terms.shape[-1] // 2
        terms = terms[..., :half] + terms[..., half:]
    return terms[..., 0]
