"""Frames: what is sent arrives, and nothing that arrives can harm the judge."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.candidate import encode, frames, worker
from conformance.candidate.frames import MalformedFrame
from conformance.candidate.messages import Call, ModuleCall, Outcome, Reply
from conformance.errors import InternalError

X = np.arange(6, dtype=np.float32).reshape(2, 3)
CALL = Call("run_it", {"x": X, "weights": {"a": X}, "n": 3}, wrt=("x",), cotangent=X)
ANSWER: dict[str, Any] = {
    "id": "1",
    "outcome": "passed",
    "message": "",
    "outputs": ["o0"],
    "dtype": "float32",
    "device": "cpu",
    "gradients": {"x": "g0"},
    "modified": [],
    "aliased": [],
    "overwritten": False,
    "seconds": 0.25,
}
BODY = worker.pack([("o0", "F32", (2, 3), X.tobytes()), ("g0", "F32", (2, 3), X.tobytes())])


# -- the format of the body ----------------------------------------------------------------------


def test_packed_tensors_are_valid_safetensors() -> None:
    packed = worker.pack(
        [("a", "F32", (2, 3), X.tobytes()), ("e", "I64", (0,), b""), ("s", "BOOL", (), b"\1")]
    )
    loaded = safetensors.numpy.load(packed)
    np.testing.assert_array_equal(loaded["a"], X)
    assert loaded["e"].shape == (0,)
    assert loaded["s"].shape == ()
    assert loaded["s"]


def test_safetensors_files_are_unpacked() -> None:
    data = safetensors.numpy.save({"a": X, "b": np.arange(3)}, metadata={"made": "by hand"})
    found = {name: (dtype, shape, data[i:j]) for name, dtype, shape, i, j in worker.unpack(data)}
    assert found["a"] == ("F32", [2, 3], X.tobytes())
    assert found["b"] == ("I64", [3], np.arange(3).tobytes())


def test_bfloat16_arrives_as_such() -> None:
    value = np.array([1.5, -2], dtype=ml_dtypes.bfloat16)
    body = worker.pack([("v", "BF16", (2,), value.tobytes())])
    decoded = frames.decode_tensors(body)["v"]
    assert decoded.dtype == value.dtype
    np.testing.assert_array_equal(decoded, value)


# -- requests ------------------------------------------------------------------------------------


def test_request_names_its_tensors() -> None:
    header, body = encode.encode_call(CALL, "7")
    assert header["id"] == "7"
    assert header["arguments"]["n"] == {"value": 3}
    tensors = frames.decode_tensors(body)
    np.testing.assert_array_equal(tensors[header["arguments"]["x"]["tensor"]], X)
    np.testing.assert_array_equal(tensors[header["arguments"]["weights"]["dict"]["a"]], X)


def test_strided_arrays_and_numpy_scalars_are_sent_by_value() -> None:
    header, body = encode.encode_call(Call("run_it", {"x": X.T, "eps": np.float64(0.5)}, {}), "1")
    tensors = frames.decode_tensors(body)
    np.testing.assert_array_equal(tensors[header["arguments"]["x"]["tensor"]], X.T)
    assert header["arguments"]["eps"] == {"value": 0.5}


@pytest.mark.parametrize("value", [object(), [1, 2], X.astype(np.complex64), b"bytes"])
def test_what_cannot_be_sent_is_our_mistake(value: Any) -> None:
    with pytest.raises(InternalError):
        encode.encode_call(Call("run_it", {"x": value}), "1")


@pytest.mark.parametrize(
    "call",
    [
        Call("run_it", {"x": X}, wrt=("x",)),
        Call("run_it", {"x": X}, wrt=("y",), cotangent=X),
        Call("run_it", {"x": X.astype(np.int64)}, wrt=("x",), cotangent=X),
        Call("run_it", {"x": X}, layouts={"x": "upside down"}),
        Call("run_it", {"x": X}, layouts={"y": "sliced"}),
        Call("run_it", {"x": X}, layouts={"x": "expanded"}),
    ],
)
def test_calls_that_nobody_could_answer_are_our_mistake(call: Call) -> None:
    with pytest.raises(InternalError):
        encode.encode_call(call, "1")


# -- answers -------------------------------------------------------------------------------------


def test_answer_becomes_a_reply() -> None:
    reply = frames.decode_reply(ANSWER, BODY, CALL)
    assert reply.outcome is Outcome.PASSED
    np.testing.assert_array_equal(reply.outputs[0], X)
    np.testing.assert_array_equal(reply.gradients["x"], X)
    assert reply.seconds == 0.25


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "wonderful"},
        {"outcome": "timed out"},
        {"outcome": None},
        {"outcome": "raised"},
        {"outcome": "raised", "outputs": [], "gradients": {}, "message": ""},
        {"message": 5},
        {"message": "x" * 1_000_000},
        {"outputs": []},
        {"outputs": ["o0", "o0"]},
        {"outputs": ["nothing"]},
        {"outputs": [["o0"]]},
        {"outputs": {"o0": 1}},
        {"dtype": "float64"},
        {"dtype": "bfloat16"},
        {"gradients": {}},
        {"gradients": {"y": None}},
        {"gradients": {"x": 3}},
        {"gradients": ["x"]},
        {"modified": "x"},
        {"modified": [1]},
        {"overwritten": 1},
        {"seconds": -1},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"seconds": True},
        {"seconds": 10**400},
        {"module": {"parameters": [{"name": "w"}]}},
        {"module": {"parameters": [{"name": "w", "shape": ["3"], "dtype": "float32"}]}},
        {"module": {"parameters": [{"name": "w", "shape": [3], "evil": 1}]}},
        {"module": {"losses": ["0.5"]}},
        {"module": {"losses": [10**400]}},
        {"module": []},
    ],
)
def test_lies_are_malformed(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedFrame):
        frames.decode_reply({**ANSWER, **change}, BODY, CALL)


def test_gradient_of_another_shape_is_malformed() -> None:
    body = worker.pack([("o0", "F32", (2, 3), X.tobytes()), ("g0", "F32", (6,), X.tobytes())])
    with pytest.raises(MalformedFrame):
        frames.decode_reply(ANSWER, body, CALL)


@pytest.mark.parametrize("body", [b"nonsense", BODY[:-1], BODY + b"x", b"\xff" * 64])
def test_broken_bodies_are_malformed(body: bytes) -> None:
    with pytest.raises(MalformedFrame):
        frames.decode_reply(ANSWER, body, CALL)


def test_module_answer_needs_an_output_only_if_there_is_an_input() -> None:
    call = ModuleCall("RMSNorm", {"d_model": 4})
    header = {"outcome": "passed", "module": {"constructor": ["d_model"]}}
    assert frames.decode_reply(header, b"", call).module["constructor"] == ["d_model"]


def test_control_characters_do_not_reach_a_terminal() -> None:
    assert frames.clean("a\x1b[31mb\nc\td\udcff") == "a\ufffd[31mb\nc\td\ufffd"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::add-mask::x", ": :add-mask::x"),
        ("x\n  ::a-token::", "x\n  : :a-token::"),
        ("cut off:x::error file=y::z", "cut off:x: :error file=y::z"),
        ("a ##[group]b", "a # #[group]b"),
        ("##vso[task.complete result=Succeeded;]", "# #vso[task.complete result=Succeeded;]"),
        ("torch::jit, a :: b, # [x]", "torch::jit, a :: b, # [x]"),
    ],
)
def test_commands_do_not_reach_the_log_of_a_ci_system(text: str, shown: str) -> None:
    assert frames.clean(text) == shown


def test_an_output_larger_than_any_answer_is_malformed() -> None:
    large = np.zeros(worker.MAX_GRADED_BYTES // 4 + 1, dtype=np.float32)
    parts = {"o0": large, "g0": X}
    body = worker.pack([(n, "F32", a.shape, a.tobytes()) for n, a in parts.items()])
    with pytest.raises(MalformedFrame, match="larger than any answer"):
        frames.decode_reply(ANSWER, body, CALL)


# -- the stream ----------------------------------------------------------------------------------


def test_a_body_that_is_announced_too_long_is_not_read() -> None:
    stream = io.BytesIO(frames.join({"a": 1}, bytes(100)))
    with pytest.raises(MalformedFrame, match="too long"):
        frames.read_frame(stream, 99)
    assert stream.tell() == worker.PREFIX.size


def test_frames_are_read_one_by_one() -> None:
    stream = io.BytesIO(frames.join({"a": 1}, b"xy") + frames.join({"b": 2}, b""))
    assert frames.read_frame(stream) == ({"a": 1}, b"xy")
    assert frames.read_frame(stream) == ({"b": 2}, b"")
    assert frames.read_frame(stream) is None


@pytest.mark.parametrize(
    "data",
    [
        worker.PREFIX.pack(1 << 40, 0),
        worker.PREFIX.pack(2, 1 << 40) + b"{}",
        worker.PREFIX.pack(2, 0) + b"[]",
        worker.PREFIX.pack(3, 0) + b"{},",
        worker.PREFIX.pack(2, 0) + b"\xff\xfe",
        worker.PREFIX.pack(100_000, 0) + b"[" * 100_000,
    ],
)
def test_malformed_frames(data: bytes) -> None:
    with pytest.raises(MalformedFrame):
        frames.read_frame(io.BytesIO(data))


def read_all(data: bytes) -> None:
    """Reads as the judge does; only MalformedFrame may come out."""
    stream = io.BytesIO(data)
    try:
        while (frame := frames.read_frame(stream)) is not None:
            reply = frames.decode_reply(*frame, CALL)
            assert isinstance(reply, Reply)
    except MalformedFrame:
        pass


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    read_all(data)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 255), st.integers(0, 10_000))
def test_one_wrong_byte(place: int, byte: int, cut: int) -> None:
    data = bytearray(frames.join(ANSWER, BODY))
    data[place % len(data)] = byte
    read_all(bytes(data[: 1 + cut % len(data)]))
    read_all(bytes(data))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([*ANSWER, "module", "state", "traceback"]), JSON)
def test_wrong_values_in_a_header(key: str, value: Any) -> None:
    read_all(frames.join({**ANSWER, key: value}, BODY))


@settings(max_examples=300, deadline=None)
@given(JSON, st.binary(max_size=64))
def test_wrong_tables_in_a_body(table: Any, data: bytes) -> None:
    text = json.dumps({"o0": table, "g0": table}).encode()
    body = len(text).to_bytes(8, "little") + text + data
    read_all(frames.join(ANSWER, body))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(["functions", "classes", "threads", "notices"]), JSON))
def test_wrong_descriptions(header: dict[str, Any]) -> None:
    with contextlib.suppress(MalformedFrame):
        frames.decode_description(header)
