"""The judge's side of the inputs: what was sent, so that what came back can be checked.

Worker and judge cut inputs from the same pool of random numbers by the same rule (`runner.cut`);
the factor of a cut has 8 significant bits and a scale is a power of two, so that the product is
rounded alike by both.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.bench import runner
from conformance.bench.workload import Arguments, Fixed, Floats, Ids
from conformance.numerics.dtypes import FORMATS


@dataclass(frozen=True, eq=False)
class Pool:
    """Random numbers that nobody knew before this run, in one dtype."""

    dtype: str
    floats: Any
    numbers: Any

    @classmethod
    def draw(cls, dtype: str) -> Pool:
        """A fresh pool."""
        generator = np.random.default_rng(secrets.randbits(128))
        size = runner.POOL + runner.PLACES
        floats = generator.standard_normal(size, dtype=np.float32).astype(FORMATS[dtype].numpy)
        return cls(dtype, floats, generator.integers(0, 1 << 31, size, dtype=np.int64))

    def array(self, shape: tuple[int, ...], seed: int, index: int, scale: float) -> Any:
        """Tensor `index` of the input with that seed."""
        place, factor = runner.cut(seed, index)
        size = int(np.prod(shape, dtype=np.int64))
        wide = np.float64 if self.dtype == "float64" else np.float32
        parts = [
            (self.floats[at : at + end - first].astype(wide) * wide(factor * scale))
            for first, end, at in runner.pieces(size, place)
        ]
        return np.concatenate(parts).astype(self.floats.dtype).reshape(shape)

    def ids(self, shape: tuple[int, ...], seed: int, index: int, high: int) -> Any:
        """The same for integers."""
        place, _ = runner.cut(seed, index)
        size = int(np.prod(shape, dtype=np.int64))
        parts = [
            self.numbers[at : at + end - first] for first, end, at in runner.pieces(size, place)
        ]
        return (np.concatenate(parts) % high).reshape(shape)


def seeds(count: int) -> list[int]:
    """Numbers from which inputs follow; 52 bits each, so that JSON keeps them."""
    return [secrets.randbits(52) for _ in range(count)]


def _leaves(arguments: Arguments) -> list[tuple[str, Floats | Ids]]:
    """Every array that is drawn, by its name, in the order in which the worker fills them."""
    found: list[tuple[str, Floats | Ids]] = []
    for name, spec in arguments.items():
        inner = spec.items() if isinstance(spec, Mapping) else [("", spec)]
        for key, one in inner:
            if isinstance(one, Floats | Ids):
                found.append((f"{name}.{key}" if key else name, one))
    return found


def float_names(arguments: Arguments, *, rows: bool | None = None) -> list[str]:
    """Names of the float arrays, or of those (not) of the batch."""
    return [
        name
        for name, spec in _leaves(arguments)
        if isinstance(spec, Floats) and rows in (None, spec.rows)
    ]


def materialise(
    pool: Pool, arguments: Arguments, seed: int, output: tuple[int, ...] | None = None
) -> tuple[dict[str, Any], Any]:
    """The arguments of one call, and its cotangent where a shape for it is given."""
    leaves = _leaves(arguments)
    floats = [(name, spec) for name, spec in leaves if isinstance(spec, Floats)]
    made: dict[str, Any] = {
        name: pool.array(spec.shape, seed, index, spec.scale)
        for index, (name, spec) in enumerate(floats)
    }
    count = len(floats)
    cotangent = None
    if output is not None:
        cotangent = pool.array(output, seed, count, 1.0)
        count += 1
    whole = [(name, spec) for name, spec in leaves if isinstance(spec, Ids)]
    for index, (name, spec) in enumerate(whole, count):
        made[name] = pool.ids(spec.shape, seed, index, spec.high)
    return {name: _value(name, spec, made) for name, spec in arguments.items()}, cotangent


def _value(name: str, spec: Any, made: Mapping[str, Any]) -> Any:
    if isinstance(spec, Mapping):
        return {key: made[f"{name}.{key}"] for key in spec}
    if isinstance(spec, Floats | Ids):
        return made[name]
    return spec.array if isinstance(spec, Fixed) else spec


def entry(arguments: Arguments, values: Mapping[str, Any], index: int) -> dict[str, Any]:
    """The arguments of one entry of the batch, as a batch of one."""
    part = dict(values)
    for name, spec in _leaves(arguments):
        if spec.rows and "." not in name:
            part[name] = values[name][index : index + 1]
    return part


def encoded(arguments: Arguments) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments as the worker is told of them, and the fixed arrays by reference."""
    fixed: dict[str, Any] = {}

    def one(spec: Any) -> dict[str, Any]:
        if isinstance(spec, Floats):
            return {"float": list(spec.shape), "scale": spec.scale}
        if isinstance(spec, Ids):
            return {"ids": list(spec.shape), "high": spec.high}
        if isinstance(spec, Fixed):
            fixed[name := f"f{len(fixed)}"] = spec.array
            return {"fixed": name}
        return {"value": spec}

    told = {
        name: {"dict": {key: one(inner) for key, inner in spec.items()}}
        if isinstance(spec, Mapping)
        else one(spec)
        for name, spec in arguments.items()
    }
    return told, fixed


def nbytes(arguments: Arguments, itemsize: int, output: tuple[int, ...] | None) -> int:
    """Memory of the arrays of one call, its cotangent and gradients included."""
    total = 0
    for _, spec in _leaves(arguments):
        size = int(np.prod(spec.shape, dtype=np.int64))
        each = 8 if isinstance(spec, Ids) else itemsize
        total += size * each * (2 if output is not None and isinstance(spec, Floats) else 1)
    if output is not None:
        total += int(np.prod(output, dtype=np.int64)) * itemsize
    return total
