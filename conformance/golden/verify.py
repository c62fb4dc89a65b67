"""Verify the golden vectors: schema, hashes, orphans, and every value anew from the definitions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

from conformance import SPEC_VERSION
from conformance.golden.build import VALUE_BITS, component_vectors, golden_cases
from conformance.golden.load import MANIFEST, GoldenStore
from conformance.numerics import ensemble
from conformance.numerics.ensemble import Bound, Question
from conformance.numerics.tensors import decode
from conformance.spec import all_requirements, component_names, component_spec
from conformance.suite.component import component

SCHEMA_FILE = Path(__file__).parent / "manifest.schema.json"
DIGITS = 50
LARGEST_CONFIRMED = 3000
"""Entries of the arguments of vectors that are confirmed with mpmath; larger ones take minutes."""


def verify(folder: Path, confirm: bool = False) -> list[str]:
    """All that is wrong with the vectors in `folder`, one sentence each; empty when all is well.

    `confirm` evaluates the definitions once more with 50 digits (slow).
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError) as error:
        return [f"{folder / MANIFEST} cannot be read: {error}"]
    problems = _schema_problems(manifest)
    if problems:
        return problems
    problems = [*_file_problems(folder, manifest), *_label_problems(manifest)]
    if problems:
        return problems
    store = GoldenStore(folder)
    problems = [*_tensor_problems(folder, manifest), *_value_problems(store)]
    if confirm and not problems:
        problems += _digit_problems(store)
    return problems


def _schema_problems(manifest: Any) -> list[str]:
    schema = json.loads(SCHEMA_FILE.read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    return [
        f"manifest: {'/'.join(map(str, error.absolute_path)) or 'top level'}: {error.message}"
        for error in validator.iter_errors(manifest)
    ]


def _file_problems(folder: Path, manifest: dict[str, Any]) -> Iterator[str]:
    if manifest["spec_version"] != SPEC_VERSION:
        yield f"the vectors are of spec {manifest['spec_version']}, the suite is {SPEC_VERSION}"
    present = {path.name for path in folder.glob("*.safetensors")}
    for name in sorted(present - set(manifest["files"])):
        yield f"orphan: {name} is not in the manifest"
    for name, wanted in manifest["files"].items():
        if name not in present:
            yield f"{name} is in the manifest and missing from {folder}"
        elif hashlib.sha256((folder / name).read_bytes()).hexdigest() != wanted:
            yield f"{name} has another hash than the manifest says"


def _label_problems(manifest: dict[str, Any]) -> Iterator[str]:
    wanted = {
        f"{name}/{case.name}/{dtype}": case
        for name in component_names()
        for case, dtype in golden_cases(component(name))
    }
    found = {vector["id"]: vector for vector in manifest["vectors"]}
    if len(found) != len(manifest["vectors"]):
        yield "two vectors have the same id"
    for key in sorted(set(found) - set(wanted)):
        yield f"orphan: vector {key} belongs to no case"
    for key in sorted(set(wanted) - set(found)):
        yield f"vector {key} is missing: run `conformance fixtures build`"
    for key in sorted(set(found) & set(wanted)):
        vector, case = found[key], wanted[key]
        if vector["requirement"] not in all_requirements():
            yield f"{key}: there is no requirement {vector['requirement']}"
        if vector["requirement"] != case.requirement or vector["why"] != case.why:
            yield f"{key}: requirement or reason differ from the case"
        unknown = set(vector["flags"]) - set(component_spec(vector["component"]).flags)
        if unknown or not vector["flags"]:
            yield f"{key}: flags without a description: {sorted(unknown) or 'none at all'}"


def _tensor_problems(folder: Path, manifest: dict[str, Any]) -> Iterator[str]:
    for name in manifest["files"]:
        owner = name.removesuffix(".safetensors")
        vectors = [v for v in manifest["vectors"] if v["component"] == owner]
        named = set(_tensor_names(vectors))
        for key in sorted(set(decode((folder / name).read_bytes())) ^ named):
            yield f"orphan: tensor {key} stands in only one of {name} and the manifest"


def _tensor_names(vectors: list[dict[str, Any]]) -> Iterator[str]:
    for vector in vectors:
        yield from vector["arguments"].values()
        for bound in (vector["result"], *vector["gradients"].values()):
            yield from bound.values()
        if vector["cotangent"]:
            yield vector["cotangent"]


def _value_problems(store: GoldenStore) -> Iterator[str]:
    """Every argument, value and tolerance against what the cases and definitions give now."""
    for name in component_names():
        entries, tensors = component_vectors(component(name))
        for entry in entries:
            stored = store.get(name, entry["case"], entry["dtype"])
            assert stored is not None  # the labels were compared before
            for key in _tensor_names([entry]):
                if not _same(tensors[key], store.tensor(name, key), key):
                    yield f"{key}: the stored numbers differ from the recomputed ones"


def _same(fresh: np.ndarray, stored: np.ndarray, key: str) -> bool:
    if fresh.shape != stored.shape or fresh.dtype != stored.dtype:
        return False
    if key.endswith("/tolerance"):
        return bool((np.abs(fresh - stored) <= np.abs(stored) / 32).all())
    if key.endswith("/expected"):
        scale = np.abs(fresh).max(initial=0.0)
        return bool((np.abs(fresh - stored) <= scale * 2.0 ** (2 - VALUE_BITS)).all())
    return fresh.tobytes() == stored.tobytes()


def _digit_problems(store: GoldenStore) -> Iterator[str]:
    """The definitions evaluated with 50 digits agree with the stored exact values."""
    for vector in store.manifest["vectors"]:
        golden = store.read(vector)
        if golden.size > LARGEST_CONFIRMED:
            continue
        owner = component(vector["component"])
        wrt = tuple(golden.bounds.gradients)
        question = Question(owner.oracle, golden.arguments, wrt=wrt, cotangent=golden.cotangent)
        values = ensemble.evaluate_digits(question, DIGITS)
        bounds = [golden.bounds.result, *golden.bounds.gradients.values()]
        for value, bound in zip(values, bounds, strict=True):
            if not _confirmed(value, bound):
                yield f"{vector['id']}: the value with {DIGITS} digits differs from the stored one"


def _confirmed(value: Any, bound: Bound) -> bool:
    scale = np.abs(bound.expected).max(initial=0.0)
    error = np.abs(np.asarray(value, dtype=np.float64) - bound.expected)
    return bool((error <= scale * 2.0 ** (2 - VALUE_BITS)).all())
