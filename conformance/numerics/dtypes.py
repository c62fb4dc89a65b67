"""The float formats that a candidate can be graded in, and what rounding costs in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Format:
    """One binary float format.

    `unit` is the unit roundoff (half the gap between 1 and the next number), `tiny` the smallest
    normal number, `quantum` the smallest subnormal, `largest` the largest finite number.
    """

    name: str
    numpy: np.dtype[Any]
    unit: float
    tiny: float
    quantum: float
    largest: float

    @property
    def is_half(self) -> bool:
        """True for the 16-bit formats, whose sums are accumulated in float32 by good kernels."""
        return self.numpy.itemsize == 2


def _format(name: str, scalar: type) -> Format:
    info: Any = ml_dtypes.finfo(scalar)  # type: ignore[no-untyped-call]  # it has no annotations
    return Format(
        name=name,
        numpy=np.dtype(scalar),
        unit=float(info.eps) / 2,
        tiny=float(info.smallest_normal),
        quantum=float(info.smallest_subnormal),
        largest=float(info.max),
    )


FORMATS: dict[str, Format] = {
    "float16": _format("float16", np.float16),
    "bfloat16": _format("bfloat16", ml_dtypes.bfloat16),
    "float32": _format("float32", np.float32),
    "float64": _format("float64", np.float64),
}

FLOAT32 = FORMATS["float32"]
FLOAT64 = FORMATS["float64"]


def accumulator(fmt: Format) -> Format:
    """The format in which sums of `fmt` terms are accumulated: float32 for the 16-bit formats."""
    return FLOAT32 if fmt.is_half else fmt


def wider(left: Format, right: Format) -> Format:
    """The format of a result of two operands, as type promotion has it.

    bfloat16 with float16 gives float32, because neither holds the other.
    """
    if left is right:
        return left
    if left.is_half and right.is_half:
        return FLOAT32
    return left if left.numpy.itemsize > right.numpy.itemsize else right


def round_to(values: Any, fmt: Format) -> FloatArray:
    """Round float64 `values` to the nearest number of `fmt`; the result is float64 again."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.asarray(values, dtype=np.float64).astype(fmt.numpy).astype(np.float64)


def is_float(array: Any) -> bool:
    """True for arrays of one of the four float formats."""
    return isinstance(array, np.ndarray) and array.dtype in _NUMPY_FORMATS


def format_of(array: NDArray[Any]) -> Format:
    """The format of a float array; raises KeyError for other dtypes."""
    return _NUMPY_FORMATS[array.dtype]


_NUMPY_FORMATS: dict[np.dtype[Any], Format] = {fmt.numpy: fmt for fmt in FORMATS.values()}
