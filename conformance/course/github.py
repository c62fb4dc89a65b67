"""GitHub Actions: annotations in the log, and the Markdown of the job summary.

An annotation is a line `::error file=F,line=N,title=T::message`. A line of the log that begins with
`::` is a command, so all that a candidate may say is kept from being one: properties and messages
are escaped, and the commands in the rest of the log are switched off (`stopped` and `resumed`).
GitHub shows 10 annotations of a kind for each step and takes 1 MiB of summary.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from conformance.course.audience import seen_by
from conformance.course.points import Grade
from conformance.course.shown import points_markdown, why_none
from conformance.report.failures import Failure, group
from conformance.report.figures import plural
from conformance.report.markdown import render_markdown
from conformance.report.model import COUNTED, CheckRecord, Results
from conformance.report.text import Safe, one_line, prose
from conformance.report.verdict import Status, Verdict, VerdictKind, judge

MOST_ANNOTATIONS = 10
"""GitHub shows so many of one kind for a step; one of them is the verdict."""

MESSAGE = 1000
"""Characters of one annotation."""

SUMMARY_BYTES = 1_000_000
"""GitHub takes 1 MiB of summary for a step."""

_FRAME = re.compile(r'^  File "([^"\n]+)", line (\d+)', re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """A file as GitHub knows it, and a line if one is known."""

    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Folders:
    """The folder of the run, and the root of the repository that the submission is."""

    here: PurePosixPath
    root: PurePosixPath

    def within(self, path: PurePosixPath) -> str:
        """A path of the run as seen from the root; empty when it leads out of it."""
        whole = self.here / path
        inside = whole.is_relative_to(self.root) and ".." not in whole.parts
        return str(whole.relative_to(self.root)) if inside else ""


def stopped(token: str) -> str:
    """The command that switches off all others until `resumed`; nobody else may know the token."""
    return f"::stop-commands::{token}"


def resumed(token: str) -> str:
    """The command that switches them on again."""
    return f"::{token}::"


def annotation_lines(
    results: Results,
    verdict: Verdict,
    grade: Grade | None,
    *,
    audience: str,
    folders: Folders | None = None,
) -> list[str]:
    """The lines of the log, the verdict first; without `folders` they name no files."""
    shown = seen_by(results, audience)
    counted = shown.header.counted if shown.header else COUNTED["must"]
    names = [component.name for component in verdict.components]
    absent = {c.name for c in verdict.components if c.status is Status.NOT_IMPLEMENTED}
    deciding = [c for c in shown.ordered() if c.level in counted and c.component not in absent]
    order = shown.header.requirements if shown.header else ()
    failures = group(deciding, names, order)
    told = failures[: MOST_ANNOTATIONS - 1]
    lines = [_verdict_line(verdict, grade, sum(f.size for f in failures[len(told) :]))]
    return [*lines, *(_annotation(shown, failure, folders) for failure in told)]


def _verdict_line(verdict: Verdict, grade: Grade | None, rest: int) -> str:
    parts = [verdict.headline, grade.shown + "." if grade else "", why_none(grade) if grade else ""]
    parts += [f"And {plural(rest, 'more failed check')}, see the summary."] if rest else []
    if verdict.error:
        parts.append(one_line(verdict.error, MESSAGE // 2))
    kind = "notice" if verdict.kind is VerdictKind.CONFORMING else "error"
    return command(kind, " ".join(filter(None, parts)), title=f"conformance: {verdict.kind}")


def _annotation(results: Results, failure: Failure, folders: Folders | None) -> str:
    shown = failure.shown
    more = f" (and {failure.size - 1} more)" if failure.size > 1 else ""
    lines = [f"{shown.outcome}: {shown.message or shown.id}{more}"]
    if shown.diagnosis is not None:
        lead = "Likely mistake: " if shown.diagnosis.fault else ""
        lines.append(f"{lead}{shown.diagnosis.sentence}")
        lines += [f"To think about: {shown.diagnosis.hint}"] if shown.diagnosis.hint else []
    if shown.details and shown.details.replay:
        lines.append(f"Repeat: {shown.details.replay}")
    message = "\n".join(one_line(line, MESSAGE // 2) for line in lines)[: 2 * MESSAGE]
    title = f"{failure.component}: {failure.requirements[0]} ({failure.level})"
    place = _place(results, shown, folders) if folders else None
    return command("error", message, title=title, place=place)


def command(kind: str, message: str, *, title: str, place: Place | None = None) -> str:
    """One workflow command."""
    values = {
        "file": place.file if place else "",
        "line": str(place.line) if place and place.line else "",
        "title": one_line(title, 200),
    }
    given = ",".join(f"{name}={_property(value)}" for name, value in values.items() if value)
    return f"::{kind} {given}::{_data(message)}"


def _data(text: str) -> str:
    cleaned = "\n".join(one_line(line, MESSAGE) for line in text.split("\n"))
    return cleaned.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _place(results: Results, check: CheckRecord, folders: Folders) -> Place:
    """Where the candidate raised, else its adapters file; nothing outside the repository."""
    path = PurePosixPath(results.header.candidate.path if results.header else "")
    if not path.suffix:
        return Place()
    traceback = check.details.traceback if check.details else None
    frames = _FRAME.findall(traceback or "")
    root = _root(path, frames)
    if root is None:
        return Place(folders.within(path))
    file, line = frames[-1]
    return Place(folders.within(root / file), int(line[:9]))


def _root(adapters: PurePosixPath, frames: Sequence[tuple[str, str]]) -> PurePosixPath | None:
    """The submission's folder: from there tracebacks name files, the adapters among them."""
    for file, _ in frames:
        parts = PurePosixPath(file).parts
        if parts and ".." not in parts and adapters.parts[-len(parts) :] == parts:
            return PurePosixPath(*adapters.parts[: -len(parts)])
    return None


def job_summary(
    results: Results,
    verdict: Verdict | None,
    grade: Grade | None,
    *,
    audience: str,
    room: int = SUMMARY_BYTES,
) -> str:
    """The report as Markdown, as far as there is room for it; points and verdict always stay."""
    verdict = verdict or judge(results)
    whole = render_markdown(
        seen_by(results, audience), verdict, points=points_markdown(grade) if grade else Safe("")
    )
    if len(whole.encode()) <= room:
        return whole
    parts = [f"# {verdict.kind.capitalize()}", prose(verdict.headline)]
    parts += [points_markdown(grade)] if grade else []
    parts += [Safe("The report has no room here; it is the file `report.md` of the run.")]
    return "\n\n".join(parts) + "\n"
