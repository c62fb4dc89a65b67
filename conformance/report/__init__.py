"""What was graded, how it went, and every way of telling it.

A run is recorded line by line in `results.jsonl` (`ResultsWriter`).  Everything a reader sees is
made from that file and from nothing else: `read_results` reads it, `judge` draws the verdict,
`write_reports` writes `report.json` and `report.md`, `summary_text` is for the terminal.
Importing this package is cheap; Jinja2 and tabulate are imported when they are needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.report.files import write_text
from conformance.report.model import (
    Candidate,
    CheckRecord,
    Details,
    Diagnosis,
    ErrorRecord,
    Footer,
    Header,
    Results,
)
from conformance.report.stream import JSON_NAME, MARKDOWN_NAME, ResultsWriter, read_results
from conformance.report.summary import summary_text
from conformance.report.verdict import ComponentResult, Verdict, VerdictKind, judge

if TYPE_CHECKING:
    from conformance.course.rubric import Rubric

__all__ = [
    "Candidate",
    "CheckRecord",
    "ComponentResult",
    "Details",
    "Diagnosis",
    "ErrorRecord",
    "Footer",
    "Header",
    "Results",
    "ResultsWriter",
    "Verdict",
    "VerdictKind",
    "judge",
    "read_results",
    "summary_text",
    "write_reports",
]


def write_reports(
    results_path: Path,
    folder: Path,
    *,
    audience: str = "instructor",
    rubric: Rubric | None = None,
) -> Verdict:
    """Write `report.json` and `report.md` into `folder`, from the results file alone.

    They hold what the audience may see, and points where there is a rubric.

    Both files are replaced in one step each, so that nobody reads half a report.  Raises UsageError
    when the results cannot be read or the folder cannot be written.
    """
    from conformance.course.audience import seen_by
    from conformance.course.shown import points_json_of, points_markdown_of
    from conformance.report.jsonfile import report_json
    from conformance.report.markdown import render_markdown

    results = read_results(results_path)
    verdict = judge(results)
    points = points_markdown_of(results, verdict, rubric)
    shown = seen_by(results, audience)
    given = points_json_of(results, verdict, rubric)
    write_text(folder / JSON_NAME, report_json(shown, verdict, given))
    write_text(folder / MARKDOWN_NAME, render_markdown(shown, verdict, points=points))
    return verdict
