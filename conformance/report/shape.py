"""Reading JSON values strictly: every value has the type it must have, every key is known.

JSON has no infinity and no NaN.  `encode` writes such a float as the string "inf", "-inf" or "nan",
so that nothing is lost, and `number` reads it back.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}

Convert = Callable[[Any], Any]


class RecordError(ValueError):
    """A line of the results file does not have the shape it must have."""


# Each of the following takes what JSON gave, returns what we keep, and raises RecordError for
# anything else.


def text(value: Any) -> str:
    """A text, possibly empty."""
    if not isinstance(value, str):
        raise RecordError("not a text")
    return value


def name(value: Any) -> str:
    """A text that is not empty."""
    if not text(value):
        raise RecordError("empty")
    return str(value)


def count(value: Any) -> int:
    """An integer from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RecordError("not a count")
    return value


def integer(value: Any) -> int:
    """An integer; `true` is none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise RecordError("not an integer")
    return value


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise RecordError("neither true nor false")
    return value


def number(value: Any) -> float:
    """A float, also one of the three that JSON cannot write."""
    if isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RecordError("not a number")
    try:
        return float(value)
    except OverflowError as error:
        raise RecordError("not a number that fits a float") from error


def seconds(value: Any) -> float:
    """A duration: finite and not negative."""
    duration = number(value)
    if not (math.isfinite(duration) and duration >= 0.0):
        raise RecordError("not a duration")
    return duration


def number_or_text(value: Any) -> float | str:
    """A number, or a text where the judge prefers words."""
    if isinstance(value, str) and value not in _NON_FINITE:
        return value
    return number(value)


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts, as a tuple."""
    if not isinstance(value, list | tuple):
        raise RecordError("not a list")
    return tuple(text(item) for item in value)


def mapping(value: Any) -> Mapping[str, Any]:
    """An object with any keys."""
    if not isinstance(value, Mapping):
        raise RecordError("not an object")
    return value


def one_of(allowed: Sequence[str]) -> Convert:
    """Only the texts in `allowed`."""

    def convert(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise RecordError(f"not one of {', '.join(allowed)}")
        return value

    return convert


def optional(convert: Convert) -> Convert:
    """`null`, or what `convert` takes."""
    return lambda value: None if value is None else convert(value)


def read_fields(
    value: Any, spec: Mapping[str, Convert], *, partial: bool = False
) -> dict[str, Any]:
    """The values of an object whose keys must be those of `spec`; `partial` allows fewer."""
    data = mapping(value)
    unknown = sorted(str(key) for key in data if key not in spec)
    missing = [] if partial else [key for key in spec if key not in data]
    if unknown:
        raise RecordError(f"unknown key {unknown[0]!r}")
    if missing:
        raise RecordError(f"key {missing[0]!r} is missing")
    return {key: _convert(key, spec[key], data[key]) for key in spec if key in data}


def _convert(key: str, convert: Convert, value: Any) -> Any:
    try:
        return convert(value)
    except RecordError as error:
        raise RecordError(f"{key}: {error}") from error


def encode(value: Any) -> Any:
    """A value as JSON can hold it: non-finite floats as strings, numbers of NumPy as plain ones."""
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        plain = float(value)
        return plain if math.isfinite(plain) else str(plain)
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [encode(item) for item in value]
    return str(value)
