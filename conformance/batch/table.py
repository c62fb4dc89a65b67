"""What the class as a whole looks like: `class.csv` and `class.md`, made from the record alone."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TypeVar
from urllib.parse import quote

from conformance.batch.memory import own_peak_mib
from conformance.batch.record import CANDIDATE, INFRASTRUCTURE, Line, Record
from conformance.report.figures import plural, shown_score
from conformance.report.files import write_text
from conformance.report.stream import MARKDOWN_NAME as MARKDOWN_REPORT
from conformance.report.text import cell_code, code, prose
from conformance.spec import all_requirements, component_names, component_spec

Key = TypeVar("Key", str, tuple[str, str])

CSV_NAME, MARKDOWN_NAME = "class.csv", "class.md"
MOST = 15
"""Rows of a list; the whole of it is in the reports."""

COLUMNS = (
    *("name", "verdict", "failure", "score", "points", "of", "exit_code", "likely_mistake"),
    *("reason", "same_files_as", "sha256", "seconds", "peak_mib"),
)


@dataclass(frozen=True)
class Effort:
    """What it took: submissions graded just now, seconds for all of them, jobs at once."""

    graded: int
    seconds: float
    jobs: int

    @property
    def shown(self) -> str:
        if not self.graded or self.seconds <= 0:
            return "Nothing was left to grade."
        rate = self.graded / self.seconds * 3600
        jobs = plural(self.jobs, "job")
        return f"{rate:.0f} submissions per hour with {jobs} ({self.graded} graded just now)."


@dataclass(frozen=True)
class Row:
    """One submission as it stands in the table; the rest of its line is counted and let go."""

    name: str
    verdict: str
    failure: str
    reason: str
    score: float | None
    points: float | None
    of: float | None
    exit_code: int | None
    mistake: str
    files: str
    sha256: str
    seconds: float
    peak_mib: float

    @classmethod
    def of_line(cls, line: Line) -> Row:
        first = line.mistakes[0] if line.mistakes else None
        mistake = f"{first.component}: {first.sentence}" if first else ""
        return cls(
            line.name,
            line.verdict,
            line.failure,
            line.reason,
            line.score,
            line.points,
            line.of,
            line.exit_code,
            mistake,
            line.files,
            line.sha256,
            line.seconds,
            line.peak_mib,
        )

    @property
    def rank(self) -> tuple[int, float, float, str]:
        """Sorts what nobody can say anything about first, then the worst."""
        place = (INFRASTRUCTURE, CANDIDATE, "").index(self.failure)
        return place, self.points or 0.0, self.score or 0.0, self.name


@dataclass
class Table:
    """The rows, worst first, and what is counted over all of them."""

    rows: list[Row] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    absent: Counter[str] = field(default_factory=Counter)
    mistakes: Counter[tuple[str, str]] = field(default_factory=Counter)
    sentences: dict[tuple[str, str], str] = field(default_factory=dict)
    identical: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, line: Line) -> None:
        """Take one submission in."""
        self.rows.append(Row.of_line(line))
        self.failed.update(line.failed)
        self.absent.update(line.absent)
        for mistake in line.mistakes:
            key = mistake.component, mistake.fault
            self.mistakes[key] += 1
            known = self.sentences.setdefault(key, mistake.sentence)
            # the same whatever the order in which they came
            self.sentences[key] = min(known, mistake.sentence, key=lambda s: (len(s), s))

    def finish(self) -> None:
        """Sort, and find those that handed in the same."""
        self.rows.sort(key=lambda row: row.rank)
        groups: dict[str, list[str]] = {}
        for row in self.rows:
            if row.files:
                groups.setdefault(row.files, []).append(row.name)
        self.identical = sorted(tuple(sorted(g)) for g in groups.values() if len(g) > 1)

    @property
    def infrastructure(self) -> list[Row]:
        return [row for row in self.rows if row.failure == INFRASTRUCTURE]

    @property
    def judged(self) -> list[Row]:
        return [row for row in self.rows if not row.failure]

    @property
    def headline(self) -> str:
        """How many of what, in one sentence."""
        passed = sum(row.verdict == "conforming" for row in self.judged)
        refused = sum(row.failure == CANDIDATE for row in self.rows)
        return (
            f"{plural(len(self.rows), 'submission')}: {passed} conforming, "
            f"{len(self.judged) - passed} not conforming, {refused} cannot be graded, "
            f"{plural(len(self.infrastructure), 'infrastructure failure')}."
        )

    def write(self, folder: Path, effort: Effort, others: Sequence[str] = ()) -> None:
        """Write both files; `others` were passed over. Raises UsageError."""
        write_text(folder / CSV_NAME, self.csv())
        write_text(folder / MARKDOWN_NAME, self.markdown(effort, others))

    def same_as(self, name: str) -> str:
        """The others with the same files."""
        return " ".join(o for group in self.identical if name in group for o in group if o != name)

    def csv(self) -> str:
        """One row per submission, worst first."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in self.rows:
            values = (
                *(row.name, row.verdict, row.failure, row.score, row.points, row.of),
                *(row.exit_code, row.mistake, row.reason, self.same_as(row.name)),
                *(row.sha256, row.seconds, row.peak_mib),
            )
            writer.writerow([_cell(value) for value in values])
        return text.getvalue()

    def markdown(self, effort: Effort, others: Sequence[str] = ()) -> str:
        """The report on the class."""
        parts = ["# The class", self.headline, *self._points()]
        if self.infrastructure:
            rows = [(_named(row), prose(row.reason, 300)) for row in self.infrastructure]
            parts += [
                "## Infrastructure failures",
                "Nothing is known about these submissions. Mend what is named and run the same "
                "command with `--retry`.",
                _table(("submission", "reason"), rows),
            ]
        refused = [row for row in self.rows if row.failure == CANDIDATE]
        if refused:
            rows = [(_named(row), prose(row.reason, 300)) for row in refused]
            parts += [
                "## Cannot be graded",
                "Nothing in these submissions could be asked, and that is due to them. They have "
                "no points.",
                _table(("submission", "reason"), rows),
            ]
        if others:
            names = ", ".join(code(name) for name in sorted(others)[:MOST])
            more = f" and {len(others) - MOST} more" if len(others) > MOST else ""
            parts += [
                "## Passed over",
                f"Neither folders nor archives, so nobody's submission: {names}{more}.",
            ]
        parts += self._ranking()
        parts += self._frequent()
        if self.identical:
            lines = [f"- {', '.join(cell_code(name) for name in g)}" for g in self.identical]
            parts += ["## Identical files", "\n".join(lines)]
        parts += ["## What it took", self._effort(effort)]
        return "\n\n".join(parts) + "\n"

    def _points(self) -> list[str]:
        """How the points are spread; what cannot be graded has 0 of them."""
        given = sorted(row.points or 0.0 for row in self.rows if row.failure != INFRASTRUCTURE)
        of = next((row.of for row in self.rows if row.of is not None), None)
        if of is None:
            return []
        spread = f"lowest {given[0]:g}, median {median(given):g}, highest {given[-1]:g}"
        return [f"Points, of {of:g}: {spread}."]

    def _ranking(self) -> list[str]:
        rows = self.judged
        if not rows:
            return []
        points = any(row.points is not None for row in rows)
        head = ("submission", "verdict", "score", *(("points",) if points else ()), "what is wrong")
        body = []
        for row in rows:
            score = "-" if row.score is None else shown_score(row.score)
            told = "-" if row.points is None else f"{row.points:g} of {row.of:g}"
            # what passes may have been observed to do something that does not count
            why = row.mistake or ("" if row.verdict == "conforming" else row.reason)
            body.append(
                (_linked(row), row.verdict, score, *((told,) if points else ()), prose(why, 200))
            )
        return ["## Submissions, worst first", _table(head, body)]

    def _frequent(self) -> list[str]:
        judged = len(self.judged)
        parts = []
        for title, noun, counts in (
            ("Requirements that most fail", "requirement", self.failed),
            ("Not implemented", "component", self.absent),
        ):
            rows = [(cell_code(n), _sentence(n), _share(many, judged)) for n, many in _top(counts)]
            if rows:
                parts += [f"## {title}", _table((noun, "what it is", "submissions"), rows)]
                parts += [f"And {len(counts) - MOST} more."] if len(counts) > MOST else []
        mistakes = [
            (prose(self.sentences[key], 300), cell_code(key[0]), _share(n, judged))
            for key, n in _top(self.mistakes)
        ]
        if mistakes:
            head = ("mistake", "component", "submissions")
            parts += ["## Commonest likely mistakes", _table(head, mistakes)]
            more = len(self.mistakes) - MOST
            parts += [f"And {more} more."] if more > 0 else []
        return parts

    def _effort(self, effort: Effort) -> str:
        largest = max((row.peak_mib for row in self.rows), default=0.0)
        one = (
            f"at most {largest:.0f} MiB for one submission with its judge (looked at once a "
            "second; shared pages are counted for each process), "
        )
        own = f"{own_peak_mib():.0f} MiB for the batch itself."
        return f"{effort.shown} Memory: {one if largest else ''}{own}"


def write_table(record: Record, contents: Mapping[str, str]) -> Table:
    """The table of the submissions that are given as name -> content, one line at a time."""
    table = Table()
    for _, place in sorted(record.last(contents).items()):
        table.add(record.at(place))
    table.finish()
    return table


def _top(counts: Mapping[Key, int]) -> list[tuple[Key, int]]:
    """The most frequent; of equally frequent requirements those of parts before what is built of
    them."""
    place = {name: number for number, name in enumerate(all_requirements())}
    last = len(place)

    def order(pair: tuple[Key, int]) -> tuple[int, int, Key]:
        key, many = pair
        return -many, place.get(key, last) if isinstance(key, str) else last, key

    return sorted(counts.items(), key=order)[:MOST]


def _share(number: int, whole: int) -> str:
    return f"{number} of {whole}{', most' if 2 * number > whole else ''}"


def _named(row: Row) -> str:
    return cell_code(row.name)


def _linked(row: Row) -> str:
    """Its name, which leads to its report."""
    return f"[{_named(row)}]({quote(row.name, safe='')}/{MARKDOWN_REPORT})"


def _sentence(name: str) -> str:
    """What a requirement demands, or what a component computes; empty where it is not known."""
    if name in component_names():
        return prose(component_spec(name).title, 200)
    known = all_requirements().get(name)
    return prose(known.sentence, 200) if known else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> object:
    """A value for a spreadsheet, in which no text becomes a formula."""
    if not isinstance(value, str):
        return value
    text = value.encode("utf-8", "backslashreplace").decode("utf-8")
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
