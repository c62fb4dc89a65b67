"""Counterexamples as files: nothing is lost, and a file that is none is named with its mistake."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.counterexample.form import Counterexample, from_head
from conformance.counterexample.head import ENTRY, read_head
from conformance.errors import UsageError
from conformance.golden.load import GoldenStore, fixtures_folder
from conformance.numerics.tensors import decode, encode
from conformance.spec import component_names
from conformance.suite.component import component

GOLDEN = GoldenStore(fixtures_folder())


def counterexample(name: str = "rmsnorm", case: str = "gradient", **more: Any) -> Counterexample:
    """A case with its golden values as if it had failed."""
    owner = component(name)
    found = owner.case(case)
    dtype = found.dtypes[0]
    golden = GOLDEN.get(name, case, dtype)
    values: dict[str, Any] = {
        "check": f"{name}::some_check[{dtype}]",
        "requirement": found.requirement,
        "component": name,
        "function": owner.function,
        "dtype": dtype,
        "arguments": golden.arguments if golden else found.arguments(dtype),
        "case": case,
        "wrt": found.wrt if golden else (),
        "cotangent": golden.cotangent if golden else None,
        "bounds": golden.bounds if golden else None,
        "impl": "mine",
    }
    return Counterexample(**{**values, **more})


def read(path: Path, data: bytes) -> Counterexample:
    path.write_bytes(data)
    return from_head(read_head(path))


def same(left: Any, right: Any) -> bool:
    """Equal values of one type, and dictionaries in one order."""
    if isinstance(left, Mapping):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right, equal_nan=True)
    return type(left) is type(right) and (left == right or left != left)


@pytest.mark.parametrize("name", component_names())
def test_every_case_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    for case in component(name).cases:
        wanted = counterexample(name, case.name)
        found = read(tmp_path / "file", wanted.to_bytes())
        assert same(wanted.arguments, found.arguments)
        assert (found.wrt, found.case, found.function) == (wanted.wrt, case.name, wanted.function)
        assert same(found.cotangent, wanted.cotangent)
        if wanted.bounds is not None:
            assert found.bounds is not None
            assert same(found.bounds.result.expected, wanted.bounds.result.expected)
            assert set(found.bounds.gradients) == set(wanted.bounds.gradients)
        assert wanted.to_bytes() == found.to_bytes()


def test_numbers_that_json_cannot_write(tmp_path: Path) -> None:
    arguments = {"logits": np.zeros((1, 2), np.float32), "temperature": np.inf, "top_p": None}
    wanted = counterexample("next_token", "ordinary", arguments=arguments, bounds=None)
    assert same(dict(read(tmp_path / "file", wanted.to_bytes()).arguments), arguments)


def test_other_programs_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    path.write_bytes(counterexample(how={"layouts": {"in_features": "sliced"}}).to_bytes())
    with safetensors.safe_open(path, framework="numpy") as file:
        description = json.loads(file.metadata()[ENTRY])
        assert "argument/in_features" in file.keys()  # noqa: SIM118  # it is no dictionary
        assert file.get_tensor("result/expected").dtype == np.float64
    assert description["how"] == {"layouts": {"in_features": "sliced"}}
    assert description["candidate"] == {"impl": "mine", "options": {}}


GOOD = counterexample().to_bytes()
HEAD_END = 8 + struct.unpack_from("<Q", GOOD)[0]


METADATA: Mapping[str, str] = json.loads(GOOD[8:HEAD_END])["__metadata__"]


def with_description(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """A good file whose description has been changed."""
    description = json.loads(METADATA[ENTRY])
    change(description)
    return encode(decode(GOOD), {ENTRY: json.dumps(description)})


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it ends after 0 bytes"),
    "text": (b"import torch\n\ndef run_silu(x):\n    return x\n", "not a safetensors file"),
    "cut off in its head": (
        GOOD[:100],
        f"its head ends at byte {HEAD_END:,}, the file at byte 100",
    ),
    "cut off in its tensors": (GOOD[:-9], f"the file at byte {len(GOOD) - 9:,}"),
    "longer than it says": (GOOD + b"\0" * 8, "cut off or damaged"),
    "a head that is no JSON": (GOOD[:8] + b"\0" * 9 + GOOD[17:], "not JSON"),
    "another file of tensors": (encode({"x": np.zeros(3)}), "without the entry 'conformance'"),
    "another entry": (encode({}, {ENTRY: "[1]"}), "not an object of JSON"),
    "another schema": (
        with_description(lambda d: d.update(schema="transformer-conformance/counterexample/9")),
        "has the schema 'transformer-conformance/counterexample/9'; this version reads",
    ),
    "no candidate": (with_description(lambda d: d.pop("candidate")), "which candidate"),
    "options": (with_description(lambda d: d["candidate"].update(options=[])), "options"),
    "a key too few": (with_description(lambda d: d.pop("wrt")), "key 'wrt' is missing"),
    "a key too many": (with_description(lambda d: d.update(more=1)), "unknown key 'more'"),
    "another function": (
        with_description(lambda d: d.update(function="run_silu")),
        "check, component and function do not belong together",
    ),
    "another layout": (
        with_description(lambda d: d.update(how={"layouts": {"in_features": "spiral"}})),
        "no layout 'spiral'",
    ),
    "other arguments": (
        with_description(lambda d: d.update(arguments=["eps"])),
        "run_rmsnorm does not take the arguments eps",
    ),
    "endless": (with_description(lambda d: d.update(how={"repeat": 10**9})), "repeat"),
    "a tensor too few": (
        encode(
            {n: a for n, a in decode(GOOD).items() if n != "result/tolerance"},
            METADATA,
        ),
        "the tensor 'result/tolerance' is missing",
    ),
    "a tensor too many": (
        encode(
            {**decode(GOOD), "more": np.zeros(2)},
            METADATA,
        ),
        "tensor 'more' belongs to nothing",
    ),
    "an integer result": (
        encode(
            {**decode(GOOD), "result/expected": np.zeros(2, np.int64)},
            METADATA,
        ),
        "result: expected values and tolerances are not float64",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_named_with_what_is_wrong(kind: str, tmp_path: Path) -> None:
    data, words = BAD[kind]
    with pytest.raises(UsageError) as caught:
        read(tmp_path / "some.safetensors", data)
    assert "some.safetensors" in caught.value.message
    assert words in caught.value.message
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 1000


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a file"):
        read_head(tmp_path)
    with pytest.raises(UsageError, match="cannot read"):
        read_head(tmp_path / "missing")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damage_anywhere_is_an_error_of_ours_or_none(
    data: st.DataObject, tmp_path_factory: Any
) -> None:
    content = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    try:
        found = read(path, bytes(content))
    except UsageError:
        return
    assert found.component == "rmsnorm"
