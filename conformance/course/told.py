"""A failure in plain text, for platforms that show text and no Markdown."""

from __future__ import annotations

from conformance.report import text
from conformance.report.blocks import NO_ANSWER, label
from conformance.report.failures import Failure
from conformance.report.figures import plural, shown, shown_margin
from conformance.report.model import CheckRecord, Details

FIELD = (600, 10)
"""Characters and lines of one fact."""

WIDTH = 96


def failure_text(failure: Failure) -> str:
    """Failed checks that have one reason, told once."""
    details = failure.shown.details or Details()
    names = ", ".join(failure.requirements[:5])
    more = len(failure.requirements) - 5
    names += f" and {more} more" if more > 0 else ""
    lines = [f"{names} ({failure.level}): {plural(failure.size, 'check')} did not pass"]
    if details.sentence and len(failure.requirements) == 1:
        lines += _indented(text.wrap(details.sentence, WIDTH))
    return "\n".join([*lines, *_indented(facts(failure.shown))])


def facts(check: CheckRecord) -> str:
    """What was asked, what came back, and what may be wrong, as labelled lines."""
    details, found = check.details or Details(), check.diagnosis
    rows = [
        ("result", text.wrap(check.message or NO_ANSWER.get(check.outcome, check.outcome), 80)),
        ("in full", text.wrap(details.hidden_message or "", 80)),
        (label(found).lower(), text.wrap(found.sentence, 76) if found else ""),
        ("to think about", text.wrap(found.hint, 76) if found else ""),
        ("margin", _margin(check)),
        ("where", details.where or ""),
        ("expected", details.expected or ""),
        ("got", details.got or ""),
        ("error", "" if details.error is None else shown(details.error)),
        ("tolerance", "" if details.tolerance is None else shown(details.tolerance)),
        ("input", details.inputs or ""),
        ("dtype", details.dtype or ""),
        ("case", details.case or ""),
        ("why asked", text.wrap(details.note or "", 80)),
        ("raised in", text.last_lines(details.traceback or "", 1000, 12)),
        ("printed", details.printed or ""),
        ("check", check.id),
        ("repeat", details.replay or ""),
    ]
    return text.facts([(name, text.shorten(value, *FIELD)) for name, value in rows])


def _margin(check: CheckRecord) -> str:
    if check.margin is None:
        return ""
    return f"{shown_margin(check.margin)} times the tolerance"


def _indented(lines: str) -> list[str]:
    return [f"  {line}".rstrip() for line in lines.split("\n")]


def bounded(parts: list[str], size: int) -> str:
    """As many of the parts as fit, separated by blank lines, and how many there was no room for."""
    kept: list[str] = []
    left = size
    for part in parts:
        if len(part) > left:
            break
        kept.append(part)
        left -= len(part) + 2
    more = len(parts) - len(kept)
    return "\n\n".join(
        [*kept, *([f"… and {more} more, for which there is no room"] if more else [])]
    )
