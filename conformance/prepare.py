"""The first steps of a grading run in pytest, before anything heavy is imported.

Options are checked and the candidate is found first (`opening`). Only then comes the rest of the
suite.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from conformance.errors import ConformanceError, UsageError, internal_error
from conformance.opening import forget_paths, resolved
from conformance.options import OPTIONS, GradeOptions, command_line
from conformance.plugin import IMPL
from conformance.spec import COMPONENTS_FOLDER, component_names
from conformance.streams import Patient


def prepare(config: pytest.Config) -> int | None:
    """Check the options, find the candidate, start its process, register the hooks of the run.

    Returns an exit code after one clear message when that is not possible, else None.
    """
    if not is_remote(config):
        _end_like_an_interrupt(config)
        _keep_on_when_nobody_reads(config)
    try:
        _prepare(config)
    except ConformanceError as error:
        return _refuse(config, error)
    except KeyboardInterrupt:
        return _refuse(config, ConformanceError("interrupted before anything was graded"))
    except Exception as error:
        return _refuse(config, internal_error(error, "starting the run"))
    return None


def is_remote(config: pytest.Config) -> bool:
    """Whether this is a process of pytest-xdist that runs a part of the checks."""
    return hasattr(config, "workerinput")


def _prepare(config: pytest.Config) -> None:
    cwd = Path(config.invocation_params.dir)
    options = _options(config)
    submission = None
    try:
        submission = resolved(options.impl, cwd)
        forget_paths(submission.root)

        from conformance.grading import Grading

        grading = Grading.open(config, options, submission, cwd)
    except ConformanceError as error:
        if submission is None or isinstance(error, UsageError):
            _tell_report(options, cwd, error)
        raise
    config.pluginmanager.register(grading, "conformance-grading")
    config.args = [str(COMPONENTS_FOLDER)]
    config.args_source = config.ArgsSource.ARGS


def _options(config: pytest.Config) -> GradeOptions:
    """The options of the command; what it names in place of paths are components and checks."""
    given: dict[str, Any] = {o.key: config.getoption(f"conformance_{o.key}") for o in OPTIONS}
    for word in config.option.file_or_dir or ():
        if word == str(COMPONENTS_FOLDER):
            continue
        name, _, rest = str(word).partition("::")
        if name not in component_names():
            raise UsageError(
                f"{word}: with --impl no path can be given; name a component, the id of a check, "
                "or use --component and --check"
            )
        key = "check" if rest else "component"
        given[key] = [*(given[key] or ()), str(word)]
    return GradeOptions.parse(config.getoption(IMPL), given, command_line())


def _tell_report(options: GradeOptions, cwd: Path, error: ConformanceError) -> None:
    """Nothing will be graded: the report of an earlier run must not be taken for this one's."""
    if options.report is not None:
        from conformance.recording import record_error

        with contextlib.suppress(UsageError):  # the folder itself may be what is wrong
            record_error(cwd / options.report, error)


def _refuse(config: pytest.Config, error: ConformanceError) -> int:
    message = f"conformance: {error.text}"
    if is_remote(config):
        pytest.exit(message, returncode=int(error.exit_code))
    stream = Patient.around(sys.stderr)
    stream.write(message + "\n")
    stream.flush()
    return int(error.exit_code)


def _end_like_an_interrupt(config: pytest.Config) -> None:
    """Let SIGTERM end the run like Ctrl-C: with a report that says incomplete."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(f"ended by {signal.Signals(number).name}")

    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, stop) or signal.SIG_DFL

        def restore() -> None:
            signal.signal(signal.SIGTERM, before)

        config.add_cleanup(restore)


def _keep_on_when_nobody_reads(config: pytest.Config) -> None:
    before = sys.stdout
    sys.stdout = Patient.around(before)
    if before is not None:
        config.add_cleanup(lambda: setattr(sys, "stdout", before))
