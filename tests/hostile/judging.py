"""Does what was seen of a run agree with what the entries in it say must hold?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from markdown_it import MarkdownIt

from .catalogue import BOXED, CODES, WHOLE_RUN, WITNESSES, Arrangement, Entry
from .world import MOST_TEXT, SECRET, Seen

MOST_MEMORY = 700
"""MiB of memory that the judge may take; about 150 are needed for an honest candidate."""
MOST_REPORT = 8 << 20

_WORKFLOW_COMMAND = re.compile(r"^\s*::|##\[", re.MULTILINE)
"""What a CI system would execute when it reads it in the log of a job."""


def complaints(entry: Entry, mode: str, found: list[str]) -> list[str]:
    """What there is to complain about; that a known defect has gone is a complaint as well."""
    if mode not in entry.defects:
        return found
    return [] if found else [f"holds now: take the defect ({mode}) out of the catalogue"]


def problems(arrangement: Arrangement, seen: Seen) -> dict[str, list[str]]:
    """Entry -> sentences on what does not hold."""
    report = _report(seen)
    general = list(_of_the_run(arrangement, seen, report))
    found = {}
    for entry in arrangement.entries:
        own = list(_of_the_entry(entry, arrangement, seen, report))
        found[entry.name] = own + general
    return found


def _report(seen: Seen) -> Any:
    try:
        return json.loads((seen.report / "report.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None


# -- what holds for every run ----------------------------------------------------------------------


def _of_the_run(arrangement: Arrangement, seen: Seen, report: Any) -> Iterator[str]:
    holds = [entry.holds(seen.mode) for entry in arrangement.entries]
    endings = [hold.endings for hold in holds]
    codes = {CODES.get(ending, 1) for ending in endings[0]}
    if len(endings) > 1:  # none of these ends a whole run
        codes = {0} if all("passed" in one for one in endings) else {1}
        codes |= {1} if any(one != ("passed",) for one in endings) else set()
    if seen.code not in codes:
        yield f"exit code {seen.code} instead of {' or '.join(map(str, sorted(codes)))}"
    wanted = {place for hold in holds for place in hold.changes}
    if set(seen.changes) != wanted:
        yield f"changed: {sorted(seen.changes)}, expected: {sorted(wanted)}"
    if bool(seen.survivors) != any(hold.survives for hold in holds):
        yield f"processes left: {seen.survivors}"
    if seen.memory > MOST_MEMORY:
        yield f"the judge took {seen.memory:.0f} MiB"
    yield from _of_the_terminal(seen)
    if seen.mode == BOXED and arrangement.entries[0].command == "grade":
        yield from _of_the_gate(seen)
    if seen.code == CODES["killed"]:
        return
    yield from _of_the_reports(seen, report)
    whole = any(ending in WHOLE_RUN for one in endings for ending in one)
    if not whole:
        yield from _of_the_witnesses(arrangement, report)


def _of_the_terminal(seen: Seen) -> Iterator[str]:
    if len(seen.out) > MOST_TEXT // 8:
        yield f"{len(seen.out)} characters on the terminal"
    for mark in ("Traceback (most recent", "INTERNALERROR", "internal error"):
        if mark in seen.out:
            yield f"{mark!r} on the terminal"
    hidden = {c for c in seen.out if not c.isprintable() and c not in "\n\t"}
    if hidden:
        yield f"control characters on the terminal: {sorted(hidden)!r}"
    if found := _WORKFLOW_COMMAND.search(seen.out):
        yield f"a workflow command on the terminal: {seen.out[found.start() :][:80]!r}"
    if SECRET in seen.out:
        yield "a secret on the terminal"


def _of_the_gate(seen: Seen) -> Iterator[str]:
    """The line of --gate stands once, at the end, and agrees with the exit code."""
    lines = seen.out.strip().splitlines()
    gates = [line for line in lines if line.startswith("GATE: ")]
    if gates != lines[-1:]:
        yield f"lines of the gate: {gates}"
    elif gates[0].startswith("GATE: PASS") != (seen.code == 0):
        yield f"exit code {seen.code} and {gates[0][:60]!r}"


def _of_the_reports(seen: Seen, report: Any) -> Iterator[str]:
    from conformance.report.stream import RESULTS_NAME, read_results

    if report is None:
        if seen.code not in (CODES["refused"], CODES["incomplete"]):
            yield "no report.json, or one that is no JSON"
        return
    sizes = [p.stat().st_size for p in seen.report.rglob("*") if p.is_file()]
    if sum(sizes) > MOST_REPORT:
        yield f"reports of {sum(sizes)} bytes"
    results = read_results(seen.report / RESULTS_NAME)
    if results.error is None and results.problems and seen.code in (0, 1):
        yield f"results that are not whole: {results.problems[0]}"
    if report["verdict"] == "conforming" and seen.code != 0:
        yield "a report that says conforming"
    if seen.code == 0 and report["verdict"] != "conforming":
        yield f"exit code 0 and the verdict {report['verdict']}"
    collected = results.header.collected if results.header else 0
    if seen.code in (0, 1) and len(report["checks"]) != collected:
        yield f"{len(report['checks'])} checks in the report, {collected} collected"
    yield from _of_the_markdown((seen.report / "report.md").read_text("utf-8"))


def _of_the_markdown(text: str) -> Iterator[str]:
    """Nothing that a candidate wrote is markup, a link, or an escape in the report."""
    if any(not c.isprintable() and c not in "\n\t" for c in text):
        yield "control characters in report.md"
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    for tag in ("<script", "<img", "<iframe", "javascript:"):
        if tag in re.sub(r"<code[^>]*>.*?</code>", "", html, flags=re.DOTALL).lower():
            yield f"{tag} in report.md"
    if html.count("<details") != html.count("</details"):
        yield "an unbalanced <details> in report.md"


def _of_the_witnesses(arrangement: Arrangement, report: Any) -> Iterator[str]:
    if report is None:
        return
    for name in WITNESSES:
        if name in arrangement.components.values():
            continue
        status = report["components"].get(name, {}).get("status")
        if status != "conforming":
            yield f"{name}, which is right, is {status}"


# -- what holds for an entry -----------------------------------------------------------------------


def _of_the_entry(entry: Entry, arrangement: Arrangement, seen: Seen, report: Any) -> Iterator[str]:
    hold = entry.holds(seen.mode)
    text = seen.out
    ended_whole = any(CODES[one] == seen.code for one in hold.endings if one in WHOLE_RUN)
    if report is not None and not ended_whole:
        component = arrangement.components[entry.name]
        checks = [c for c in report["checks"] if c["component"] == component]
        ended = {c["outcome"] for c in checks} - {"passed"} or {"passed"}
        if not checks or not ended & set(hold.endings):
            messages = sorted({c["message"][:160] for c in checks if c["outcome"] != "passed"})
            yield f"{component} ended {sorted(ended)}, expected {hold.words}: {messages[:2]}"
        text += "\n".join(c["message"] for c in checks)
    if hold.says and hold.says not in text:
        yield f"nothing says {hold.says!r}"
