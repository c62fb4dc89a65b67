"""What people write instead of the matrix of a rotation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.components.rope.faults import tables_in_bfloat16, wrapped_at_pi
from conformance.components.rope.faults_positions import squeezed
from conformance.components.rope.oracle import cosine_and_sine
from conformance.components.rotation.oracle import matrix_entries, rotation, square_matrices
from conformance.diagnosis.catalogue import Mistakes
from conformance.diagnosis.refusal import refusing
from conformance.numerics import array as m
from conformance.numerics.array import Array

MISTAKES = Mistakes("rotation")
fault = MISTAKES.fault

Entries = tuple[Array, Array, Array, Array]


def filled(identifier: str, entries: Callable[[Array, Array], Entries]) -> None:
    """Other entries: `entries(cosine, sine)`, row by row."""
    fault(identifier, "matrix_entries")(entries)


filled("rotation-transposed", lambda c, s: (c, s, -s, c))
filled("rotation-reflection", lambda c, s: (c, s, s, -c))
filled("rotation-both-sines-positive", lambda c, s: (c, s, s, c))
filled("rotation-sine-and-cosine-swapped", lambda c, s: matrix_entries(s, c))
filled("rotation-sheared", lambda c, s: (c, -s, s, m.constant(np.ones(c.shape), c)))


def measured(identifier: str, point: Callable[[Array], tuple[Array, Array]]) -> None:
    """Other cosines and sines of the angles."""
    fault(identifier, "cosine_and_sine")(point)


def series(t: Array) -> tuple[Array, Array]:
    """The first terms of both series."""
    return 1.0 - m.square(t) / 2.0, t


def sine_from_root(t: Array) -> tuple[Array, Array]:
    """The sine's magnitude from the cosine."""
    cosine = m.cos(t)
    left = 1.0 - m.square(cosine)
    # Below zero only by a perturbed rounding, never by a float's own: a cosine is at most 1.
    return cosine, m.sqrt(m.where(left.value >= 0, left, 0.0))


def sine_detached(t: Array) -> tuple[Array, Array]:
    """The sine is a constant."""
    cosine, sine = cosine_and_sine(t)
    return cosine, m.detach(sine)


measured("rotation-small-angle-series", series)
measured("rotation-sine-from-root", sine_from_root)
measured("rotation-sine-detached", sine_detached)
measured("rotation-low-precision-tables", tables_in_bfloat16)


def turned_by(identifier: str, angle: Callable[[Array], Array]) -> None:
    """The right matrices of other angles."""
    fault(identifier)(lambda *, angles: rotation(angles=angle(angles)))


def clamped(t: Array) -> Array:
    """At most half a turn either way."""
    return m.where(np.abs(t.value) <= np.pi, t, np.clip(t.value, -np.pi, np.pi))


def accumulated(t: Array) -> Array:
    """Sums of the angles up to each of them along the last axis."""
    if not t.ndim:
        return t
    count = t.shape[-1]
    before = np.tril(np.ones((count, count)))
    return m.reshape(m.total(m.reshape(t, (*t.shape[:-1], 1, count)) * before), t.shape)


turned_by("rotation-identity", lambda t: t * 0.0)
turned_by("rotation-degrees", lambda t: t * (np.pi / 180.0))
turned_by("rotation-half-angle", lambda t: t / 2.0)
turned_by("rotation-full-turns-as-unit", lambda t: t * (2.0 * np.pi))
turned_by("rotation-angle-clamped", clamped)
turned_by("rotation-angle-modulo-half-turn", wrapped_at_pi)
turned_by("rotation-angle-magnitude", lambda t: t * np.sign(t.value))
turned_by("rotation-angle-truncated", lambda t: m.constant(np.trunc(t.value), t))
turned_by("rotation-angles-accumulated", accumulated)
turned_by("rotation-detached", m.detach)


def laid_out(identifier: str, layout: Callable[..., Array]) -> None:
    """The entries stand along other axes."""
    fault(identifier, "square_matrices")(layout)


def matrix(rows: int, columns: int, *entries: Array) -> Array:
    """2x2 whose columns are stacked along one new axis, then its rows along another."""
    a, b, c, d = entries
    return m.stack((m.stack((a, b), columns), m.stack((c, d), columns)), rows)


def homogeneous(*entries: Array) -> Array:
    """Three rows and columns, the last one that keeps the third coordinate."""
    a, b, c, d = entries
    zero, one = (m.constant(np.full(a.shape, number), a) for number in (0.0, 1.0))
    nine = m.stack((a, b, zero, c, d, zero, zero, zero, one))
    return m.reshape(nine, (*a.shape, 3, 3))


laid_out("rotation-rows-stacked-first", lambda *entries: matrix(0, -1, *entries))
laid_out("rotation-matrix-axes-first", lambda *entries: matrix(0, 0, *entries))
laid_out("rotation-stays-flat", lambda *entries: m.stack(entries))
laid_out("rotation-homogeneous", homogeneous)
laid_out(
    "rotation-single-angle-only",
    lambda *entries: square_matrices(*(m.reshape(entry, ()) for entry in entries)),
)
laid_out(
    "rotation-vector-only",
    refusing(square_matrices, lambda *entries: not entries[0].ndim or not len(entries[0].value)),
)


@fault("rotation-drops-size-one-axes")
def drops_size_one_axes(*, angles: Array) -> Array:
    return squeezed(rotation(angles=angles))
