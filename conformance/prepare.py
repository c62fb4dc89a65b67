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
from typing import TYPE_CHECKING, Any, TextIO

import pytest

from conformance.bench.storage import without_needless_folder
from conformance.config import must_be_outside, with_config
from conformance.course.outputs import Outputs
from conformance.errors import ConformanceError, UsageError, internal_error
from conformance.gate import Gate, must_be_decidable
from conformance.opening import forget_paths, resolved
from conformance.options import OPTIONS, GradeOptions, command_line
from conformance.plugin import IMPL, SUITE_INI
from conformance.spec import COMPONENTS_FOLDER, component_names
from conformance.streams import Patient

if TYPE_CHECKING:
    from conformance.candidate.resolve import Submission


ENDING = ("SIGTERM", "SIGHUP", "SIGQUIT")
"""Signals that end a run in order, beside that of Ctrl-C."""


def prepare(config: pytest.Config) -> int | None:
    """Check the options, find the candidate, start its process, register the hooks of the run.

    Returns an exit code after one clear message when that is not possible, else None.
    """
    if not is_remote(config):
        _end_like_an_interrupt(config)
        _keep_on_when_nobody_reads(config)
    without_needless_folder(config.option, config.invocation_params.dir)
    outputs = _outputs(config)
    try:
        _prepare(config, outputs)
    except ConformanceError as error:
        return _refuse(config, error, outputs)
    except KeyboardInterrupt:
        interrupted = ConformanceError("interrupted before anything was graded")
        return _refuse(config, interrupted, outputs)
    except Exception as error:
        return _refuse(config, internal_error(error, "starting the run"), outputs)
    return None


def _outputs(config: pytest.Config) -> Outputs:
    """What the command asks to be written for a course; nothing where others write it."""
    cwd = Path(config.invocation_params.dir)
    if is_remote(config) or config.option.collectonly:
        return Outputs(cwd)
    names = ("junit", "gradescope", "github")
    found = Outputs.asked_for({n: config.getoption(f"conformance_{n}") for n in names}, cwd)
    _say(sys.stdout, found.opening_line())
    return found


def is_remote(config: pytest.Config) -> bool:
    """Whether this is a process of pytest-xdist that runs a part of the checks."""
    return hasattr(config, "workerinput")


def _prepare(config: pytest.Config, outputs: Outputs) -> None:
    cwd = Path(config.invocation_params.dir)
    options = _options(config)
    if not (is_remote(config) or config.option.collectonly):
        outputs.settle(options)
    submission = None
    try:
        submission = resolved(options.impl, cwd)
        _must_be_the_instructor_s(config, options, submission)
        forget_paths(submission.root)
        if options.benchmark:
            _benchmark(config, options, submission, cwd)
            return

        from conformance.grading import Grading

        grading = Grading.open(config, options, submission, cwd, outputs)
    except ConformanceError as error:
        if submission is None or isinstance(error, UsageError):
            _tell_report(options, cwd, error)
        raise
    gate = _gate(config)
    if gate is not None:
        gate.grading = grading
    config.pluginmanager.register(grading, "conformance-grading")
    config.args = [str(COMPONENTS_FOLDER)]
    config.args_source = config.ArgsSource.ARGS


def _benchmark(
    config: pytest.Config, options: GradeOptions, submission: Submission, cwd: Path
) -> None:
    """Register what measures in place of what grades."""
    from conformance.bench.items import NAME, Benchmarking

    benchmarking = Benchmarking.open(config, options, submission, cwd)
    config.pluginmanager.register(benchmarking, NAME)
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
    options = GradeOptions.parse(config.getoption(IMPL), with_config(given), command_line())
    if options.gate:
        if _gate(config) is None:
            raise UsageError(
                "--gate is for `conformance grade`: pytest has many ways to run a part of the "
                "checks, and reads files of the folder it is started in"
            )
        must_be_decidable(options, [key for key, value in given.items() if value])
    if options.trust and config.getoption("inifilename", None) == str(SUITE_INI):
        raise UsageError(
            "--trust is for `pytest --impl=...`; `conformance grade` reads no settings of others"
        )
    return options


def _gate(config: pytest.Config) -> Gate | None:
    """The gate that waits for the verdict, where `--gate` was asked for."""
    return next((p for p in config.pluginmanager.get_plugins() if isinstance(p, Gate)), None)


def _must_be_the_instructor_s(
    config: pytest.Config, options: GradeOptions, submission: Submission
) -> None:
    """UsageError when the submission holds what decides how it is graded."""
    for name in ("config", "hidden_seed_file"):
        path = getattr(options, name)
        if path is not None and str(path) != "-":
            must_be_outside(path, submission.root, name.replace("_", "-"))
    rubric = config.getoption("conformance_rubric")
    if rubric:
        must_be_outside(Path(rubric).expanduser(), submission.root, "rubric")
    if options.policy is not None and options.policy.file is not None:
        must_be_outside(options.policy.file, submission.root, "policy")


def _tell_report(options: GradeOptions, cwd: Path, error: ConformanceError) -> None:
    """Nothing will be graded: the report of an earlier run must not be taken for this one's."""
    if options.report is not None:
        from conformance.recording import record_error

        with contextlib.suppress(UsageError):  # the folder itself may be what is wrong
            record_error(cwd / options.report, error)


def _refuse(config: pytest.Config, error: ConformanceError, outputs: Outputs) -> int:
    gate = _gate(config)
    if gate is not None:
        gate.refused = error
    message = f"conformance: {error.text}"
    if is_remote(config):
        pytest.exit(message, returncode=int(error.exit_code))
    _say(sys.stderr, message)
    outputs.refuse(error)
    for line in outputs.closing_lines():
        _say(sys.stdout, line)
    return int(error.exit_code)


def _say(stream: TextIO | None, line: str) -> None:
    if line:
        patient = Patient.around(stream)
        patient.write(line + "\n")
        patient.flush()


def _end_like_an_interrupt(config: pytest.Config) -> None:
    """Let what a CI or a terminal sends end the run like Ctrl-C: with a report of a part.

    Only the first one counts: a second must not disturb the writing of the report. What is to be
    ignored (`nohup`) stays so.
    """
    before: dict[int, Any] = {}

    def stop(number: int, frame: FrameType | None) -> None:
        for one in before:
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt(f"ended by {signal.Signals(number).name}")

    if threading.current_thread() is not threading.main_thread():
        return
    for name in ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, stop) or signal.SIG_DFL

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    config.add_cleanup(restore)


def _keep_on_when_nobody_reads(config: pytest.Config) -> None:
    before = sys.stdout
    sys.stdout = Patient.around(before)
    if before is not None:
        config.add_cleanup(lambda: setattr(sys, "stdout", before))
