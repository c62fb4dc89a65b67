"""What a course needs beside a verdict: points, and results in the shapes that platforms read.

All of it is made from `results.jsonl` and a rubric, like the report: `award` gives the points,
`seen_by` leaves out what an audience must not see, and `junit`, `gradescope`, `github` and
`classroom` render. Only `outputs` writes files.
"""

from __future__ import annotations

from conformance.course.audience import seen_by
from conformance.course.points import Blame, Earned, Grade, award
from conformance.course.rubric import Counts, Grading, Rubric, Worth

__all__ = [
    "Blame",
    "Counts",
    "Earned",
    "Grade",
    "Grading",
    "Rubric",
    "Worth",
    "award",
    "seen_by",
]
