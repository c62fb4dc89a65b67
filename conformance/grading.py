"""How a grading run lives inside pytest: collection, items, progress, exit code."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance import SPEC_VERSION, __version__
from conformance.candidate.messages import Outcome
from conformance.errors import ConformanceError, ExitCode, LoadError
from conformance.options import OPTIONS, GradeOptions
from conformance.report import Verdict, read_results, summary_text, write_reports
from conformance.session import GradingRun, Recorder, command_line
from conformance.spec import COMPONENTS_FOLDER
from conformance.suite.check import Check
from conformance.suite.failure import CheckResult

PROPERTY = "conformance"
"""Name under which a check's record travels with pytest's report (also between processes)."""

WORDS = {
    Outcome.PASSED: ("passed", ".", "PASSED"),
    Outcome.NOT_IMPLEMENTED: ("not implemented", "n", "NOT IMPLEMENTED"),
    Outcome.FAILED: ("failed", "F", "FAILED"),
    Outcome.RAISED: ("failed", "R", "RAISED"),
    Outcome.CRASHED: ("failed", "C", "CRASHED"),
    Outcome.TIMED_OUT: ("failed", "T", "TIMED OUT"),
    Outcome.OUT_OF_MEMORY: ("failed", "M", "OUT OF MEMORY"),
    Outcome.SKIPPED: ("skipped", "s", "SKIPPED"),
}
ADVICE = ("not met (not binding)", "o", "NOT MET")


def prepare(config: pytest.Config) -> int | None:
    """Check the options, find the candidate, start its process, register `Grading`.

    Returns an exit code after printing one message when that is not possible, else None.
    """
    try:
        options = _options(config)
        cwd = Path(config.invocation_params.dir)
        if config.option.collectonly and hasattr(config, "workerinput"):
            return None
        run = GradingRun.open(options, cwd)
    except ConformanceError as error:
        return _refuse(config, error)
    grading = Grading(config, run, cwd)
    config.pluginmanager.register(grading, "conformance-grading")
    if not config.option.file_or_dir or hasattr(config, "workerinput"):
        config.args = [str(COMPONENTS_FOLDER)]
        config.args_source = config.ArgsSource.ARGS
    _forget_paths(run.submission.root)
    return None


def _options(config: pytest.Config) -> GradeOptions:
    given = {o.key: config.getoption(f"conformance_{o.key}") for o in OPTIONS}
    return GradeOptions.parse(config.getoption("impl"), given, command_line())


def _refuse(config: pytest.Config, error: ConformanceError) -> int:
    message = f"conformance: {error}"
    if hasattr(config, "workerinput"):
        pytest.exit(message, returncode=int(error.exit_code))
    print(message, file=sys.stderr)  # noqa: T201  # the user's terminal, before pytest has one
    if error.details:
        print(error.details, file=sys.stderr)  # noqa: T201
    return int(error.exit_code)


def _forget_paths(root: Path) -> None:
    """Nothing under the submission may shadow a module of the judge."""
    ours = COMPONENTS_FOLDER.parent.parent
    for entry in list(sys.path):
        path = Path(entry or ".").resolve()
        if path.is_relative_to(root) and not ours.is_relative_to(path) and path != ours:
            if "site-packages" not in path.parts and "lib" not in path.parts:
                sys.path.remove(entry)


class Suite(pytest.Directory):
    """The suite's folder: all checks of a run."""

    def collect(self) -> Iterator[pytest.Item]:
        """The checks of the run, in order."""
        grading: Grading = self.config.pluginmanager.getplugin("conformance-grading")
        for check in grading.run.plan():
            if grading.run.chosen(check):
                yield CheckItem.from_parent(self, name=check.id, check=check)


class CheckItem(pytest.Item):
    """One check as pytest runs it."""

    def __init__(self, *, check: Check, **kwargs: Any) -> None:
        super().__init__(nodeid=check.id, **kwargs)
        self.check = check
        self.result: CheckResult | None = None

    def runtest(self) -> None:
        """Run the check; the outcome is judged in `pytest_runtest_makereport`."""
        grading: Grading = self.config.pluginmanager.getplugin("conformance-grading")
        self.result = grading.run.run(self.check)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the check stands."""
        code = self.check.function.__code__
        return Path(code.co_filename), code.co_firstlineno - 1, self.check.id


class Grading:
    """Hooks of one grading run, registered only with `--impl`."""

    def __init__(self, config: pytest.Config, run: GradingRun, cwd: Path) -> None:
        self.config = config
        self.run = run
        self.recorder: Recorder | None = None
        self.cwd = cwd
        self.load_error: ConformanceError | None = None
        self.verdict: Verdict | None = None
        self.remote_count: int | None = None

    @property
    def distributed(self) -> bool:
        """This process hands the checks out to processes of pytest-xdist."""
        return bool(getattr(self.config.option, "dist", "no") != "no") and not self.is_remote

    @property
    def is_remote(self) -> bool:
        """This process is one of pytest-xdist's."""
        return hasattr(self.config, "workerinput")

    # ------------------------------------------------------------ start

    def pytest_report_header(self) -> list[str]:
        """What is graded, against what, and how."""
        run, options = self.run, self.run.options
        submission = run.submission
        isolation = "in this process (no isolation)"
        if not options.in_process:
            isolation = "separate process with limits; the report names those in force"
        return [
            f"conformance: {submission.name} from {submission.adapters or submission.root}",
            f"found: {submission.how}",
            *(f"ignored: {text}" for text in submission.ignored),
            f"suite {__version__}, spec {SPEC_VERSION}, fixtures {run.golden.sha256[:12]}, "
            f"device {options.device}, seed {options.seed}, profile {options.profile}",
            f"isolation: {isolation}",
        ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Wait for the candidate's import: what it offers decides what is collected."""
        if self.is_remote:
            return
        if not self.config.option.collectonly:
            self.recorder = Recorder(self.run, self.cwd)
        try:
            self.run.describe()
        except LoadError as error:
            self.load_error = error

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_directory(
        self, path: Path, parent: pytest.Collector
    ) -> Generator[None, Any, Any]:
        """The suite's folder is collected as its checks."""
        found = yield
        if path != COMPONENTS_FOLDER:
            return found
        return Suite.from_parent(parent, path=path, nodeid="conformance")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """The number of checks, where other processes collect them."""
        self.remote_count = len(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Nothing is run when the candidate cannot be loaded."""
        if self.load_error is not None:
            if self.recorder is not None:
                text = "\n".join(filter(None, (str(self.load_error), self.load_error.details)))
                self.recorder.error(text, self.load_error.exit_code)
            return True
        if self.recorder is not None and not self.distributed:
            self._write_header(len(session.items))
        return None

    def _write_header(self, collected: int) -> None:
        assert self.recorder is not None
        self.recorder.header(len(self.run.plan()), collected, self.run.options.command)

    # ------------------------------------------------------------ one check

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Turn the result of a check into pytest's report."""
        report = yield
        if not isinstance(item, CheckItem) or call.when != "call" or item.result is None:
            return report
        record = self.run.record(item.check, item.result)
        report.user_properties.append((PROPERTY, record))
        outcome = item.result.outcome
        if outcome is Outcome.PASSED:
            return report
        binding = self.run.binding(record["level"]) and outcome is not Outcome.NOT_IMPLEMENTED
        path, line, _ = item.reportinfo()
        report.outcome = "failed" if binding else "skipped"
        report.longrepr = (
            _failure_text(record)
            if binding
            else (str(path), (line or 0) + 1, f"{record['level']} {record['message']}")
        )
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: Any
    ) -> tuple[str, str, str] | None:
        """Letter and word of a check in the live display."""
        record = _record(report)
        if record is None or report.when != "call":
            return None
        outcome = Outcome(record["outcome"])
        if report.outcome == "skipped" and outcome is not Outcome.NOT_IMPLEMENTED:
            return ADVICE
        return WORDS[outcome]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write each check to the stream as soon as it is done."""
        record = _record(report)
        if record is None or report.when != "call" or self.recorder is None:
            return
        if self.distributed and not self.recorder.started:
            self._write_header(self.remote_count or 0)
        self.recorder.check(record)

    # ------------------------------------------------------------ end

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Close the stream, write the reports, set the exit code."""
        self.run.close()
        if self.recorder is None:
            if self.load_error is not None:
                session.exitstatus = int(self.load_error.exit_code)
            return
        self.recorder.interrupted = exitstatus not in (
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ) or bool(session.shouldstop or session.shouldfail)
        self.recorder.finish()
        self.verdict = write_reports(self.recorder.results, self.recorder.folder)
        session.exitstatus = int(self.verdict.exit_code)
        if exitstatus == pytest.ExitCode.INTERNAL_ERROR:
            session.exitstatus = int(ExitCode.INTERNAL)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Verdict and table at the end."""
        if self.load_error is not None and self.recorder is None:
            terminalreporter.write_line(f"conformance: {self.load_error}", red=True)
        if self.verdict is None or self.recorder is None:
            return
        writer = terminalreporter._tw
        terminalreporter.section("conformance")
        encoding = getattr(writer._file, "encoding", None)
        text = summary_text(
            read_results(self.recorder.results),
            self.verdict,
            folder=_short(self.recorder.folder, self.cwd),
            encoding=encoding,
        )
        terminalreporter.write(text)


def _record(report: Any) -> dict[str, Any] | None:
    for name, value in getattr(report, "user_properties", ()):
        if name == PROPERTY:
            found: dict[str, Any] = value
            return found
    return None


def _short(folder: Path, cwd: Path) -> Path:
    return folder.relative_to(cwd) if folder.is_relative_to(cwd) else folder


def _failure_text(record: dict[str, Any]) -> str:
    """A failed check as pytest shows it in its list of failures."""
    details = record["details"] or {}
    lines = [
        f"{record['requirement']} ({record['level']}): {details.get('sentence', '')}",
        f"{record['outcome']}: {record['message']}",
    ]
    for label in ("case", "note", "inputs", "expected", "got", "where", "printed", "traceback"):
        if details.get(label):
            text = str(details[label]).replace("\n", "\n" + " " * 12)
            lines.append(f"{label + ':':<11} {text}")
    lines.append(f"replay:     {details.get('replay', '')}")
    return "\n".join(lines)
