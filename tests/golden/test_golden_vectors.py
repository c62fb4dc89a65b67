"""The golden vectors: reproducible, described, and true."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from conformance.errors import InternalError
from conformance.golden.build import build, keep_bits
from conformance.golden.load import MANIFEST, GoldenStore, fixtures_folder
from conformance.golden.verify import verify
from conformance.numerics.tensors import decode, encode

LIMIT = 10_000_000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fixtures")
    build(folder)
    return folder


def test_a_second_build_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    build(tmp_path)
    for path in sorted(built.iterdir()):
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_the_stored_vectors_are_those_that_are_built_now(built: Path) -> None:
    stored = fixtures_folder()
    assert json.loads((stored / MANIFEST).read_text()) == json.loads((built / MANIFEST).read_text())


def test_the_stored_vectors_are_small() -> None:
    assert sum(path.stat().st_size for path in fixtures_folder().iterdir()) < LIMIT


def test_the_stored_vectors_verify() -> None:
    assert verify(fixtures_folder()) == []


def test_values_are_confirmed_with_fifty_digits() -> None:
    assert verify(fixtures_folder(), confirm=True) == []


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    shutil.copytree(built, folder)
    return folder


def _edit(folder: Path, change: object) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    change(manifest)  # type: ignore[operator]
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_a_changed_byte_is_found(copy: Path) -> None:
    path = copy / "linear.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert any("another hash" in problem for problem in verify(copy))
    vector = json.loads((copy / MANIFEST).read_text())["vectors"][0]
    with pytest.raises(InternalError, match="not the file"):
        GoldenStore(copy).get("linear", vector["case"], vector["dtype"])


def test_a_changed_value_with_a_matching_hash_is_found(copy: Path) -> None:
    import hashlib

    path = copy / "silu.safetensors"
    tensors = {name: np.array(value) for name, value in decode(path.read_bytes()).items()}
    key = next(name for name in tensors if name.endswith("result/expected"))
    tensors[key].reshape(-1)[0] += 1e-3
    data = encode(tensors)
    path.write_bytes(data)
    _edit(copy, lambda m: m["files"].update({path.name: hashlib.sha256(data).hexdigest()}))
    assert verify(copy) == [f"{key}: the stored numbers differ from the recomputed ones"]


def test_unknown_keys_orphans_and_missing_vectors_are_found(copy: Path) -> None:
    _edit(copy, lambda m: m.update(extra=1))
    assert any("extra" in problem for problem in verify(copy))
    _edit(copy, lambda m: m.pop("extra"))
    (copy / "other.safetensors").write_bytes(encode({}))
    assert any("orphan: other.safetensors" in problem for problem in verify(copy))
    (copy / "other.safetensors").unlink()
    _edit(copy, lambda m: m["vectors"].pop())
    assert any("is missing" in problem for problem in verify(copy))


def test_no_manifest_is_one_clear_problem(tmp_path: Path) -> None:
    (problem,) = verify(tmp_path)
    assert "cannot be read" in problem


def test_rounding_keeps_the_promised_bits() -> None:
    values = np.array([1.0, -1.0, 1 / 3, 1e-30, 0.0])
    kept = keep_bits(values, 30)
    assert (np.abs(kept - values) <= np.abs(values) * 2.0**-30).all()
    up = keep_bits(values, 8, up=True)
    assert (np.abs(up) >= np.abs(values)).all()
    assert (np.abs(up - values) <= np.abs(values) * 2.0**-7).all()
