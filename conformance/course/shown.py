"""Points as text: for the terminal, and as Markdown for the report and a job summary."""

from __future__ import annotations

from typing import Any

from conformance.course.points import Blame, Earned, Grade, award
from conformance.course.rubric import Counts, Rubric, shown_points
from conformance.report.model import Results
from conformance.report.text import Safe, cell_code, one_line, prose, wrap
from conformance.report.verdict import Verdict

WORDS = {Counts.REQUIRED: "", Counts.BONUS: "bonus", Counts.LATER: "due later, not counted"}

MEANING = {
    Blame.CANDIDATE: "Candidate failure: the submission could not be graded, so it has no points.",
    Blame.INFRASTRUCTURE: "Infrastructure failure: the grading itself did not work, so there are "
    "no points yet. This says nothing about the submission; the course staff should run it again.",
}


def why_none(grade: Grade) -> str:
    """Why there are no points, in two sentences; empty when there are some."""
    return f"{MEANING[grade.blame]} Reason: {grade.reason}" if grade.blame else ""


def points_text_of(
    results: Results, verdict: Verdict, rubric: Rubric | None, width: int = 100
) -> str:
    """The points of a run for the terminal; empty without a rubric."""
    return "" if rubric is None else points_text(award(results, rubric, verdict), width)


def points_markdown_of(results: Results, verdict: Verdict, rubric: Rubric | None) -> Safe:
    """The points of a run as Markdown; empty without a rubric."""
    return Safe("") if rubric is None else points_markdown(award(results, rubric, verdict))


def points_json_of(
    results: Results, verdict: Verdict, rubric: Rubric | None
) -> dict[str, Any] | None:
    """The points of a run for `report.json`; None without a rubric."""
    return None if rubric is None else award(results, rubric, verdict).to_json()


def points_text(grade: Grade, width: int = 100) -> str:
    """For the terminal: the points, then a line per component."""
    if grade.blame:
        return wrap(f"Points: {grade.shown}\n{why_none(grade)}", width)
    name = max((len(earned.component) for earned in grade.components), default=0)
    rows = [
        one_line_of(f"  {earned.component:<{name}}  {_amount(earned):>9}  {remark(earned)}", width)
        for earned in grade.components
    ]
    return "\n".join([f"Points: {grade.shown}", *rows])


def points_markdown(grade: Grade) -> Safe:
    """For the report and the job summary."""
    if grade.blame:
        return Safe(f"## Points\n\n**{prose(grade.shown)}.** {prose(why_none(grade))}")
    rows = [
        f"| {cell_code(earned.component)} | {shown_points(earned.points)} |"
        f" {shown_points(earned.possible)} | {_cell(remark(earned))} |"
        for earned in grade.components
    ]
    head = ["| component | points | of | |", "| --- | ---: | ---: | --- |"]
    return Safe("\n".join(["## Points", "", f"**{prose(grade.shown)}.**", "", *head, *rows]))


def remark(earned: Earned) -> str:
    """How the points of a component came about."""
    parts = ", ".join(part.shown for part in earned.parts)
    how = "" if earned.note or not earned.parts else str(earned.grading)
    return "; ".join(filter(None, (WORDS[earned.counts], earned.note or parts, how)))


def one_line_of(row: str, width: int) -> str:
    """A row of a table cut to the width; its columns stay where they are."""
    return row.rstrip() if len(row) <= width else f"{row[: width - 1]}…"


def _amount(earned: Earned) -> str:
    return f"{shown_points(earned.points)}/{shown_points(earned.possible)}"


def _cell(text: str) -> Safe:
    return Safe(prose(one_line(text, 300)))
