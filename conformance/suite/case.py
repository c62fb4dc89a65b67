"""Cases: recipes for the inputs of a check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.numerics.draw import Draw
from conformance.numerics.dtypes import FORMATS, is_float

Arguments = Mapping[str, Any]
"""Keyword arguments of an adapter function: arrays, numbers, None, and dictionaries of weights."""


@dataclass(frozen=True)
class Case:
    """One kind of input, and why it is worth asking.

    `build` makes the arguments out of a stream of random numbers; float64 arrays in them are
    rounded to the dtype that is graded, arrays of other dtypes stay as they are. `why` says for
    what the case exists and what failing it means. `wrt` names the arguments whose gradients are
    compared as well. A golden case is stored in `fixtures/`; in longer profiles each case is also
    drawn anew.
    """

    name: str
    requirement: str
    why: str
    build: Callable[[Draw], dict[str, Any]]
    flags: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("float32",)
    wrt: tuple[str, ...] = ()
    golden: bool = True

    def arguments(self, dtype: str, seed: int | str = 0) -> dict[str, Any]:
        """The arguments in one dtype; seed 0 is the golden draw, text a hidden one."""
        draw = Draw(self.requirement, self.name, seed)
        return cast_arguments(self.build(draw), dtype)


def cast_arguments(arguments: Arguments, dtype: str) -> dict[str, Any]:
    """Round every float64 array to `dtype`; everything else stays."""
    fmt = FORMATS[dtype]

    def cast(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: cast(item) for key, item in value.items()}
        if isinstance(value, np.ndarray) and value.dtype == np.float64:
            with np.errstate(over="ignore", under="ignore"):
                return np.asarray(value.astype(fmt.numpy), order="C")  # keeps arrays without axes
        return value

    return {name: cast(value) for name, value in arguments.items()}


def size(arguments: Arguments) -> int:
    """Number of array entries among the arguments: how large an input is for a reader."""
    return sum(
        size(value) if isinstance(value, Mapping) else int(getattr(value, "size", 1))
        for value in arguments.values()
    )


def describe(arguments: Arguments, limit: int = 12) -> str:
    """The arguments as text: small arrays in full, larger ones by shape and first entries."""
    lines = []
    for name, value in arguments.items():
        if isinstance(value, Mapping):
            lines.append(f"{name} = {{{', '.join(f'{k}: {_shape(v)}' for k, v in value.items())}}}")
        elif isinstance(value, np.ndarray):
            lines.append(f"{name} = {_array(value, limit)}")
        else:
            lines.append(f"{name} = {value!r}")
    return "\n".join(lines)


def _shape(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)


def _array(value: np.ndarray, limit: int) -> str:
    shown = value.astype(np.float64) if is_float(value) else value
    flat = [f"{number:.6g}" for number in shown.reshape(-1)[:limit].tolist()]
    if value.size <= limit:
        text = np.array2string(np.asarray(shown), precision=6, separator=", ", threshold=limit + 1)
        return f"{_shape(value)} {' '.join(text.split())}"
    return f"{_shape(value)} [{', '.join(flat)}, ...]"
