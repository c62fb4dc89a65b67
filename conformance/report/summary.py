"""The short summary at the end of a run in a terminal.  Returns text, prints nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformance.report.advice import next_step, passes_as_far_as_asked
from conformance.report.causes import Cause, causes
from conformance.report.failures import Failure, group
from conformance.report.figures import listed, plural, shown_margin, shown_score
from conformance.report.model import COUNTED, LEVELS, Results
from conformance.report.rules import rule_lines
from conformance.report.stream import MARKDOWN_NAME
from conformance.report.text import one_line, wrap
from conformance.report.verdict import ComponentResult, Status, Verdict, judge

FIRST = 5
"""So many failures are named, or one of each component if that is more; the report has them all."""

MOST = 12
"""No more components than this have their first failure named."""

ROOM = len(" and 999 more")
"""Columns that are kept free behind a list of names."""


def summary_text(
    results: Results,
    verdict: Verdict | None = None,
    *,
    folder: Path | None = None,
    encoding: str | None = "utf-8",
    width: int = 100,
    points: str = "",
) -> str:
    """Verdict, table by component, the first failures in two lines each, where the report is.

    Each component that fails has its first failure named; unmet SHOULDs are named in one line.

    `encoding` is that of the stream it will be written to; what that cannot show becomes ASCII.
    `points` is a text on points, where there are any.
    """
    verdict = verdict or judge(results)
    counted = results.header.counted if results.header else COUNTED["must"]
    absent = {c.name for c in verdict.components if c.status is Status.NOT_IMPLEMENTED}
    told = [c for c in results.ordered() if c.component not in absent]
    names = [component.name for component in verdict.components]
    order = results.header.requirements if results.header else ()
    failures = group((c for c in told if c.level in counted), names, order)
    advised = group((c for c in told if c.level not in counted), names, order)
    parts = [
        _verdict(results, verdict, width),
        _table(verdict.components),
        points,
        rule_lines(results.policy, width),
        _missing(results, absent, width),
        _causes(causes((c for c in told if c.level in counted), names), width),
        _failures(failures, width),
        _advised(advised, width),
        _next(results, verdict, failures, width),
        f"Report: {folder / MARKDOWN_NAME}" if folder else "",
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    return _for_stream(text, encoding)


def _verdict(results: Results, verdict: Verdict, width: int) -> str:
    name = results.header.candidate.name if results.header else ""
    score = f", score {shown_score(verdict.score)}" if verdict.whole else ""
    of = f" ({one_line(name, 60)})" if name else ""
    plainly = []
    if passes_as_far_as_asked(results.header, verdict):
        plainly = [next_step(results.header, verdict, ()).advice]
    lines = [f"Verdict: {verdict.kind.upper()}{score}{of}", *plainly]
    lines += [verdict.headline, *verdict.reasons]
    if verdict.error:
        lines.append(verdict.error[:2000])
    return wrap("\n".join(lines), width)


def _missing(results: Results, absent: set[str], width: int) -> str:
    """Why components count as not implemented, where that is not plain."""
    said = {c.component: c.message for c in results.ordered() if c.component in absent}
    lines = [
        one_line(f"  {name}: {message}", width)
        for name, message in said.items()
        if message and "NotImplementedError" not in message and "there is no" not in message
    ]
    return "\n".join(["Not implemented, because:", *lines]) if lines else ""


def _table(components: Sequence[ComponentResult]) -> str:
    from tabulate import tabulate  # type: ignore[import-untyped]  # it has no annotations

    rows = [
        [
            one_line(component.name, 40),
            component.status.value,
            *(component.levels[level].shown for level in LEVELS),
            shown_margin(component.worst_margin),
        ]
        for component in components
    ]
    headers = ["component", "status", *LEVELS, "worst margin"]
    align = ("left", "left", "right", "right", "right", "right")
    return tabulate(rows, headers, "simple", disable_numparse=True, colalign=align) if rows else ""


def _failures(failures: Sequence[Failure], width: int) -> str:
    if not failures:
        return ""
    named = _named(failures)
    rest = sum(failure.size for failure in failures) - sum(failure.size for failure in named)
    lines = ["What went wrong:" if not rest else "What went wrong first:"]
    for failure in named:
        lines += _two_lines(failure, width)
    if rest:
        lines.append(f"… and {plural(rest, 'more failed check')}, see the report.")
    return "\n".join(lines)


def _named(failures: Sequence[Failure]) -> list[Failure]:
    """The first failure of each component, and further ones as long as there is room."""
    firsts: dict[str, Failure] = {}
    for failure in failures:
        firsts.setdefault(failure.component, failure)
    kept = list(firsts.values())[:MOST]
    others = [f for f in failures if f not in kept]
    kept += others[: max(0, FIRST - len(kept))]
    return [failure for failure in failures if failure in kept]


def _advised(failures: Sequence[Failure], width: int) -> str:
    """One line on what is only advised."""
    unmet = [failure for failure in failures if failure.level == "SHOULD"]
    names = list(dict.fromkeys(name for failure in unmet for name in failure.requirements))
    if not names:
        return ""
    lead, kept = f"Unmet SHOULDs, which do not count ({len(names)}): ", list(names)
    while len(kept) > 1 and len(lead) + len(", ".join(kept)) > width - ROOM:
        kept.pop()
    more = f" and {len(names) - len(kept)} more" if len(kept) < len(names) else ""
    return one_line(f"{lead}{', '.join(kept)}{more}", width)


def _causes(found: Sequence[Cause], width: int) -> str:
    """The mistakes that were recognised, with what each explains."""
    if not found:
        return ""
    lines = ["Likely mistakes:" if len(found) > 1 else "Likely mistake:"]
    for cause in found[:FIRST]:
        told = cause.diagnosis
        explains = plural(len(cause.checks), "failed check")
        where = listed(cause.components)
        lines.append(wrap(f"{told.component}: {told.sentence}", width, 2))
        lines.append(wrap(f"It explains {explains} in {where} ({told.certainty}).", width, 6))
        if told.hint:
            lines.append(wrap(f"Think about: {told.hint}", width, 6))
    if len(found) > FIRST:
        lines.append(f"… and {plural(len(found) - FIRST, 'more mistake')}, see the report.")
    return "\n".join(lines)


def _two_lines(failure: Failure, width: int) -> list[str]:
    shown = failure.shown
    more = f" (and {failure.size - 1} more)" if failure.size > 1 else ""
    message = shown.message or shown.outcome
    found = shown.diagnosis
    second = message
    if found is not None and not found.fault:  # a recognised mistake is told above
        second = found.sentence
    first = f"{shown.requirement}  {shown.id}{more}"
    if found is None and shown.outcome != "failed":
        second = f"{shown.outcome}: {message}"
    return [f"  {one_line(first, width - 2)}", f"      {one_line(second, width - 6)}"]


def _next(results: Results, verdict: Verdict, failures: Sequence[Failure], width: int) -> str:
    if passes_as_far_as_asked(results.header, verdict):  # it is said at the top
        return ""
    step = next_step(results.header, verdict, failures)
    advice = step.advice.replace("explained below", "explained in the report")
    lines = [wrap(f"Next: {advice} {step.lead}".rstrip(), width)]
    if step.command:
        lines.append(f"  {one_line(step.command, 1000)}")
    return "\n".join(lines)


def _for_stream(text: str, encoding: str | None) -> str:
    """The text with what the stream cannot write replaced: known signs by words, others escaped."""
    encoding = encoding or "ascii"
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        for sign, plain in {"∞": "inf", "…": "..."}.items():
            text = text.replace(sign, plain)
        return text.encode("ascii", "backslashreplace").decode("ascii")
    return text
