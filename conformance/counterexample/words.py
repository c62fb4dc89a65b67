"""What `replay` prints: the input, what is expected, what came, and whether that is right."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from conformance.candidate.messages import Outcome, Reply
from conformance.candidate.resolve import Submission
from conformance.counterexample.form import Counterexample
from conformance.counterexample.judge import Judgement
from conformance.errors import ExitCode
from conformance.numerics.dtypes import is_float
from conformance.options import GradeOptions, grade_command
from conformance.report import text
from conformance.report.figures import shown, shown_margin
from conformance.spec import all_requirements

WIDTH = 96
LABEL = 12
SMALL = 120
"""Arrays of at most so many entries are shown in full, of larger ones the first `FIRST`."""

FIRST = 12
OUTPUT = (4000, 40)
"""Characters and lines of what the candidate printed, and of its traceback."""


def told(
    asked: Counterexample,
    reply: Reply,
    judgement: Judgement,
    submission: Submission,
    options: GradeOptions,
) -> str:
    """Everything about one replay, ready for a terminal; `options` repeat the whole check."""
    parts = [
        _head(asked, submission),
        text.facts(_facts(asked, reply, judgement)),
        _output("Where it was raised:", text.last_lines(reply.traceback, *OUTPUT)),
        _output("Printed during the call:", text.shorten(reply.printed, *OUTPUT)),
        _verdict(asked, judgement),
        _whole(asked, judgement, options),
    ]
    return "\n\n".join(part for part in parts if part)


def verdict_code(judgement: Judgement) -> ExitCode:
    """Right, wrong, or not to be told because nobody knows what would be right."""
    if judgement.problem:
        return ExitCode.NOT_CONFORMING
    return ExitCode.INTERNAL if judgement.open else ExitCode.CONFORMING


def _head(asked: Counterexample, submission: Submission) -> str:
    known = all_requirements().get(asked.requirement)
    lines = [
        f"{text.one_line(asked.check)}: {text.one_line(asked.requirement)}",
        textwrap.fill(known.sentence, WIDTH) if known else "",
        f"Candidate: {text.one_line(submission.name)}, {text.one_line(submission.how)}",
    ]
    return "\n".join(line for line in lines if line)


def _facts(asked: Counterexample, reply: Reply, judgement: Judgement) -> list[tuple[str, str]]:
    rows = [("input", "\n".join(_argument(n, v) for n, v in asked.arguments.items()))]
    rows += [("asked", text.wrap(_how(asked), WIDTH - LABEL))]
    rows += [("case", text.one_line(asked.case)), ("why asked", text.wrap(asked.why))]
    if asked.wrt:
        rows.append(("cotangent", _array(asked.cotangent)))
    if judgement.bound is not None:
        rows.append(("expected", f"{judgement.what}, {_array(judgement.bound.expected)}"))
    got = judgement.got
    if got is None and reply.outputs:
        got = reply.outputs[0]
    if got is not None:
        rows.append(("got", _array(got)))
    return [*rows, *_difference(judgement)]


def _difference(judgement: Judgement) -> list[tuple[str, str]]:
    """The worst entry, where there is one."""
    found = judgement.difference
    if found.index is None:
        return []
    place = f"{list(found.index)}: expected {found.expected:.9g}, got {found.got:.9g}"
    if found.error is None or found.tolerance is None:
        return [("worst at", place)]
    error = f"{shown(found.error)}, tolerance {shown(found.tolerance)}, "
    return [
        ("worst at", place),
        ("error", error + f"{shown_margin(found.margin)} times the tolerance"),
    ]


def _argument(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        entries = [_indented(f"{text.one_line(k)} = {_array(v)}") for k, v in value.items()]
        return "\n".join([f"{text.one_line(name)}, a dictionary:", *entries])
    shown_value = _array(value) if isinstance(value, np.ndarray) else text.one_line(repr(value))
    return f"{text.one_line(name)} = {shown_value}"


def _array(value: Any) -> str:
    """Dtype and shape; the numbers themselves, the first ones of a large array."""
    numbers = value.astype(np.float64) if is_float(value) else value
    head = f"{value.dtype}{list(value.shape)}"
    if value.size > SMALL:
        numbers = numbers.reshape(-1)[:FIRST]
    printed = np.array2string(
        np.asarray(numbers), precision=9, floatmode="maxprec", separator=", ", max_line_width=WIDTH
    )
    if value.size > SMALL:
        return f"{head}, it begins {' '.join(printed.split())}"
    rows = [line.rstrip() for line in printed.splitlines() if line.strip()]
    return f"{head} {printed}" if len(rows) == 1 else f"{head}\n{_indented(chr(10).join(rows))}"


def _indented(lines: str) -> str:
    return textwrap.indent(lines, "  ")


def _how(asked: Counterexample) -> str:
    """How the check asked, in words."""
    how = asked.how
    repeat, passes = how.get("repeat", 1), how.get("backward_passes", 1)
    parts = [
        f"{asked.function}, {asked.dtype}",
        *(f"{text.one_line(n)} laid out {kind}" for n, kind in how.get("layouts", {}).items()),
        f"under torch {how['mode']} mode" if how.get("mode", "grad") != "grad" else "",
        f"{repeat} times with equal inputs" if repeat > 1 else "",
        f"with the gradients of {', '.join(map(text.one_line, asked.wrt))}" if asked.wrt else "",
        f"{passes} backward passes" if passes > 1 else "",
    ]
    return ", ".join(part for part in parts if part)


def _output(title: str, printed: str) -> str:
    return f"{title}\n{_indented(printed)}" if printed.strip() else ""


def _verdict(asked: Counterexample, judgement: Judgement) -> str:
    if judgement.problem:
        return text.wrap(f"WRONG: {judgement.problem.rstrip('.')}.", WIDTH)
    if judgement.open:
        return text.wrap(
            "OPEN: an answer came, but the file holds no expected value, so this input alone "
            "proves nothing.",
            WIDTH,
        )
    margin = judgement.difference.margin
    room = "" if margin is None else f", its largest error is {shown_margin(margin)} tolerances"
    return text.wrap(f"RIGHT: this input is answered as it should be{room}.", WIDTH)


def _whole(asked: Counterexample, judgement: Judgement, options: GradeOptions) -> str:
    """How to repeat the whole check, and why that may still fail."""
    if judgement.problem:
        lead = "After a change, this repeats the whole check:"
    elif not asked.alone:
        said = asked.message or str(Outcome(asked.outcome))
        lead = (
            "By itself it was not wrong when it was stored either: the check compares several "
            f"calls, or looks at more than values. It said: {said.rstrip('.')}. This repeats the "
            "whole check:"
        )
    elif options.impl != asked.impl:
        lead = "This repeats the whole check:"
    else:
        lead = (
            "It was wrong when it was stored; if nothing has changed since, the calls before it "
            "made the difference. This repeats the whole check:"
        )
    return f"{text.wrap(lead, WIDTH)}\n  {text.one_line(grade_command(options), 1000)}"
