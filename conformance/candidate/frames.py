"""Frames between judge and worker, on the judge's side: written plainly, read with suspicion.

A frame is two little-endian 64-bit lengths, a JSON header and a body in the safetensors format.
Nothing in it can execute when it is decoded.  What comes from the worker may have been written by
the candidate, so every length, type and name is checked; whatever does not fit raises
`MalformedFrame`, and the worker that sent it is done with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, NoReturn

import numpy as np
import safetensors

from conformance.candidate.messages import (
    Argument,
    Call,
    Description,
    ModuleCall,
    Observe,
    Outcome,
    Reply,
    Use,
)
from conformance.candidate.worker import MAX_GRADED_BYTES, PREFIX
from conformance.numerics.tensors import DTYPES

if TYPE_CHECKING:
    from conformance.candidate.messages import Array

MAX_HEADER = 16 << 20
MAX_BODY = 1 << 30
MAX_TEXT = 64 << 10
MAX_NAMES = 100_000

Header = dict[str, Any]

#: names as torch gives them -> dtype of the array that must come with them
_TORCH_NAMES = {dtype.name: dtype for dtype in DTYPES.values()}


class MalformedFrame(Exception):
    """The worker sent something that is no answer."""


# -- reading and writing the stream --------------------------------------------------------------


def join(header: Header, body: bytes) -> bytes:
    """One frame, ready to be written."""
    text = json.dumps(header).encode()
    return PREFIX.pack(len(text), len(body)) + text + body


def read_frame(stream: IO[bytes], most: int = MAX_BODY) -> tuple[Header, bytes] | None:
    """The next frame of `stream`; None at its end, in the middle of a frame too.

    MalformedFrame for a body of more than `most` bytes, before any of it is read.
    """
    prefix = stream.read(PREFIX.size)
    if len(prefix) < PREFIX.size:
        return None
    header_size, body_size = PREFIX.unpack(prefix)
    if header_size > MAX_HEADER or body_size > most:
        raise MalformedFrame("a frame that is too long")
    text = stream.read(header_size)
    body = stream.read(body_size)
    if len(text) < header_size or len(body) < body_size:
        return None
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedFrame("a header that is not JSON") from None
    if not isinstance(header, dict):
        raise MalformedFrame("a header that is not an object")
    return header, body


# -- answers -------------------------------------------------------------------------------------


def decode_tensors(body: bytes) -> dict[str, Array]:
    """Name -> read-only array for each tensor of a safetensors file."""
    if not body:
        return {}
    try:
        entries = safetensors.deserialize(body)  # type: ignore[no-untyped-call]
    except Exception:
        raise MalformedFrame("a body that is not in the safetensors format") from None
    arrays: dict[str, Array] = {}
    for name, entry in entries:
        dtype = DTYPES.get(entry["dtype"])
        if dtype is None:
            raise MalformedFrame(f"a tensor of the unknown dtype {entry['dtype']}")
        array = np.frombuffer(bytes(entry["data"]), dtype=dtype)
        arrays[name] = array.reshape(tuple(entry["shape"]))
    return arrays


class _Answer:
    """Typed access to the fields of an answer; each accessor raises `MalformedFrame`."""

    def __init__(self, header: Header, tensors: Mapping[str, Array]) -> None:
        self._header = header
        self._tensors = tensors

    def _bad(self, key: str) -> NoReturn:
        raise MalformedFrame(f"an answer with a wrong field '{key[:50]}'")

    def text(self, key: str, default: str = "") -> str:
        value = self._header.get(key, default)
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            self._bad(key)
        return clean(value)

    def names(self, key: str) -> tuple[str, ...]:
        value = self._header.get(key, [])
        if not isinstance(value, list) or len(value) > MAX_NAMES:
            self._bad(key)
        if not all(isinstance(n, str) and len(n) <= MAX_TEXT for n in value):
            self._bad(key)
        return tuple(clean(n) for n in value)

    def items(self, key: str) -> list[Any]:
        value = self._header.get(key, [])
        if not isinstance(value, list) or len(value) > MAX_NAMES:
            self._bad(key)
        return value

    def flag(self, key: str) -> bool:
        value = self._header.get(key, False)
        if not isinstance(value, bool):
            self._bad(key)
        return value

    def number(self, key: str) -> float:
        value = self._header.get(key, 0.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            self._bad(key)
        return float(value)

    def table(self, key: str) -> dict[str, Any]:
        value = self._header.get(key, {})
        if not isinstance(value, dict) or len(value) > MAX_NAMES:
            self._bad(key)
        return value

    def array(self, key: str, reference: Any) -> Array:
        if not isinstance(reference, str) or reference not in self._tensors:
            self._bad(key)
        return self._tensors[reference]

    def arrays(self, key: str) -> dict[str, Array | None]:
        return {
            name: None if reference is None else self.array(key, reference)
            for name, reference in self.table(key).items()
        }


_REPLY_OUTCOMES = frozenset(
    {
        Outcome.PASSED,
        Outcome.FAILED,
        Outcome.NOT_IMPLEMENTED,
        Outcome.RAISED,
        Outcome.OUT_OF_MEMORY,
        Outcome.DELEGATED,
    }
)


def decode_reply(header: Header, body: bytes, call: Call | ModuleCall | Observe) -> Reply:
    """The answer to `call`; raises `MalformedFrame` for anything that is none."""
    answer = _Answer(header, decode_tensors(body))
    outcome = answer.text("outcome")
    if outcome not in _REPLY_OUTCOMES:
        raise MalformedFrame("an answer without a known outcome")
    if isinstance(call, Observe):
        return Reply(
            outcome=Outcome(outcome),
            message=answer.text("message"),
            uses=tuple(_use(entry) for entry in answer.items("uses")),
            files=answer.names("files"),
            whole=answer.flag("whole"),
        )
    reply = Reply(
        outcome=Outcome(outcome),
        message=answer.text("message"),
        traceback=answer.text("traceback"),
        outputs=tuple(answer.array("outputs", name) for name in answer.names("outputs")),
        dtype=answer.text("dtype"),
        device=answer.text("device"),
        gradients=answer.arrays("gradients"),
        second_gradients=answer.arrays("second_gradients"),
        modified=answer.names("modified"),
        aliased=answer.names("aliased"),
        overwritten=answer.flag("overwritten"),
        seconds=answer.number("seconds"),
        module=decode_module(answer.table("module")),
        state={k: v for k, v in answer.arrays("state").items() if v is not None},
    )
    _check_reply(reply, call)
    return reply


def _check_reply(reply: Reply, call: Call | ModuleCall) -> None:
    """Does the answer have as many parts as were asked for, of the dtype that it says?"""
    if reply.outcome is not Outcome.PASSED:
        if reply.outputs or reply.gradients or reply.state:
            raise MalformedFrame("values together with a failure")
        if not reply.message:
            raise MalformedFrame("a failure without a word")
        return
    wanted = max(1, call.repeat) if isinstance(call, Call) else int(bool(call.inputs))
    if len(reply.outputs) != wanted:
        raise MalformedFrame(f"{len(reply.outputs)} outputs instead of {wanted}")
    if any(output.nbytes > MAX_GRADED_BYTES for output in reply.outputs):
        raise MalformedFrame("an output that is larger than any answer")
    if reply.outputs and reply.outputs[0].dtype != _TORCH_NAMES.get(reply.dtype):
        raise MalformedFrame("an output of another dtype than it says")
    if isinstance(call, Call) and call.wrt and set(reply.gradients) != set(call.wrt):
        raise MalformedFrame("gradients of other arguments than asked for")
    shapes = {name: array.shape for name, array in _asked(call).items()}
    for gradients in (reply.gradients, reply.second_gradients):
        for name, gradient in gradients.items():
            if gradient is not None and gradient.shape != shapes.get(name, gradient.shape):
                raise MalformedFrame(f"a gradient of the wrong shape for {name[:100]}")


def arrays_of(arguments: Mapping[str, Any]) -> dict[str, Array]:
    """Every array among the arguments, entries of dicts as "weights.x"."""
    arrays: dict[str, Array] = {}
    for name, value in arguments.items():
        if isinstance(value, Mapping):
            arrays |= {f"{name}.{key}": np.asarray(entry) for key, entry in value.items()}
        elif isinstance(value, np.ndarray):
            arrays[name] = value
    return arrays


def _asked(call: Call | ModuleCall) -> dict[str, Array]:
    """The arrays whose gradients may come back."""
    if isinstance(call, Call):
        return arrays_of(call.arguments)
    first = call.inputs[0] if call.inputs else None
    return {"input": first} if isinstance(first, np.ndarray) else {}


#: what an entry of "parameters", "buffers" and "state" of a module holds
_FACTS: dict[str, type] = {
    "name": str,
    "shape": list,
    "dtype": str,
    "device": str,
    "requires_grad": bool,
    "persistent": bool,
}


def decode_module(table: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a module, each part of the type that `Reply.module` promises."""
    module: dict[str, Any] = {}
    for key in ("parameters", "buffers", "state"):
        if key in table:
            module[key] = [_facts(entry) for entry in _list(table[key])]
    if "losses" in table:
        module["losses"] = [_real(value) for value in _list(table["losses"])]
    if "constructor" in table:
        module["constructor"] = [clean(str(name)[:200]) for name in _list(table["constructor"])]
    for key in ("signature", "forward"):
        if key in table:
            module[key] = tuple(_argument(entry) for entry in _list(table[key]))
    return module


def _argument(entry: Any) -> Argument:
    wanted = {"name": str, "required": bool, "positional": bool, "keyword": bool}
    if not isinstance(entry, dict) or {k: type(v) for k, v in entry.items()} != wanted:
        raise MalformedFrame("a signature without a proper parameter")
    return Argument(**{**entry, "name": clean(entry["name"][:200])})


def _use(entry: Any) -> Use:
    if not isinstance(entry, list) or [type(part) for part in entry] != [str, int, list]:
        raise MalformedFrame("a use that is none")
    file, line, names = entry
    if not (0 <= line < 1 << 31 and all(isinstance(name, str) for name in names)):
        raise MalformedFrame("a use without a proper place")
    return Use(clean(file[:1000]), line, tuple(clean(name[:300]) for name in names[:200]))


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > MAX_NAMES:
        raise MalformedFrame("a list that is none")
    return value


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedFrame("a number that is none")
    try:
        return float(value)
    except OverflowError:
        raise MalformedFrame("a number that is too large") from None


def _facts(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise MalformedFrame("a parameter without a description")
    facts: dict[str, Any] = {k: v for k, v in entry.items() if type(v) is _FACTS.get(k)}
    if "name" not in facts or "shape" not in facts or len(facts) != len(entry):
        raise MalformedFrame("a parameter without a proper description")
    if not all(type(n) is int and n >= 0 for n in facts["shape"]):
        raise MalformedFrame("a parameter without a proper shape")
    return facts


def decode_description(header: Header) -> Description:
    """The answer to the request "load", when it says that the candidate was loaded."""
    answer = _Answer(header, {})
    functions = {}
    for name, parameters in answer.table("functions").items():
        if not isinstance(parameters, list) or not all(isinstance(p, str) for p in parameters):
            raise MalformedFrame("a function without a list of parameters")
        functions[name] = tuple(parameters)
    classes = answer.table("classes")
    if not all(isinstance(place, str) for place in classes.values()):
        raise MalformedFrame("a class without a place")
    return Description(
        functions=functions,
        classes={name: clean(place) for name, place in classes.items()},
        python=answer.text("python"),
        torch=answer.text("torch"),
        platform=answer.text("platform"),
        device=answer.text("device"),
        device_name=answer.text("device_name"),
        threads=int(answer.number("threads")),
        isolation=answer.names("isolation"),
        notices=answer.names("notices"),
        printed="",
    )


#: what a CI system executes when it finds it in the log of a job: `::error::`, `##[error]`
_COMMAND = re.compile(
    r"(?<!\S)::(?=\S)"
    r"|::(?=(?:add-|debug|echo|endgroup|error|group|notice|remove-|save-|set-|stop-|warning))"
    r"|##(?=\w*\[)"
)


def clean(text: str) -> str:
    """`text` without what is more than text to a terminal or to the log of a CI system."""
    if not text.isprintable():
        text = "".join(
            c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
        )
    return _COMMAND.sub(lambda found: f"{found[0][0]} {found[0][1]}", text)
