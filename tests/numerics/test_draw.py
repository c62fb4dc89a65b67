"""Random inputs: the same on every machine and in every version of NumPy."""

from __future__ import annotations

import numpy as np

from conformance.numerics.draw import GRID, Draw


def test_pinned_values() -> None:
    """Golden vectors depend on these numbers: they must never change."""
    draw = Draw("pinned", 1)
    assert draw.uniform(4).tolist() == [0.837890625, 0.3681640625, 0.261474609375, 0.500732421875]
    assert draw.normal(4).tolist() == [
        0.37646484375,
        -1.136474609375,
        0.900634765625,
        -1.608642578125,
    ]
    assert draw.integers(-3, 4, 6).tolist() == [0, -2, 0, 3, 0, -1]
    assert draw.flags(6).tolist() == [False, False, True, False, False, True]
    assert draw.signs(4).tolist() == [1.0, 1.0, -1.0, -1.0]
    assert draw.permutation(6).tolist() == [2, 0, 3, 5, 1, 4]
    assert draw.normal(2, 2, scale=1e-3).tolist() == [
        [-0.000857177734375, -0.000290771484375],
        [-0.000124267578125, 0.0011005859375],
    ]
    assert draw.uniform(2, low=-5.0, high=7.0).tolist() == [3.92138671875, 2.852783203125]


def test_the_key_decides_everything() -> None:
    first = Draw("key", 3).normal(20)
    assert np.array_equal(first, Draw("key", 3).normal(20))
    for other in (Draw("key", 4), Draw("yek", 3), Draw("key"), Draw("key", 3, 0)):
        assert not np.array_equal(first, other.normal(20))


def test_numbers_lie_on_the_grid_and_in_their_range() -> None:
    draw = Draw("range")
    uniform = draw.uniform(2000, low=-2.0, high=3.0)
    assert np.array_equal(uniform * GRID, np.round(uniform * GRID))
    assert uniform.min() >= -2.0
    assert uniform.max() < 3.0
    whole = draw.integers(-2, 3, 500)
    assert whole.dtype == np.int64
    assert set(whole.tolist()) == {-2, -1, 0, 1, 2}
    assert set(draw.signs(100).tolist()) == {-1.0, 1.0}
    assert sorted(draw.permutation(50).tolist()) == list(range(50))


def test_distributions_are_what_they_are_called() -> None:
    draw = Draw("distribution")
    normal = draw.normal(20_000, scale=2.0)
    assert abs(normal.mean()) < 5 * 2.0 / np.sqrt(20_000)
    assert abs(normal.std() / 2.0 - 1.0) < 5 / np.sqrt(2 * 20_000)
    # a share of 0.9545 lies within two standard deviations
    inside = (np.abs(normal) < 4.0).mean()
    assert abs(inside - 0.9545) < 5 * np.sqrt(0.9545 * 0.0455 / 20_000)
    share = draw.flags(20_000, probability=0.3).mean()
    assert abs(share - 0.3) < 5 * np.sqrt(0.3 * 0.7 / 20_000)
    assert abs(draw.uniform(20_000).mean() - 0.5) < 5 * np.sqrt(1 / 12 / 20_000)


def test_small_scales_keep_their_digits() -> None:
    values = Draw("scale").normal(100, scale=1e-30)
    assert np.unique(values).size > 90


def test_shapes() -> None:
    draw = Draw("shape")
    assert draw.normal(2, 3).shape == (2, 3)
    assert draw.normal(0, 3).shape == (0, 3)
    assert np.shape(draw.uniform()) == ()
    assert draw.flags(4, 1).dtype == np.bool_
