"""The float formats."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from conformance.numerics.dtypes import (
    FLOAT32,
    FLOAT64,
    FORMATS,
    Format,
    accumulator,
    format_of,
    is_float,
    round_to,
    wider,
)

ALL = pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)


@ALL
def test_unit_is_half_the_gap_after_one(fmt: Format) -> None:
    assert round_to(1.0 + 2.0 * fmt.unit, fmt) == 1.0 + 2.0 * fmt.unit
    assert round_to(1.0 + fmt.unit, fmt) == 1.0  # half-way, to even


@ALL
def test_ends_of_the_range(fmt: Format) -> None:
    assert round_to(fmt.largest, fmt) == fmt.largest
    assert round_to(fmt.quantum, fmt) == fmt.quantum
    assert round_to(fmt.tiny, fmt) == fmt.tiny
    assert fmt.quantum == pytest.approx(fmt.tiny * 2 * fmt.unit)
    if fmt is not FLOAT64:
        assert round_to(fmt.largest * (1 + 2 * fmt.unit), fmt) == np.inf
        assert round_to(fmt.quantum / 4, fmt) == 0.0


@ALL
def test_formats_are_recognised(fmt: Format) -> None:
    array = np.ones(2, dtype=fmt.numpy)
    assert is_float(array)
    assert format_of(array) is fmt


def test_what_is_no_float_array() -> None:
    for value in (np.ones(2, dtype=np.int64), np.array([True]), 1.0, [1.0], None):
        assert not is_float(value)


def test_accumulators() -> None:
    assert accumulator(FORMATS["bfloat16"]) is FLOAT32
    assert accumulator(FORMATS["float16"]) is FLOAT32
    assert accumulator(FLOAT32) is FLOAT32
    assert accumulator(FLOAT64) is FLOAT64


@pytest.mark.parametrize("left", FORMATS)
@pytest.mark.parametrize("right", FORMATS)
def test_promotion_is_symmetric_and_holds_both(left: str, right: str) -> None:
    result = wider(FORMATS[left], FORMATS[right])
    assert result is wider(FORMATS[right], FORMATS[left])
    assert result.unit <= min(FORMATS[left].unit, FORMATS[right].unit)
    assert result.largest >= max(FORMATS[left].largest, FORMATS[right].largest)


def test_rounding_goes_to_even() -> None:
    bfloat16 = FORMATS["bfloat16"]
    values = [1.0 + 2.0**-8, 1.0 + 3 * 2.0**-8, -(1.0 + 2.0**-8)]
    assert round_to(values, bfloat16).tolist() == [1.0, 1.0 + 2.0**-6, -1.0]
    assert bfloat16.numpy == np.dtype(ml_dtypes.bfloat16)
