"""Archives: what is unpacked, what is refused, and that nothing gets out."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.batch.unpack import Bounds, Refused, unpack

SMALL = Bounds(size=1 << 20, entries=20, ratio=50, spared=1 << 12)


def tar(path: Path, *members: tarfile.TarInfo | tuple[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as opened:  # type: ignore[call-overload]
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                opened.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                opened.addfile(info, io.BytesIO(member[1]))
    return path


def zipped(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members:
            opened.writestr(name, content)
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def with_a_long_description(path: Path) -> Path:
    """A table of attributes of 3 MiB before the first file."""
    info = special("a", tarfile.XHDTYPE)
    info.size = 3 << 20
    with gzip.open(path, "wb") as file:
        file.write(info.tobuf() + b"\0" * info.size)
    return path


def huge(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    return info


ZEROS = b"\0" * (2 << 20)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_tar_is_unpacked(tmp_path: Path, mode: str) -> None:
    archive = tar(
        tmp_path / "a.tar",
        ("./adapters.py", b"x = 1\n"),
        ("pkg/model.py", b"y = 2\n"),
        special("same.py", tarfile.LNKTYPE, "pkg/model.py"),
        special("link.py", tarfile.SYMTYPE, "pkg/model.py"),
        mode=mode,
    )
    folder = unpack(archive, tmp_path / "out")
    assert (folder / "adapters.py").read_text() == "x = 1\n"
    assert (folder / "same.py").read_text() == (folder / "link.py").read_text() == "y = 2\n"


def test_a_zip_is_unpacked_without_the_folder_around_it(tmp_path: Path) -> None:
    archive = zipped(
        tmp_path / "a.zip",
        ("hw1/tests/adapters.py", b"x"),
        ("__MACOSX/hw1/._adapters.py", b"junk"),
        (zip_link("hw1/link.py"), b"tests/adapters.py"),
    )
    folder = unpack(archive, tmp_path / "out")
    assert folder == tmp_path / "out" / "hw1"
    assert (folder / "link.py").read_text() == "x"
    assert not (tmp_path / "out" / "__MACOSX").exists()


def test_a_package_and_a_folder_of_tests_stay_where_they_are(tmp_path: Path) -> None:
    for number, name in enumerate(("tests/adapters.py", "mypkg/__init__.py")):
        out = tmp_path / str(number)
        assert unpack(zipped(tmp_path / "a.zip", (name, b"")), out) == out


REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "up": (lambda p: tar(p, ("../evil.py", b"")), "leads out"),
    "up, zip": (lambda p: zipped(p, ("a/../../evil.py", b"")), "leads out"),
    "up, backslash": (lambda p: zipped(p, ("a\\..\\..\\evil.py", b"")), "leads out"),
    "absolute": (lambda p: tar(p, ("/evil.py", b"")), "absolute"),
    "absolute, zip": (lambda p: zipped(p, ("/evil.py", b"")), "absolute"),
    "drive": (lambda p: zipped(p, ("C:/evil.py", b"")), "absolute"),
    "link up": (lambda p: tar(p, special("a", tarfile.SYMTYPE, "../..")), "link 'a' leads out"),
    "link absolute": (lambda p: tar(p, special("a", tarfile.SYMTYPE, "/etc")), "leads out"),
    "link, zip": (lambda p: zipped(p, (zip_link("a"), b"/etc/passwd")), "leads out"),
    "chain of links": (
        lambda p: tar(
            p,
            ("d/e/f", b""),
            special("a", tarfile.SYMTYPE, "d/e"),
            special("d/e/b", tarfile.SYMTYPE, "../.."),
            special("c", tarfile.SYMTYPE, "a/b/../x"),
        ),
        "leads out",
    ),
    "through a link": (
        lambda p: tar(p, special("a", tarfile.SYMTYPE, "d"), ("a/evil.py", b"")),
        "twice",
    ),
    "hard link out": (lambda p: tar(p, special("a", tarfile.LNKTYPE, "../x")), "leads out"),
    "hard link to nothing": (lambda p: tar(p, special("a", tarfile.LNKTYPE, "x")), "to nothing"),
    "device": (lambda p: tar(p, special("a", tarfile.CHRTYPE)), "neither"),
    "pipe": (lambda p: tar(p, special("a", tarfile.FIFOTYPE)), "neither"),
    "twice": (lambda p: tar(p, ("a", b"1"), ("a", b"2")), "twice"),
    "file and folder": (lambda p: tar(p, ("a", b"1"), ("a/b", b"2")), "twice"),
    "zeros": (lambda p: zipped(p, ("a", ZEROS)), "unpacks to more than"),
    "zeros, tar": (lambda p: tar(p, ("a", ZEROS)), "unpacks to more than"),
    "says it is huge": (lambda p: tar(p, huge("a", 1 << 50), mode="w"), "unpacks to more than"),
    "description": (with_a_long_description, "described by more than 1 MiB"),
    "entries": (lambda p: zipped(p, *((str(n), b"") for n in range(21))), "more than 20 entries"),
    "entries, tar": (lambda p: tar(p, *((str(n), b"") for n in range(21))), "20 entries"),
    "long name": (lambda p: zipped(p, ("a" * 300, b"")), "cannot be read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_archive_is_refused_with_one_message(name: str, tmp_path: Path) -> None:
    make, message = REFUSED[name]
    archive = make(tmp_path / "a")
    inside = tmp_path / "deep"
    with pytest.raises(Refused, match=message) as error:
        unpack(archive, inside / "out", Bounds() if name == "description" else SMALL)
    assert "\n" not in str(error.value)
    assert sorted(os.listdir(tmp_path)) == ["a", "deep"]
    assert os.listdir(inside) == []


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no", b"\x1f\x8b no", os.urandom(3000)])
def test_what_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(Refused, match="cannot be read"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


@pytest.mark.parametrize(("start", "kind"), [(b"Rar!\x1a", "RAR"), (b"BZh91AY", "bzip2")])
def test_another_archive_is_named(start: bytes, kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(start)
    with pytest.raises(Refused, match=f"packed with {kind}; hand in"):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_archive_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tgz", ("a.py", os.urandom(50_000)))
    archive.write_bytes(archive.read_bytes()[:20_000])
    with pytest.raises(Refused, match="cannot be read"):
        unpack(archive, tmp_path / "out")
