"""`pytest --impl=X --benchmark`: every row is a test, and pytest-benchmark records its times.

A row that was measured passes, one that is not believed or wrong fails, one that is left out is
skipped with the reason. Times are given to pytest-benchmark as if its own fixture had taken them,
so that `--benchmark-save`, `--benchmark-compare`, `--benchmark-json` and its table work as ever.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.bench.command import conclude, unsound
from conformance.bench.results import ABSENT, MEASURED, Row
from conformance.bench.run import BenchRun
from conformance.candidate.resolve import Submission
from conformance.errors import ConformanceError, ExitCode, UsageError, internal_error
from conformance.options import GradeOptions
from conformance.recording import report_folder
from conformance.spec import COMPONENTS_FOLDER

NAME = "conformance-benchmarking"
"""Name under which the hooks of a benchmark are registered."""


class Benchmarking:
    """Hooks of one benchmark."""

    def __init__(self, config: pytest.Config, run: BenchRun, folder: Path, cwd: Path) -> None:
        self.config = config
        self.run = run
        self.folder = folder
        self.cwd = cwd
        self.stopped: ConformanceError | None = None
        self.code: ExitCode | None = None
        self.told: list[str] = []

    @classmethod
    def open(
        cls, config: pytest.Config, options: GradeOptions, submission: Submission, cwd: Path
    ) -> Benchmarking:
        """Start the processes. Raises UsageError or LoadError."""
        if getattr(config.option, "dist", "no") != "no" or hasattr(config, "workerinput"):
            raise UsageError("--benchmark cannot share the machine: leave out -n")
        narrowed = [getattr(config.option, name, None) for name in ("keyword", "markexpr")]
        folder = report_folder(options, submission.name, cwd, narrowed)
        return cls(config, BenchRun.open(options, submission, cwd), folder, cwd)

    def pytest_report_header(self) -> list[str]:
        """What is measured and how."""
        options, submission = self.run.options, self.run.submission
        return [
            f"conformance benchmark: {submission.name} from "
            f"{submission.adapters or submission.root}",
            f"device {options.device}, {options.threads} thread(s), profile {options.profile}",
        ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Wait for the imports, measure the machine."""
        if self.config.option.collectonly:
            return
        try:
            self.run.begin()
        except Exception as error:
            if isinstance(error, ConformanceError):
                self.stopped = error
            else:
                self.stopped = internal_error(error, "starting the benchmark")
            self.run.bench.close()

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_directory(
        self, path: Path, parent: pytest.Collector
    ) -> Generator[None, Any, Any]:
        """The suite's folder is collected as the rows."""
        found = yield
        if path != COMPONENTS_FOLDER:
            return found
        return BenchSuite.from_parent(parent, path=path, nodeid="conformance")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Nothing is run when the start has failed."""
        return True if self.stopped is not None else None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Turn a row into pytest's report."""
        report = yield
        if isinstance(item, BenchItem) and call.when == "call" and item.row is not None:
            item.finished(report)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Sweeps, reports, exit code."""
        try:
            if self.stopped is None and not self.config.option.collectonly:
                self._conclude(exitstatus)
        except Exception as error:
            self.stopped = internal_error(error, "writing the benchmark")
        finally:
            self.run.bench.close()
        if self.stopped is not None:
            session.exitstatus = int(self.stopped.exit_code)
        elif self.code is not None:
            session.exitstatus = int(self.code)

    def _conclude(self, exitstatus: int) -> None:
        ended = exitstatus in (0, 1, pytest.ExitCode.NO_TESTS_COLLECTED)
        if ended:
            for _ in self.run.sweeps():
                pass
        result = self.run.finish(complete=ended)
        self.code = conclude(result, self.folder, self.cwd, self.told.append)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The table at the end."""
        if self.stopped is not None:
            terminalreporter.write_line(f"conformance: {self.stopped.text}", red=True)
        if self.told:
            terminalreporter.section("conformance benchmark")
            terminalreporter.write_line("\n".join(self.told))


class BenchSuite(pytest.Directory):
    """The suite's folder: all rows of a benchmark."""

    def collect(self) -> Iterator[pytest.Item]:
        """The rows, in order."""
        benchmarking: Benchmarking = self.config.pluginmanager.getplugin(NAME)
        if benchmarking.stopped is not None:
            return
        for name, which, dtype, graph in benchmarking.run.plan():
            mode = "cuda-graph" if graph else "eager"
            id = Row(name, which, dtype, mode=mode).id
            yield BenchItem.from_parent(self, name=id, planned=(name, which, dtype, graph))


class BenchItem(pytest.Item):
    """One row as pytest runs it."""

    #: pytest-benchmark's --benchmark-only and --benchmark-skip look here
    fixturenames = ("benchmark",)

    def __init__(self, *, planned: tuple[str, str, str, bool], **kwargs: Any) -> None:
        super().__init__(nodeid=kwargs["name"], **kwargs)
        self.planned = planned
        self.row: Row | None = None

    def runtest(self) -> None:
        """Measure; `finished` makes pytest's report of it."""
        benchmarking: Benchmarking = self.config.pluginmanager.getplugin(NAME)
        self.row = benchmarking.run.measure(*self.planned)
        if self.row.status == MEASURED:
            record(self.config, self.nodeid, self.row)

    def finished(self, report: pytest.TestReport) -> None:
        """Complete pytest's report of the call."""
        assert self.row is not None
        if self.row.status == MEASURED:
            return
        path, line, _ = self.reportinfo()
        benchmarking: Benchmarking = self.config.pluginmanager.getplugin(NAME)
        bad = self.row in unsound(benchmarking.run.result)
        if self.row.status == ABSENT and not bad:
            report.outcome, report.longrepr = "skipped", (str(path), line or 0, self.row.reason)
        else:
            report.outcome, report.longrepr = "failed", f"{self.row.id}: {self.row.reason}"

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the row is described."""
        return COMPONENTS_FOLDER / self.planned[0] / "cost.py", 0, self.nodeid


class Recorded:
    """What pytest-benchmark wants to know of a test beside its times."""

    has_error = False
    cprofile_stats = None
    params = None

    def __init__(self, fullname: str, row: Row) -> None:
        self.name = row.id
        self.fullname = fullname
        self.group = None
        self.param = None
        ratios = {f"ratio_to_{who}": interval.to_json() for who, interval in row.ratios.items()}
        self.extra_info = {**ratios, "sizes": dict(row.sizes), "flops": row.model.get("flops")}


def record(config: pytest.Config, fullname: str, row: Row) -> None:
    """Give the times of a row to pytest-benchmark, where it is there and takes part."""
    session = getattr(config, "_benchmarksession", None)
    if session is None or session.disabled or session.skip:
        return
    from pytest_benchmark import stats as theirs

    made: Any = theirs.Metadata  # it has no annotations
    stats = made(Recorded(fullname, row), iterations=1, options={})
    for seconds in row.data:
        stats.update(seconds)
    session.benchmarks.append(stats)
