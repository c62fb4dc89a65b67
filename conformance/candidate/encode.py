"""Requests to the worker: header and tensors for a call.

What no worker could carry out, whoever the candidate is, raises `InternalError` here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from conformance.candidate.frames import Header, arrays_of
from conformance.candidate.messages import Built, Call, ModuleCall, Observe
from conformance.candidate.worker import pack
from conformance.errors import InternalError
from conformance.numerics.tensors import CODES, DTYPES

if TYPE_CHECKING:
    from conformance.candidate.messages import Array


class _Tensors:
    """Collects the arrays of one request under short names."""

    def __init__(self) -> None:
        self._packed: list[tuple[str, str, Sequence[int], bytes]] = []

    def add(self, array: Array) -> str:
        array = np.asarray(array)
        code = CODES.get(array.dtype)
        if code is None:
            raise InternalError(f"arrays of dtype {array.dtype} cannot be sent")
        name = f"t{len(self._packed)}"
        self._packed.append((name, code, array.shape, array.tobytes()))
        return name

    def value(self, value: Any) -> Header:
        """One argument: a tensor, a dict of tensors, or a plain value."""
        if isinstance(value, np.ndarray):
            return {"tensor": self.add(value)}
        if isinstance(value, Mapping):
            return {"dict": {str(key): self.add(entry) for key, entry in value.items()}}
        if isinstance(value, np.generic):
            return {"value": value.item()}
        if value is None or isinstance(value, bool | int | float | str):
            return {"value": value}
        raise InternalError(f"an argument of type {type(value).__name__} cannot be sent")

    def body(self) -> bytes:
        return pack(self._packed) if self._packed else b""


def encode_call(call: Call | ModuleCall | Observe, identity: str) -> tuple[Header, bytes]:
    """Header and body of the request for `call`."""
    if isinstance(call, Observe):
        header, body = encode_call(call.call, identity)
        return {**header, "op": "observe", "of": header["op"]}, body
    tensors = _Tensors()
    work = _encode_module if isinstance(call, ModuleCall) else _encode_function
    header = work(call, tensors)  # type: ignore[arg-type]
    header["id"] = identity
    return header, tensors.body()


def _encode_function(call: Call, tensors: _Tensors) -> Header:
    _check_call(call)
    return {
        "op": "call",
        "function": call.function,
        "arguments": {name: tensors.value(value) for name, value in call.arguments.items()},
        "layouts": dict(call.layouts),
        "wrt": list(call.wrt),
        "cotangent": None if call.cotangent is None else tensors.add(call.cotangent),
        "mode": call.mode,
        "repeat": call.repeat,
        "backward_passes": call.backward_passes,
    }


#: layouts that the worker can make, see `Call.layouts`
_LAYOUTS = ("contiguous", "transposed", "swapped", "sliced", "expanded")


def _check_call(call: Call) -> None:
    """Raises InternalError for a call that cannot be carried out whoever the candidate is."""
    if call.wrt and call.cotangent is None:
        raise InternalError("a call with `wrt` needs a cotangent")
    arrays = arrays_of(call.arguments)
    for name in call.wrt:
        if name not in arrays or not _floating(arrays[name]):
            raise InternalError(f"cannot differentiate with respect to {name}")
    for name, layout in call.layouts.items():
        if name not in arrays or layout not in _LAYOUTS:
            raise InternalError(f"no layout {layout!r} for {name}")
        array = arrays[name]
        if layout == "expanded" and array.ndim and (array != array[:1]).any():
            raise InternalError(f"{name} cannot be expanded: its rows differ")


def _floating(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype == DTYPES["BF16"]


def _encode_module(call: ModuleCall, tensors: _Tensors) -> Header:
    state = call.state
    return {
        "op": "module",
        "class_name": call.class_name,
        "constructor": _keywords(call.constructor, tensors),
        "seed": call.seed,
        "signature_only": call.signature_only,
        "state": None if state is None else {k: tensors.add(v) for k, v in state.items()},
        "strict": call.strict,
        "convert": call.convert,
        "inputs": [tensors.value(value) for value in call.inputs],
        "cotangent": None if call.cotangent is None else tensors.add(call.cotangent),
        "return_state": call.return_state,
        "steps": call.steps,
    }


def _keywords(constructor: Mapping[str, Any], tensors: _Tensors) -> Header:
    """Plain values as they are; an object to be built as {"class": name, "constructor": ...}."""

    def one(value: Any) -> Any:
        if isinstance(value, Built):
            return {
                "class": value.class_name,
                "constructor": _keywords(value.constructor, tensors),
            }
        return tensors.value(value)["value"]

    return {name: one(value) for name, value in constructor.items()}
