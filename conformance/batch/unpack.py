"""Opening an archive that somebody else has made: nothing gets out of the folder, nothing explodes.

An archive is unpacked whole or refused with one message. Refused are names that lead out of the
folder, links that do, devices and pipes, names that come twice, and more than `Bounds` allows. What
counts is what is read, whatever the archive says of itself.
"""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from conformance.errors import InternalError

CHUNK = 1 << 16
DESCRIPTION = 1 << 20
"""Bytes of a tar that may stand between two files."""

UNREADABLE = (
    *(ValueError, RuntimeError, EOFError, LookupError, ArithmeticError, struct.error),
    *(zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError),
)
"""What the readers of the standard library raise for a broken archive."""

OTHERS = {
    b"Rar!": "RAR",
    b"7z\xbc\xaf": "7-Zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
}
"""How archives begin that are not opened, whatever their names end with."""

LEFT_OUT = ("__MACOSX", ".DS_Store", "Thumbs.db")
"""What systems add to archives."""

KEPT = ("src", "tests", "test")
"""A single folder of this name is a part of the submission, not the folder around it."""


class Refused(Exception):
    """An archive that is not unpacked; the text says why."""


@dataclass(frozen=True)
class Bounds:
    """The most that an archive may hold: bytes, entries, and how often its own size.

    Up to `spared` bytes the ratio does not matter: small files of zeros are no attack.
    """

    size: int = 512 << 20
    entries: int = 20_000
    ratio: int = 200
    spared: int = 16 << 20


BOUNDS = Bounds()


def unpack(archive: Path, folder: Path, bounds: Bounds = BOUNDS) -> Path:
    """Unpack into an empty folder that is made here; the folder in which the submission lies.

    That is the one inside, where the archive holds nothing but one folder. Raises Refused, with
    nothing left behind, and InternalError where the system fails (a full disk).
    """
    folder.mkdir(parents=True)
    try:
        with _told():
            size = archive.stat().st_size
            target = _Target(folder.resolve(), bounds, size)
            if size > bounds.size:
                raise Refused(f"it is larger than {_shown(bounds.size)}")
            _must_be_known(archive)
            (_unzip if zipfile.is_zipfile(archive) else _untar)(archive, target)
            target.finish()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return _inner(folder)


@contextmanager
def _told() -> Iterator[None]:
    """Errors of the readers as Refused, those of the system as InternalError."""
    try:
        yield
    except UNREADABLE as error:
        raise Refused(f"it cannot be read: {error or type(error).__name__}") from None
    except OSError as error:
        if error.errno in (None, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL):
            raise Refused(f"it cannot be read: {error.strerror or error}") from None
        raise InternalError(f"cannot unpack: {error.strerror}: {error.filename or ''}") from None


class _Target:
    """The folder that is filled; links are made last, so that nothing is written through one."""

    def __init__(self, root: Path, bounds: Bounds, size: int) -> None:
        self.root = root
        self.bounds = bounds
        self.most = min(bounds.size, max(bounds.spared, size * bounds.ratio))
        self._written = 0
        self._entries = 0
        self._links: dict[Path, str] = {}

    def place(self, name: str) -> Path | None:
        """Where an entry goes, None where it is left out. Raises Refused."""
        self._entries += 1
        if self._entries > self.bounds.entries:
            raise Refused(f"it holds more than {self.bounds.entries:,} entries")
        parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
        if name.startswith(("/", "\\")) or (parts and parts[0][1:2] == ":"):
            raise Refused(f"{_quoted(name)} is an absolute path")
        if ".." in parts:
            raise Refused(f"{_quoted(name)} leads out of the folder")
        if "\0" in name:
            raise Refused(f"{_quoted(name)} is no name of a file")
        if not parts or any(part in LEFT_OUT for part in parts):
            return None
        return self.root.joinpath(*parts)

    def directory(self, path: Path) -> None:
        self._free(path, also_directory=True)
        path.mkdir(parents=True, exist_ok=True)

    def file(self, path: Path, source: IO[bytes]) -> None:
        self._free(path)
        with path.open("xb") as file:
            while chunk := source.read(CHUNK):
                self._written += len(chunk)
                self.check(self._written)
                file.write(chunk)

    def check(self, size: int) -> None:
        """Refused when so many bytes are too many."""
        if size > self.most:
            why = "" if self.most == self.bounds.size else f", {self.bounds.ratio} times its size"
            raise Refused(f"it unpacks to more than {_shown(self.most)}{why}")

    def link(self, path: Path, target: str) -> None:
        self._free(path)
        self._links[path] = target

    def same(self, path: Path, other: Path | None, name: str) -> None:
        """A second name of a file that has been unpacked."""
        if other is None or other.is_symlink() or not other.is_file():
            raise Refused(f"the link {_quoted(name)} leads to nothing in it")
        self._free(path)
        os.link(other, path)

    def _free(self, path: Path, also_directory: bool = False) -> None:
        around = (path, *path.parents)
        within = around[: around.index(self.root)]
        taken = path in self._links or path.exists()
        if any(one in self._links or one.is_file() for one in within[1:]) or (
            taken and not (also_directory and path.is_dir())
        ):
            raise Refused(f"{_quoted(str(path.relative_to(self.root)))} is in it twice")
        path.parent.mkdir(parents=True, exist_ok=True)

    def finish(self) -> None:
        """Make the links; Refused where one leads out, straight or by way of others."""
        for path, target in self._links.items():
            lexical = Path(os.path.normpath(path.parent / target))
            if os.path.isabs(target) or not lexical.is_relative_to(self.root):
                raise Refused(f"the link {_quoted(path.name)} leads out of the folder")
            path.symlink_to(target)
        for path in self._links:
            if not Path(os.path.realpath(path)).is_relative_to(self.root):
                raise Refused(f"the link {_quoted(path.name)} leads out of the folder")


def _must_be_known(archive: Path) -> None:
    with archive.open("rb") as file:
        start = file.read(8)
    for mark, kind in OTHERS.items():
        if start.startswith(mark):
            raise Refused(f"it is packed with {kind}; hand in .zip, .tar or .tar.gz")


def _unzip(archive: Path, target: _Target) -> None:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            path = target.place(info.filename)
            if path is None:
                continue
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.flag_bits & 1:
                raise Refused(f"{_quoted(info.filename)} is encrypted")
            if info.is_dir():
                target.directory(path)
                continue
            if kind not in (0, stat.S_IFREG, stat.S_IFLNK):
                raise Refused(f"{_quoted(info.filename)} is neither a file nor a folder")
            with opened.open(info) as source:
                if kind == stat.S_IFLNK:
                    target.link(path, source.read(4096).decode("utf-8"))
                else:
                    target.file(path, source)


class _Counted:
    """A stream of which no more can be read than an archive may unpack to.

    What describes an entry (its name, in some formats whole tables) is read into memory, so that is
    bounded for each entry.
    """

    def __init__(self, source: IO[bytes] | gzip.GzipFile, target: _Target) -> None:
        self._source, self._target = source, target
        self._read = 0
        self._left = DESCRIPTION

    def expect(self, size: int) -> None:
        """An entry of that size comes next, then the description of another one."""
        self._left = size + DESCRIPTION

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(CHUNK if size < 0 else min(size, CHUNK))
        self._read += len(data)
        self._left -= len(data)
        # each entry has a header, and the archive an end, beside what is counted
        self._target.check(self._read - 2048 * self._target.bounds.entries)
        if self._left < 0:
            raise Refused(f"an entry is described by more than {_shown(DESCRIPTION)}")
        return data


def _untar(archive: Path, target: _Target) -> None:
    with archive.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        source = _Counted(gzip.GzipFile(fileobj=raw) if packed else raw, target)
        stream: Any = source
        with tarfile.open(fileobj=stream, mode="r|") as opened:
            for member in opened:
                source.expect(member.size)
                path = target.place(member.name)
                if path is not None:
                    _member(opened, member, path, target)


def _member(opened: tarfile.TarFile, member: tarfile.TarInfo, path: Path, target: _Target) -> None:
    if member.isdir():
        target.directory(path)
    elif member.issym():
        target.link(path, member.linkname)
    elif member.islnk():
        target.same(path, target.place(member.linkname), member.name)
    elif member.isreg():
        target.check(member.size)
        source = opened.extractfile(member)
        if source is None:
            raise Refused(f"{_quoted(member.name)} cannot be read")
        target.file(path, source)
    else:
        raise Refused(f"{_quoted(member.name)} is neither a file nor a folder")


def _inner(folder: Path) -> Path:
    """The folder of the submission: not the one that was only packed around it."""
    entries = list(folder.iterdir())
    if len(entries) != 1 or entries[0].is_symlink() or not entries[0].is_dir():
        return folder
    inner = entries[0]
    return folder if inner.name in KEPT or (inner / "__init__.py").exists() else inner


def _quoted(name: str) -> str:
    return ascii(name if len(name) <= 100 else f"{name[:99]}…")


def _shown(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB" if size >= 1 << 20 else f"{size:,} bytes"
