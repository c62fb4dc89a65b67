"""`record.jsonl`: one line for each submission that is done, written once and never changed.

A batch that was killed has lost nothing but what it was at: the next one reads these lines and goes
on. A line that was cut off is no line. Where a submission has several (it was changed, or graded
again), the last one of its content and of these settings counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from conformance.errors import InternalError, UsageError
from conformance.report.stream import lock

RECORD_NAME = "record.jsonl"
SCHEMA = "transformer-conformance/batch/1"

CANDIDATE, INFRASTRUCTURE = "candidate", "infrastructure"


@dataclass(frozen=True)
class Mistake:
    """A named mistake, where it is, and how many checks it fails."""

    fault: str
    component: str
    sentence: str
    checks: int


@dataclass(frozen=True)
class Line:
    """How one submission ended.

    `sha256` is what was handed in (an archive as it is), `files` the files in it; `settings` marks
    what it was graded with. `failure` says whose fault it is that there is no judgement: empty
    where there is one, `candidate` where it cannot be loaded or unpacked, `infrastructure` where
    nothing is said about the submission. `failed` are requirements that were not met, without those
    of the components in `absent`, which are not implemented. `mistakes` begin with the commonest.
    """

    name: str
    sha256: str
    settings: str
    verdict: str
    files: str = ""
    exit_code: int | None = None
    failure: str = ""
    reason: str = ""
    score: float | None = None
    points: float | None = None
    of: float | None = None
    seconds: float = 0.0
    peak_mib: float = 0.0
    mistakes: tuple[Mistake, ...] = ()
    failed: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Any) -> Line | None:
        """The line, None where it is none of ours."""
        names = {one.name for one in fields(cls)}
        if not isinstance(value, dict) or value.get("schema") != SCHEMA:
            return None
        data = {name: content for name, content in value.items() if name != "schema"}
        if set(data) != names:
            return None
        try:
            data["mistakes"] = tuple(Mistake(**one) for one in data["mistakes"])
            data["failed"], data["absent"] = tuple(data["failed"]), tuple(data["absent"])
            return cls(**data)
        except TypeError:
            return None

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


@dataclass
class Record:
    """The file, held by one batch at a time. UsageError where another one has it."""

    folder: Path
    settings: str
    _file: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        path = self.path
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
        except OSError as error:
            raise UsageError(f"--out {self.folder}: {error.strerror or error}") from None
        if not lock(self._file.fileno()):
            self._file.close()
            raise UsageError(
                f"--out {self.folder}: another grade-all is writing there; wait for it, or name "
                "another folder"
            )

    @property
    def path(self) -> Path:
        return self.folder / RECORD_NAME

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, line: Line) -> None:
        """Write one line to the disk. Raises InternalError."""
        text = json.dumps(line.to_json(), allow_nan=False).encode("ascii") + b"\n"
        try:
            if not self._ends_a_line():
                text = b"\n" + text
            self._file.write(text)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise InternalError(f"cannot write to {self.path}: {error.strerror}") from None

    def _ends_a_line(self) -> bool:
        if not self._file.seek(0, os.SEEK_END):
            return True
        self._file.seek(-1, os.SEEK_END)
        return bool(self._file.read(1) == b"\n")

    def lines(self) -> Iterator[tuple[int, Line]]:
        """Each line of these settings with its place in the file, one at a time."""
        with self.path.open("rb") as file:
            place = 0
            for raw in file:
                line = _parse(raw)
                if line is not None and line.settings == self.settings:
                    yield place, line
                place += len(raw)

    def last(self, contents: Mapping[str, str]) -> dict[str, int]:
        """Name -> place of the line that counts, for submissions given as name -> SHA-256."""
        return {
            line.name: place
            for place, line in self.lines()
            if contents.get(line.name) == line.sha256
        }

    def at(self, place: int) -> Line:
        """The line at a place that `last` has named."""
        with self.path.open("rb") as file:
            file.seek(place)
            line = _parse(file.readline())
        if line is None:
            raise InternalError(f"{self.path} was changed by somebody else")
        return line

    def done(self, again: bool) -> dict[str, frozenset[str]]:
        """Name -> contents that need not be graded; `again`: what was nobody's result does."""
        last: dict[tuple[str, str], bool] = {}
        for _, line in self.lines():
            last[line.name, line.sha256] = not (again and line.failure == INFRASTRUCTURE)
        found: dict[str, set[str]] = {}
        for (name, content), enough in last.items():
            found.setdefault(name, set()).update({content} if enough else ())
        return {name: frozenset(contents) for name, contents in found.items()}


def _parse(raw: bytes) -> Line | None:
    if not raw.endswith(b"\n"):
        return None
    try:
        return Line.from_json(json.loads(raw))
    except ValueError:
        return None
