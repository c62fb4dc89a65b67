"""Which submissions there are: the sub-folders and archives of a folder, or archives by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import UsageError

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")

PACKED = (".rar", ".7z", ".gz", ".bz2", ".tbz2", ".xz", ".txz", ".zst")
"""Archives that are not opened here; whoever hands one in has a line that says so."""

ONE = ("adapters.py", "tests/adapters.py", "conformance.toml", "pyproject.toml")
"""What the folder of one submission holds, and that of a class does not."""

OURS = ("record.jsonl", "class.csv", "class.md")
"""Names in the folder of the results that are no submission's."""


@dataclass(frozen=True)
class Found:
    """One submission: the name under which it is reported, and its folder or archive."""

    name: str
    path: Path

    @property
    def is_archive(self) -> bool:
        """It has to be unpacked first."""
        return not self.path.is_dir()


def find(paths: Sequence[Path], out: Path) -> tuple[list[Found], list[Path]]:
    """The submissions in order of their names, and what lies beside them and is none.

    A folder with nothing but one archive in it, as learning platforms make them, stands for that
    archive. `out`, the folder of the results, is never a submission. UsageError where nothing is
    found, where something that is named is neither folder nor archive or is one submission, and
    where two have the same name.
    """
    found: list[Path] = []
    others: list[Path] = []
    for path in paths:
        if path.is_dir():
            _must_be_several(path)
            for entry in _entries(path):
                if entry.resolve() == out.resolve() or entry.name.startswith((".", "__")):
                    continue
                (found if entry.is_dir() or _ending(entry) else others).append(entry)
        elif not path.exists():
            raise UsageError(f"{path}: there is no such file or folder")
        elif not _ending(path):
            raise UsageError(f"{path}: neither a folder nor an archive ({', '.join(ARCHIVES)})")
        else:
            found.append(path)
    unique = list({path.resolve(): path.absolute() for path in found}.values())
    if not unique:
        there = f", only {', '.join(p.name for p in others[:3])}" if others else ""
        raise UsageError(
            f"{', '.join(map(str, paths))}: there is no submission here{there}; each is a "
            f"sub-folder or an archive ({', '.join(ARCHIVES)})"
        )
    named = sorted(_named(unique), key=lambda one: (one.name.casefold(), one.name))
    _must_be_apart(named, out)
    return named, others


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{folder}: cannot be read: {error.strerror or error}") from None


def _must_be_several(folder: Path) -> None:
    """UsageError for the folder of one submission."""
    held = next((name for name in ONE if (folder / name).is_file()), None)
    if held is not None:
        raise UsageError(
            f"{folder}: this is one submission, it holds {held}; `conformance grade --gate` grades "
            "it, grade-all takes the folder in which the submissions lie"
        )


def _ending(path: Path) -> str:
    """The ending that makes a file an archive; empty for another file."""
    name = path.name.lower()
    fits = [end for end in (*ARCHIVES, *PACKED) if name.endswith(end) and name != end]
    return max(fits, key=len, default="") if path.is_file() else ""


def _held(path: Path) -> Path:
    """The archive in a folder that holds nothing else; what is given, in every other case."""
    if not path.is_dir():
        return path
    try:
        inside = [p for p in path.iterdir() if not p.name.startswith((".", "__"))]
    except OSError:  # told when it is graded
        return path
    return inside[0] if len(inside) == 1 and _ending(inside[0]) else path


def _named(paths: Iterable[Path]) -> Iterator[Found]:
    """Each under its name without the ending, or with it where another is called the same."""
    short = {path: path.name[: len(path.name) - len(_ending(path))] for path in paths}
    taken = [name.casefold() for name in short.values()]
    for path, name in short.items():
        yield Found(name if taken.count(name.casefold()) == 1 else path.name, _held(path))


def _must_be_apart(found: Iterable[Found], out: Path) -> None:
    seen: dict[str, Path] = {}
    for one in found:
        other = seen.setdefault(one.name.casefold(), one.path)
        if other != one.path:
            raise UsageError(f"{other} and {one.path}: two submissions of one name; rename one")
        if one.name.casefold() in OURS:
            raise UsageError(f"{one.path}: a file of the results has that name; rename it")
        if not one.is_archive and out.resolve().is_relative_to(one.path.resolve()):
            raise UsageError(f"--out {out}: this lies inside the submission {one.path}")
