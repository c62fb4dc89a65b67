"""Writing a file so that a reader finds either the old one or the new one, never half of it."""

from __future__ import annotations

import os
from pathlib import Path

from conformance.errors import UsageError


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with plain newlines; UsageError when that is impossible."""
    write_bytes(path, text.encode("utf-8"), "the report")


def write_bytes(path: Path, data: bytes, what: str) -> None:
    """Write bytes; UsageError that says `what` they are when that is impossible.

    A link that lies at `path` is replaced, not followed.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        with draft.open("xb") as file:
            file.write(data)
        os.replace(draft, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot write {what} to {path}: {reason}") from error
