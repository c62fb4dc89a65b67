"""Asking a candidate one stored input again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.counterexample.head import Head, read_head
from conformance.errors import ExitCode, UsageError
from conformance.opening import forget_paths, opened, resolved
from conformance.options import OPTIONS, GradeOptions

FOR_THE_RUN = ("in_process",)
"""Stored options that are not taken over: a debugger is at hand only where it is asked for."""

OF_THE_CANDIDATE = ("python",)
"""Stored options that belong to the candidate of the file; another one may need others."""


def replay_file(
    path: Path, impl: str | None, given: Mapping[str, Any], cwd: Path
) -> tuple[str, ExitCode]:
    """Ask the candidate that the file names, or `impl`; the text about it and the exit code.

    `given` are options of the command, which go before those in the file. Raises UsageError for a
    file that is none, LoadError for a candidate that cannot be opened.
    """
    head = read_head(path)
    options = chosen_options(head, impl, given)
    submission = resolved(options.impl, cwd)
    forget_paths(submission.root)

    from conformance.counterexample.form import from_head
    from conformance.counterexample.judge import judge
    from conformance.counterexample.words import told, verdict_code

    found = from_head(head)
    caller = opened(options, submission)
    try:
        caller.describe()
        reply = caller.call(found.call)
    finally:
        caller.close()
    judgement = judge(found, reply)
    again = replace(options, check=(found.check,))
    return told(found, reply, judgement, submission, again), verdict_code(judgement)


def chosen_options(head: Head, impl: str | None, given: Mapping[str, Any]) -> GradeOptions:
    """The options to open the candidate with, and to repeat its whole check with."""
    keys = {option.key for option in OPTIONS} - {"component", "check", "report"}
    unknown = sorted(set(head.options) - keys)
    if unknown:
        raise head.bad(f"its options of the run hold an unknown one: {unknown[0][:100]!r}")
    left = FOR_THE_RUN if impl is None else (*FOR_THE_RUN, *OF_THE_CANDIDATE)
    stored = {name: value for name, value in head.options.items() if name not in left}
    try:
        GradeOptions.parse(head.impl, stored)
    except UsageError as error:
        raise head.bad(f"its options of the run are wrong: {error.message}") from None
    wanted = {name: value for name, value in given.items() if value not in (None, False)}
    return GradeOptions.parse(impl or head.impl, {**stored, **wanted})
