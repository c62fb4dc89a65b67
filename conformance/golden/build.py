"""Build the golden vectors from the cases: the same bytes every time.

Exact values are kept to 30 significant bits and tolerances to 8, rounded up: far finer than any
format that is stored, and coarse enough that the last digit of a platform's exponential or of its
matrix product cannot change a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from conformance import SPEC_VERSION
from conformance.golden.load import MANIFEST
from conformance.numerics import ensemble
from conformance.numerics.dtypes import FloatArray
from conformance.numerics.ensemble import Bound, Question
from conformance.numerics.tensors import encode
from conformance.spec import component_names, component_spec
from conformance.suite.case import Case
from conformance.suite.component import Component, component
from conformance.suite.grader import cotangent_for

SCHEMA = "transformer-conformance/fixtures/1"
VALUE_BITS = 30
TOLERANCE_BITS = 8


def build(folder: Path) -> dict[str, Any]:
    """Write all golden vectors into `folder`; returns the manifest.

    Files of components that no longer exist are removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vectors: list[dict[str, Any]] = []
    files: dict[str, str] = {}
    for name in component_names():
        entries, tensors = component_vectors(component(name))
        data = encode(tensors)
        (folder / f"{name}.safetensors").write_bytes(data)
        files[f"{name}.safetensors"] = hashlib.sha256(data).hexdigest()
        vectors += entries
    for stale in folder.glob("*.safetensors"):
        if stale.name not in files:
            stale.unlink()
    manifest = {
        "schema": SCHEMA,
        "spec_version": SPEC_VERSION,
        "files": files,
        "flags": {name: dict(component_spec(name).flags) for name in component_names()},
        "vectors": vectors,
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
    return manifest


def component_vectors(
    owner: Component,
) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """The manifest entries and the tensors of one component."""
    entries = []
    tensors: dict[str, np.ndarray] = {}
    for case, dtype in golden_cases(owner):
        vector = _Vector(owner, case, dtype)
        entries.append(vector.entry())
        tensors.update(vector.tensors)
    return entries, tensors


def golden_cases(owner: Component) -> Iterator[tuple[Case, str]]:
    """The cases that are stored, with each dtype they are stored in.

    float64 is never stored: its tolerances are finer than the bits that are kept.
    """
    for case in owner.cases:
        if case.golden:
            for dtype in case.dtypes:
                if dtype != "float64":
                    yield case, dtype


@dataclass
class _Vector:
    """One vector while it is written: `tensors` fills up as its entry is made."""

    owner: Component
    case: Case
    dtype: str

    def __post_init__(self) -> None:
        self.id = f"{self.owner.name}/{self.case.name}/{self.dtype}"
        self.tensors: dict[str, np.ndarray] = {}

    def entry(self) -> dict[str, Any]:
        arguments = self.case.arguments(self.dtype)
        cotangent = None
        if self.case.wrt:
            cotangent = cotangent_for(self.owner, arguments, self.case.name)
        found = ensemble.bounds(
            Question(
                self.owner.oracle,
                arguments,
                wrt=self.case.wrt,
                cotangent=cotangent,
                pooled=self.owner.pooled,
            )
        )
        parameters, stored = self._arguments(arguments)
        return {
            "id": self.id,
            "component": self.owner.name,
            "requirement": self.case.requirement,
            "case": self.case.name,
            "dtype": self.dtype,
            "flags": list(self.case.flags),
            "why": self.case.why,
            "parameters": parameters,
            "arguments": stored,
            "result": self._bound("result", found.result),
            "cotangent": None if cotangent is None else self._put("cotangent", cotangent),
            "gradients": {
                name: self._bound(f"gradient/{name}", bound)
                for name, bound in found.gradients.items()
            },
        }

    def _arguments(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        parameters: dict[str, Any] = {}
        stored: dict[str, str] = {}
        for name, value in arguments.items():
            if isinstance(value, Mapping):
                for key, tensor in value.items():
                    stored[f"{name}/{key}"] = self._put(f"argument/{name}/{key}", tensor)
            elif isinstance(value, np.ndarray):
                stored[name] = self._put(f"argument/{name}", value)
            else:
                parameters[name] = value
        return parameters, stored

    def _put(self, name: str, tensor: np.ndarray) -> str:
        key = f"{self.id}/{name}"
        self.tensors[key] = np.asarray(tensor, order="C")  # keeps arrays without axes
        return key

    def _bound(self, name: str, bound: Bound) -> dict[str, str]:
        pooled = _unrepeat(bound.tolerance, self.owner.pooled)
        return {
            "expected": self._put(f"{name}/expected", keep_bits(bound.expected, VALUE_BITS)),
            "tolerance": self._put(
                f"{name}/tolerance", keep_bits(pooled, TOLERANCE_BITS, up=True).astype(np.float32)
            ),
        }


def _unrepeat(tolerance: FloatArray, pooled: tuple[int, ...]) -> FloatArray:
    """Tolerances are equal along the pooled axes: keep one entry of each."""
    for axis in pooled:
        if -axis <= tolerance.ndim and tolerance.shape[axis] > 1:
            tolerance = np.take(tolerance, [0], axis=axis)
    return tolerance


def keep_bits(values: FloatArray, bits: int, up: bool = False) -> FloatArray:
    """Round to that many significant bits, to nearest or away from zero."""
    mantissa, exponent = np.frexp(values)
    scaled = mantissa * 2.0**bits
    rounded = np.sign(scaled) * np.ceil(np.abs(scaled)) if up else np.round(scaled)
    return np.asarray(np.ldexp(rounded, exponent - bits))
