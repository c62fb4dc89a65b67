"""How a grading run lives inside pytest: collection, progress, exit code."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance import SPEC_VERSION, __version__
from conformance.candidate.messages import Outcome
from conformance.candidate.resolve import Submission
from conformance.counterexample.keep import Keeper
from conformance.course.audience import record_seen_by, seen_by
from conformance.course.outputs import Outputs
from conformance.course.shown import points_text_of
from conformance.errors import (
    ConformanceError,
    ExitCode,
    InternalError,
    LoadError,
    SandboxError,
    internal_error,
)
from conformance.items import ADVICE, FAULT, RECORD, WATCHED, WORDS, CheckItem, Suite, property_of
from conformance.options import GradeOptions
from conformance.policy.record import policy_record
from conformance.policy.watch import Watch
from conformance.prepare import is_remote
from conformance.recording import Recorder, report_folder
from conformance.report import Verdict, summary_text
from conformance.session import GradingRun
from conformance.spec import COMPONENTS_FOLDER
from conformance.suite.check import Check

FINISHED = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)
"""pytest's exit codes after a run that came to its end."""


NARROWING = ("keyword", "markexpr", "deselect", "lf", "stepwise")
"""pytest's own options that take checks away."""


class Grading:
    """Hooks of one grading run, registered only with `--impl`.

    No exception of ours leaves a hook: the first one is kept in `stopped` and ends the run with its
    message and exit code.
    """

    def __init__(
        self,
        config: pytest.Config,
        run: GradingRun,
        recorder: Recorder | None,
        cwd: Path,
        outputs: Outputs,
    ) -> None:
        self.config = config
        self.run = run
        self.recorder = recorder
        self.cwd = cwd
        self.outputs = outputs
        self.stopped: ConformanceError | None = None
        self.verdict: Verdict | None = None
        self.collected: int | None = None
        self.session: pytest.Session | None = None
        self.watch = Watch()

    @classmethod
    def open(
        cls,
        config: pytest.Config,
        options: GradeOptions,
        submission: Submission,
        cwd: Path,
        outputs: Outputs,
    ) -> Grading:
        """Start the candidate's process and open the results. Raises ConformanceError."""
        records = not is_remote(config) and not config.option.collectonly
        narrowed = [getattr(config.option, name, None) for name in NARROWING]
        folder = report_folder(options, submission.name, cwd, narrowed)
        try:
            run = GradingRun.open(options, submission)
        except (LoadError, SandboxError) as error:
            if records:
                refused = Recorder(options, submission, cwd, folder)
                refused.error(error)
                verdict = refused.conclude(interrupted=False)
                outputs.write(refused.writer.results(), verdict)
            raise
        run.keeper = Keeper(options, folder, cwd)
        try:
            recorder = Recorder(options, submission, cwd, folder) if records else None
            return cls(config, run, recorder, cwd, outputs)
        except ConformanceError:
            run.close()
            raise

    @property
    def distributed(self) -> bool:
        """This process hands the checks out to processes of pytest-xdist."""
        return getattr(self.config.option, "dist", "no") != "no" and not is_remote(self.config)

    def stop(self, error: BaseException, doing: str) -> None:
        """Keep why the run cannot go on, and tell the report."""
        known = error if isinstance(error, ConformanceError) else internal_error(error, doing)
        if self.stopped is not None:
            return
        self.stopped = known
        if self.recorder is not None:
            try:
                self.recorder.error(known)
            except InternalError:  # then the results say by themselves that they are not whole
                self.recorder.failed = True

    # ------------------------------------------------------------ start

    @pytest.hookimpl(wrapper=True)
    def pytest_report_header(self) -> Generator[None, list[Any], list[Any]]:
        """What is graded, against what, and how; without pytest's lines on unread files."""
        found = yield
        others = [[lines] if isinstance(lines, str) else list(lines) for lines in found]
        unread = ("configfile:", "rootdir:")
        kept = [[line for line in lines if not line.startswith(unread)] for lines in others]
        return [*kept, self._header()]  # pytest shows the last one first

    def _header(self) -> list[str]:
        run, options, submission = self.run, self.run.options, self.run.submission
        return [
            f"conformance: {submission.name} from {submission.adapters or submission.root}",
            f"found: {submission.how}",
            *(f"ignored: {text}" for text in submission.ignored),
            *run.notices(),
            f"suite {__version__}, spec {SPEC_VERSION}, fixtures {run.golden.sha256[:12]}, "
            f"device {options.device}, seed {options.seed}, profile {options.profile}",
            f"isolation: {_isolation(options)}",
        ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Wait for the candidate's import: what it offers decides what is collected."""
        self.session = session
        try:
            self.run.describe()
            self.run.must_keep_the_secret()
            self.run.plan()
        except Exception as error:
            self.stop(error, "preparing the checks")
        if self.distributed or self.stopped:  # it runs in the other processes, or nowhere
            self.run.close()

    def checks(self) -> Iterator[Check]:
        """The checks to be collected."""
        if self.stopped is None:
            yield from (check for check in self.run.plan() if self.run.chosen(check))

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
        self.collected = len(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Nothing is run when the run has been stopped."""
        if self.stopped is not None:
            return True
        if not self.distributed:
            self.collected = len(session.items)
            self._write_header()
        return None

    def _write_header(self) -> None:
        if self.recorder is not None and not self.recorder.started:
            self.recorder.header(self.run, self.collected or 0)

    # ------------------------------------------------------------ one check

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Turn the result of a check into pytest's report."""
        report = yield
        if isinstance(item, CheckItem) and call.when == "call":
            item.finished(report)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Letter and word of a check in the live display."""
        record = property_of(report, RECORD)
        if getattr(report, "when", "") != "call":
            return None
        if property_of(report, FAULT):
            return "error", "E", "INTERNAL ERROR"
        if record is None:
            return None
        outcome = Outcome(record["outcome"])
        if report.outcome == "skipped" and outcome is not Outcome.NOT_IMPLEMENTED:
            return ADVICE
        return WORDS[outcome]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write each check to the stream as soon as it is done."""
        if report.when != "call" or self.recorder is None:
            return
        fault, record = property_of(report, FAULT), property_of(report, RECORD)
        try:
            self._write_header()
            if fault:
                self.stop(InternalError(fault), "running a check")
            elif record is not None:
                self._write(record)
                self.watch.merge(property_of(report, WATCHED) or {})
        except Exception as error:
            self.stop(error, "recording a check")
            if self.session is not None:
                self.session.shouldstop = "the results cannot be recorded"

    def _write(self, record: Mapping[str, Any]) -> None:
        assert self.recorder is not None
        self.recorder.check(record)

    # ------------------------------------------------------------ end

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Close the stream, write the reports, set the exit code."""
        try:
            self.run.close()
            if self.recorder is not None:
                self._conclude(session, exitstatus)
        except Exception as error:
            self.stop(error, "writing the reports")
        if self.verdict is not None:
            session.exitstatus = int(self.verdict.exit_code)
        if self.stopped is not None:
            session.exitstatus = int(self.stopped.exit_code)
        elif exitstatus == pytest.ExitCode.INTERNAL_ERROR:
            session.exitstatus = int(ExitCode.INTERNAL)

    def _conclude(self, session: pytest.Session, exitstatus: int) -> None:
        assert self.recorder is not None
        interrupted = exitstatus not in FINISHED or bool(session.shouldstop or session.shouldfail)
        if not interrupted and self.stopped is None:
            self._write_header()  # there may have been no check to write it before
        policy = self.run.options.policy
        if policy is not None and self.stopped is None and self.recorder.started:
            self.watch.merge(self.run.watched() or {})
            run = self.run
            self.recorder.policy(policy_record(policy, run.submission, run.selected(), self.watch))
        self.verdict = self.recorder.conclude(interrupted)
        self.outputs.write(self.recorder.writer.results(), self.verdict)

    def shown(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A check as the audience may see it in the terminal."""
        return record_seen_by(record, self.run.options.audience)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Verdict and table at the end, then what GitHub reads from the log."""
        if self.verdict is not None and self.recorder is not None:
            self._summary(terminalreporter, self.recorder, self.verdict)
        if self.stopped is not None and (self.verdict is None or not self.verdict.error):
            terminalreporter.write_line(f"conformance: {self.stopped.text}", red=True)
        for line in self.outputs.closing_lines():
            terminalreporter.write_line(line)

    def _summary(self, terminalreporter: Any, recorder: Recorder, verdict: Verdict) -> None:
        folder, options = recorder.folder, self.run.options
        results = recorder.writer.results()
        writer = terminalreporter._tw
        terminalreporter.section("conformance")
        text = summary_text(
            seen_by(results, options.audience),
            verdict,
            folder=folder.relative_to(self.cwd) if folder.is_relative_to(self.cwd) else folder,
            encoding=getattr(writer._file, "encoding", None),
            points=points_text_of(results, verdict, options.rubric),
        )
        terminalreporter.write(text)


def _isolation(options: GradeOptions) -> str:
    """What keeps the candidate apart from the judge; what was in force stands in the report."""
    if options.in_process:
        return "none, the candidate runs in this process"
    gpu = ", no GPU" if options.device == "cpu" else ""
    return (
        f"a process of its own, {options.timeout:g} s for each call, "
        f"{options.memory:g} GiB beside torch{gpu}"
    )
