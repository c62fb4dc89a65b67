"""Read golden vectors; each component's file is read when it is first needed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from conformance.errors import InternalError
from conformance.numerics.ensemble import Bound, Bounds
from conformance.numerics.tensors import decode

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Golden:
    """One golden vector: arguments, cotangent, exact values and tolerances."""

    arguments: Mapping[str, Any]
    bounds: Bounds
    cotangent: Any = None

    @property
    def size(self) -> int:
        """Entries of all arrays among the arguments."""
        nested = [v if isinstance(v, Mapping) else {"": v} for v in self.arguments.values()]
        return sum(int(np.size(a)) for group in nested for a in group.values())


def fixtures_folder() -> Path:
    """`fixtures/` of the source checkout, or the copy inside an installed wheel."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "fixtures", package.parent / "fixtures"):
        if (folder / MANIFEST).is_file():
            return folder
    raise InternalError(f"the golden vectors are missing: no fixtures/{MANIFEST} beside {package}")


def default_folder() -> Path:
    """Where `fixtures build` writes: `fixtures/` of a checkout, else of the current folder."""
    root = Path(__file__).resolve().parent.parent.parent
    return root / "fixtures" if (root / "pyproject.toml").is_file() else Path("fixtures")


class GoldenStore:
    """The golden vectors of a folder; an empty store when no folder is given."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._tensors: dict[str, dict[str, np.ndarray]] = {}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest as it stands in the file."""
        if self.folder is None:
            return {"vectors": [], "files": {}}
        try:
            data: dict[str, Any] = json.loads((self.folder / MANIFEST).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InternalError(f"cannot read {self.folder / MANIFEST}: {error}") from error
        return data

    @cached_property
    def _index(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        return {
            (vector["component"], vector["case"], vector["dtype"]): vector
            for vector in self.manifest["vectors"]
        }

    @cached_property
    def sha256(self) -> str:
        """Hash of the manifest, which holds the hashes of all files."""
        if self.folder is None:
            return ""
        return hashlib.sha256((self.folder / MANIFEST).read_bytes()).hexdigest()

    def get(self, component: str, case: str, dtype: str) -> Golden | None:
        """The vector of a case in a dtype, None when it is not stored."""
        vector = self._index.get((component, case, dtype))
        return None if vector is None else self.read(vector)

    def read(self, vector: Mapping[str, Any]) -> Golden:
        """The vector that an entry of the manifest describes."""
        tensors = self._file(vector["component"])
        arguments: dict[str, Any] = dict(vector["parameters"])
        for name, key in vector["arguments"].items():
            holder, _, entry = name.partition("/")
            if entry:
                arguments.setdefault(holder, {})[entry] = tensors[key]
            else:
                arguments[name] = tensors[key]
        cotangent = tensors[vector["cotangent"]] if vector["cotangent"] else None
        gradients = {name: _bound(tensors, keys) for name, keys in vector["gradients"].items()}
        return Golden(arguments, Bounds(_bound(tensors, vector["result"]), gradients), cotangent)

    def tensor(self, component: str, key: str) -> np.ndarray:
        """One stored tensor of a component's file."""
        return self._file(component)[key]

    def _file(self, component: str) -> dict[str, np.ndarray]:
        if component not in self._tensors:
            assert self.folder is not None
            name = f"{component}.safetensors"
            try:
                data = (self.folder / name).read_bytes()
            except OSError as error:
                raise InternalError(f"cannot read golden vectors: {error}") from error
            if hashlib.sha256(data).hexdigest() != self.manifest["files"].get(name):
                raise InternalError(
                    f"{self.folder / name} is not the file that the manifest describes; "
                    "run `conformance fixtures verify`"
                )
            self._tensors[component] = decode(data)
        return self._tensors[component]


def _bound(tensors: Mapping[str, np.ndarray], keys: Mapping[str, str]) -> Bound:
    expected = tensors[keys["expected"]]
    return Bound(expected, np.broadcast_to(tensors[keys["tolerance"]], expected.shape))
