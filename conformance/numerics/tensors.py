"""NumPy arrays to and from the safetensors format, the 16-bit formats included.

The format is written with the worker's few lines, which write it byte by byte in the order given,
and read with the safetensors library, which checks everything.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import safetensors

from conformance.candidate.worker import pack

DTYPES: Mapping[str, np.dtype[Any]] = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I64": np.dtype(np.int64),
    "I32": np.dtype(np.int32),
    "I16": np.dtype(np.int16),
    "I8": np.dtype(np.int8),
    "U8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
}
"""Name in the format -> dtype."""

CODES: Mapping[np.dtype[Any], str] = {dtype: code for code, dtype in DTYPES.items()}
"""Dtype -> name in the format."""


def encode(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> bytes:
    """Safetensors bytes of named arrays; the same arrays and texts give the same bytes.

    `metadata` are texts that the file says about itself.
    """
    data = pack([(n, CODES[a.dtype], a.shape, a.tobytes()) for n, a in sorted(arrays.items())])
    return data if metadata is None else _described(data, metadata)


def _described(data: bytes, metadata: Mapping[str, str]) -> bytes:
    """The same file with metadata in its head; the places of tensors are counted from its end."""
    length = struct.Struct("<Q")
    end = length.size + length.unpack_from(data)[0]
    table = json.loads(data[length.size : end])
    head = json.dumps({"__metadata__": dict(metadata), **table}).encode()
    head += b" " * (-len(head) % 8)
    return length.pack(len(head)) + head + data[end:]


def decode(data: bytes) -> dict[str, np.ndarray]:
    """Named read-only arrays of safetensors bytes; raises ValueError when they are malformed."""
    try:
        entries = safetensors.deserialize(data)  # type: ignore[no-untyped-call]  # compiled
    except safetensors.SafetensorError as error:
        raise ValueError(f"not valid safetensors data: {error}") from error
    arrays = {}
    for name, entry in entries:
        dtype = DTYPES.get(entry["dtype"])
        if dtype is None:
            raise ValueError(f"tensor '{name}' has the unknown dtype {entry['dtype']}")
        arrays[name] = np.frombuffer(entry["data"], dtype=dtype).reshape(entry["shape"])
    return arrays
