"""What a submission holds, as one hash: the same files, the same hash."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

UNCOUNTED = (".git", "__pycache__", ".DS_Store")
"""Not part of the work: it differs between copies of the same files."""


def content_hash(path: Path) -> str:
    """SHA-256 of a file, or of the names and contents of a folder. Raises OSError."""
    if path.is_dir():
        return files_hash(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_hash(folder: Path) -> str:
    """SHA-256 of the names and contents below a folder; links are not followed. Raises OSError."""
    whole = hashlib.sha256()
    for path in _below(folder):
        name = os.fsencode(path.relative_to(folder))
        if path.is_symlink():
            kind, content = b"link", os.fsencode(os.readlink(path))
        elif path.is_file():
            kind, content = b"file", content_hash(path).encode()
        else:  # a pipe or a device; nobody opens it
            kind, content = b"other", b""
        for part in (kind, name, content):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def _below(folder: Path) -> Iterator[Path]:
    """All but folders, in the same order everywhere."""
    for entry in sorted(folder.iterdir(), key=lambda p: os.fsencode(p.name)):
        if entry.name in UNCOUNTED:
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _below(entry)
        else:
            yield entry
