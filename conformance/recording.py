"""Where the results of a run go: the stream, and the reports that are made from it."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance import SPEC_VERSION, __version__
from conformance.errors import ConformanceError, InternalError
from conformance.report import (
    Candidate,
    Header,
    ResultsWriter,
    Verdict,
    judge,
    write_reports,
)
from conformance.report.policy import PolicyRecord
from conformance.report.stream import RESULTS_NAME
from conformance.spec import component_spec

if TYPE_CHECKING:
    from conformance.candidate.messages import Description
    from conformance.candidate.resolve import Submission
    from conformance.options import GradeOptions
    from conformance.session import GradingRun


class Recorder:
    """Writes the results of a run as they come and makes the reports from them.

    UsageError when the folder cannot be written.
    """

    def __init__(
        self, options: GradeOptions, submission: Submission, cwd: Path, folder: Path
    ) -> None:
        self.options = options
        self.submission = submission
        self.cwd = cwd
        self.folder = folder
        self.results = self.folder / RESULTS_NAME
        self.writer = ResultsWriter(self.results)
        self.started = False
        self.failed = False

    def header(self, run: GradingRun | None = None, collected: int = 0) -> None:
        """Write the first line: what is graded, with how many checks.

        Without a run: one in which nothing could be graded.
        """
        options, submission = self.options, self.submission
        description = run.description if run else None
        planned = len(run.plan()) if run else collected
        self.writer.header(
            Header(
                suite_version=__version__,
                spec_version=SPEC_VERSION,
                fixtures_sha256=run.golden.sha256 if run else "",
                candidate=candidate(submission, self.cwd),
                command=options.command,
                seed=options.seed,
                profile=options.profile,
                level=options.level,
                dtypes=options.dtype,
                device=options.device,
                selected=run.selected() if run else (),
                complete_selection=run is not None and collected == planned,
                deselected=max(0, planned - collected),
                collected=collected,
                environment=environment(description),
                isolation=description.isolation if description else (),
                notices=(*run.notices(), *(description.notices if description else ()))
                if run
                else (),
                requirements=requirements(run.selected() if run else ()),
                started=_now(),
                policy=options.policy.name if options.policy and run else "",
            )
        )
        self.started = True

    def check(self, record: Mapping[str, Any]) -> None:
        """Write one check."""
        self.writer.check(record)

    def policy(self, record: PolicyRecord) -> None:
        """Write what the rules of the course found."""
        self.writer.policy(record)

    def error(self, error: ConformanceError) -> None:
        """Write why there is no verdict; only the first time, later errors follow from it."""
        if not self.failed:
            self.failed = True
            if not self.started:
                self.header()
            self.writer.error(error.text, int(error.exit_code))

    def conclude(self, interrupted: bool) -> Verdict:
        """Write the footer, close, and write the reports; the verdict.

        InternalError when the results are not those of this run any more.
        """
        if not self.started:  # stopped before it was known what there is to grade
            self.header()
        self.writer.footer(finished=_now(), interrupted=interrupted)
        self._must_be_ours()
        options = self.options
        told = write_reports(
            self.results, self.folder, audience=options.audience, rubric=options.rubric
        )
        self._must_be_ours()
        verdict = judge(self.writer.results())
        if (verdict.kind, verdict.headline) != (told.kind, told.headline):
            raise InternalError(f"the reports in {self.folder} tell another verdict than this run")
        self.writer.close()
        return verdict

    def _must_be_ours(self) -> None:
        if not self.writer.in_place():
            raise InternalError(
                f"the results in {self.folder} are not what this run has written there: another "
                "run, or the candidate, has written to that folder, so there is no verdict; give "
                "each run a folder of its own with --report"
            )


def requirements(selected: tuple[str, ...]) -> tuple[str, ...]:
    """The requirements of these components, as they are written down: the basic ones first."""
    return tuple(name for owner in selected for name in component_spec(owner).requirements)


def report_folder(
    options: GradeOptions, name: str, cwd: Path, narrowed: Sequence[object] = ()
) -> Path:
    """The folder for the reports on a candidate of that name.

    A run of a part must not replace the report on the whole: a repeated check goes to `replay`
    below it, all else that is narrowed to `partial`. `narrowed` are values of pytest's own options
    that take checks away; empty ones do nothing.
    """
    if options.report is not None:
        return cwd / options.report
    kept = "".join(c if c.isalnum() or c in "-_." else "_" for c in name).strip(".")[:100]
    folder = cwd / "reports" / (kept or "candidate")
    if options.check:
        return folder / "replay"
    return folder / "partial" if options.component or options.dtype or any(narrowed) else folder


def record_error(folder: Path, error: ConformanceError) -> None:
    """Reports that hold nothing but an error."""
    with ResultsWriter(folder / RESULTS_NAME) as writer:
        writer.error(error.text, int(error.exit_code))
    write_reports(folder / RESULTS_NAME, folder)


def candidate(submission: Submission, cwd: Path) -> Candidate:
    """The candidate as reports name it; its path as seen from the folder of the run."""
    path = submission.adapters or submission.root
    here = cwd.resolve()
    return Candidate(
        name=submission.name,
        path=str(path.relative_to(here) if path.is_relative_to(here) else path),
        module=submission.module,
        how=submission.how,
        ignored=submission.ignored,
    )


def environment(description: Description | None) -> dict[str, Any]:
    """Where the candidate and the judge ran; only the judge, where the candidate did not."""
    import numpy

    names = ("torch", "device", "device_name", "threads", "platform")
    loaded = {} if description is None else {"candidate_python": description.python}
    return {
        **loaded,
        **({name: getattr(description, name) for name in names} if description else {}),
        "judge_python": platform.python_version(),
        "numpy": numpy.__version__,
        "cpu_count": os.cpu_count(),
    }


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
