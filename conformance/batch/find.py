"""Which submissions there are: the sub-folders and archives of a folder, or archives by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import UsageError

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")

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

    `out`, the folder of the results, is never one. UsageError where nothing is found, where
    something that is named is neither folder nor archive, and where two have the same name.
    """
    found: list[Path] = []
    others: list[Path] = []
    for path in paths:
        if path.is_dir():
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
        raise UsageError(
            f"{', '.join(map(str, paths))}: there is no submission here; each is a sub-folder or "
            f"an archive ({', '.join(ARCHIVES)})"
        )
    named = sorted(_named(unique), key=lambda one: (one.name.casefold(), one.name))
    _must_be_apart(named, out)
    return named, others


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{folder}: cannot be read: {error.strerror or error}") from None


def _ending(path: Path) -> str:
    """The ending that makes a file an archive; empty for another file."""
    name = path.name.lower()
    fits = [end for end in ARCHIVES if name.endswith(end) and name != end]
    return max(fits, key=len, default="") if path.is_file() else ""


def _named(paths: Iterable[Path]) -> Iterator[Found]:
    """Each under its name without the ending, or with it where another is called the same."""
    short = {path: path.name[: len(path.name) - len(_ending(path))] for path in paths}
    taken = [name.casefold() for name in short.values()]
    for path, name in short.items():
        yield Found(name if taken.count(name.casefold()) == 1 else path.name, path)


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
