"""The head of a counterexample: read before anything heavy is imported, and with suspicion.

Such a file may have been cut off, come from another program or from somebody else. Its head says
which candidate to open, so it is read before that candidate's folders are off `sys.path`, with the
standard library alone; `form` reads the rest.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.errors import UsageError

SCHEMA = "transformer-conformance/counterexample/1"
ENTRY = "conformance"
"""Entry of the safetensors metadata that holds the description, a JSON object."""

LARGEST_FILE = 256 << 20
LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Head:
    """A file whose parts are all there: its bytes, and what it says about itself."""

    path: Path
    data: bytes
    description: Mapping[str, Any]

    @property
    def impl(self) -> str:
        """The candidate as it was named on the command line."""
        return str(self.description["candidate"]["impl"])

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the run that differed from their defaults."""
        found: Mapping[str, Any] = self.description["candidate"]["options"]
        return found

    def bad(self, what: str) -> UsageError:
        """The error that says what is wrong with this file."""
        return UsageError(f"{self.path}: {what}")


def read_head(path: Path) -> Head:
    """Read a file and its head; UsageError that says what is wrong and where."""
    data = _content(path)
    table = _table(path, data)
    metadata = table.get("__metadata__")
    text = metadata.get(ENTRY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise UsageError(
            f"{path}: not a counterexample of this suite: a safetensors file without the entry "
            f"'{ENTRY}' in its metadata"
        )
    head = Head(path, data, _object(text, f"{path}: entry '{ENTRY}' of the metadata"))
    schema = head.description.get("schema")
    if schema != SCHEMA:
        raise head.bad(f"has the schema {str(schema)[:100]!r}; this version reads {SCHEMA!r}")
    _must_name_a_candidate(head)
    return head


def _content(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} is not a file; name one file of the folder counterexamples")
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(f"{path} is larger than any counterexample ({LARGEST_FILE:,} bytes)")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {str(path)[:500]}: {reason}") from error


def _table(path: Path, data: bytes) -> dict[str, Any]:
    """The head of the safetensors format, when the file is as long as it says."""
    if len(data) < LENGTH.size:
        raise UsageError(f"{path}: not a safetensors file: it ends after {len(data)} bytes")
    end = LENGTH.size + LENGTH.unpack_from(data)[0]
    if end > len(data):
        raise UsageError(
            f"{path}: cut off, or not a safetensors file: its head ends at byte {end:,}, "
            f"the file at byte {len(data):,}"
        )
    table = _object(data[LENGTH.size : end], f"{path}: head, from byte {LENGTH.size} to {end:,}")
    try:
        ends = [entry["data_offsets"][1] for name, entry in table.items() if name[:2] != "__"]
        wanted = end + max(ends, default=0)
    except (TypeError, KeyError, IndexError):
        raise UsageError(f"{path}: its head does not describe tensors") from None
    if wanted != len(data):
        raise UsageError(
            f"{path}: cut off or damaged: its tensors end at byte {wanted:,}, "
            f"the file at byte {len(data):,}"
        )
    return table


def _object(text: str | bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON ({error!s:.200})") from None
    if not isinstance(found, dict):
        raise UsageError(f"{where}: not an object of JSON")
    return found


def _must_name_a_candidate(head: Head) -> None:
    candidate = head.description.get("candidate")
    if not isinstance(candidate, dict) or not isinstance(candidate.get("impl"), str):
        raise head.bad("does not say which candidate it is about (candidate: impl, options)")
    if not isinstance(candidate.get("options"), dict):
        raise head.bad("its options of the run (candidate: options) are not an object of JSON")
