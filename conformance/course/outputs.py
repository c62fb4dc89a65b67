"""Writing what a course asked for: JUnit, Gradescope, GitHub; the only place here with effects.

An output never outlives its run: `begin` puts in the place of an older file one that says that the
run has not come to its end, with 0 points. A run that is killed leaves that. So a file that
somebody committed with full points is never taken for the result of a run, and a path that cannot
be written is told before anything is graded.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from conformance.course.audience import STUDENT
from conformance.course.rubric import Rubric
from conformance.errors import ConformanceError, ExitCode, InternalError, UsageError
from conformance.report.files import write_bytes
from conformance.report.model import ErrorRecord, Results

if TYPE_CHECKING:
    from conformance.course.github import Folders
    from conformance.course.points import Grade
    from conformance.options import GradeOptions
    from conformance.report.verdict import Verdict

NOT_ENDED = "the grading run has not come to its end"


@dataclass(frozen=True)
class Environment:
    """What GitHub Actions tells a step: its files and the root of the repository."""

    actions: bool = False
    summary: Path | None = None
    output: Path | None = None
    workspace: Path | None = None

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Environment:
        """From environment variables."""

        def path(name: str) -> Path | None:
            return Path(variables[name]) if variables.get(name) else None

        return cls(
            variables.get("GITHUB_ACTIONS") == "true",
            path("GITHUB_STEP_SUMMARY"),
            path("GITHUB_OUTPUT"),
            path("GITHUB_WORKSPACE"),
        )


class Outputs:
    """The outputs of one run. Without any of them it does nothing."""

    def __init__(
        self,
        cwd: Path,
        *,
        junit: Path | None = None,
        gradescope: Path | None = None,
        github: bool = False,
    ) -> None:
        self.cwd = cwd
        self.junit = junit
        self.gradescope = gradescope
        self.github = github
        self.rubric: Rubric | None = None
        self.audience = STUDENT  # until the options say otherwise, who sees it sees less
        self.environment = Environment.of(os.environ) if github else Environment()
        self.token = secrets.token_hex(16) if self.environment.actions else ""
        self._told: tuple[Results, Verdict] | None = None
        self._quiet = False

    @classmethod
    def asked_for(cls, given: Mapping[str, Any], cwd: Path) -> Outputs:
        """The outputs that a command names, before it is known whether its options are right."""

        def path(name: str) -> Path | None:
            text = str(given.get(name) or "").strip()
            return Path(text).expanduser() if text else None

        return cls(
            cwd,
            junit=path("junit"),
            gradescope=path("gradescope"),
            github=bool(given.get("github")),
        )

    def settle(self, options: GradeOptions) -> None:
        """Take over the options, now that they are right, and begin. Raises UsageError."""
        self.junit, self.gradescope = options.junit, options.gradescope
        if options.github and not self.github:
            self.github = True
            self.environment = Environment.of(os.environ)
            self.token = secrets.token_hex(16) if self.environment.actions else ""
        self.rubric, self.audience = options.rubric, options.audience
        self.begin()

    def begin(self) -> None:
        """Put "nothing is known yet" in the place of older files. Raises UsageError."""
        if self.junit is not None and self.junit == self.gradescope:
            raise UsageError(f"--junit and --gradescope both name {self.junit}; give two files")
        from conformance.report.verdict import judge

        nothing = Results(None, problems=(NOT_ENDED,))
        self._write_files(nothing, judge(nothing))

    def opening_line(self) -> str:
        """What switches off commands in the log of GitHub Actions; empty elsewhere."""
        if not self.token:
            return ""
        from conformance.course.github import stopped

        self._quiet = True
        return stopped(self.token)

    def grade(self, results: Results, verdict: Verdict) -> Grade | None:
        """The points, where there is a rubric."""
        if self.rubric is None:
            return None
        from conformance.course.points import award

        return award(results, self.rubric, verdict)

    def write(self, results: Results, verdict: Verdict) -> None:
        """Write everything that was asked for. Raises UsageError where that is impossible."""
        self._told = results, verdict
        self._write_files(results, verdict)
        if self.environment.actions:
            self._write_summary(results, verdict)
            self._write_step_outputs(results, verdict)

    def refuse(self, error: ConformanceError) -> None:
        """Write that nothing was graded, and why, unless more is written already."""
        if self._told is None:
            self._withdraw(error)

    def doubt(self, reason: str) -> None:
        """A verdict that was told already turns out to prove nothing: take its points back."""
        settled = (ExitCode.CONFORMING, ExitCode.NOT_CONFORMING)
        if self._told is not None and self._told[1].exit_code in settled:
            self._withdraw(InternalError(reason))

    def _withdraw(self, error: ConformanceError) -> None:
        from conformance.report.verdict import judge

        nothing = Results(None, error=ErrorRecord(error.text, int(error.exit_code)))
        with contextlib.suppress(UsageError):  # the path itself may be what is wrong
            self.write(nothing, judge(nothing))

    def closing_lines(self) -> list[str]:
        """The last lines of the log: commands are switched on again, then come ours."""
        if not self.github:
            return []
        if not self.environment.actions:
            return ["--github: GITHUB_ACTIONS is not set here, so nothing was written for it"]
        from conformance.course.github import annotation_lines, resumed

        lines = [resumed(self.token)] if self._quiet else []
        if self._told is None:
            return lines
        results, verdict = self._told
        grade = self.grade(results, verdict)
        folders = self._folders(results)
        return [
            *lines,
            *annotation_lines(results, verdict, grade, audience=self.audience, folders=folders),
        ]

    def _folders(self, results: Results) -> Folders | None:
        """Where the run was and where the submission's repository begins, if it is checked out."""
        from conformance.course.github import Folders

        if self.environment.workspace is None or results.header is None:
            return None
        workspace, here = self.environment.workspace.resolve(), self.cwd.resolve()
        adapters = here / results.header.candidate.path
        for folder in adapters.parents:
            if folder == workspace or (folder / ".git").exists():
                return Folders(PurePosixPath(here), PurePosixPath(folder))
        return None

    def _sure_grade(self, results: Results, verdict: Verdict) -> Grade:
        from conformance.course.points import award

        return award(results, self.rubric or Rubric.default(), verdict)

    def _write_files(self, results: Results, verdict: Verdict) -> None:
        if self.gradescope is not None:
            from conformance.course.gradescope import render_gradescope

            grade = self._sure_grade(results, verdict)
            text = render_gradescope(results, grade, verdict, audience=self.audience)
            _write(self.cwd / self.gradescope, text, "the results for Gradescope")
        if self.junit is not None:
            from conformance.course.junit import render_junit

            shown = self.grade(results, verdict)
            text = render_junit(results, verdict, audience=self.audience, grade=shown)
            _write(self.cwd / self.junit, text, "the JUnit file")

    def _write_summary(self, results: Results, verdict: Verdict) -> None:
        path = self.environment.summary
        if path is None:
            return
        from conformance.course.github import SUMMARY_BYTES, job_summary

        with contextlib.suppress(OSError):
            taken = path.stat().st_size if path.exists() else 0
            room = max(0, SUMMARY_BYTES - taken)
            grade = self.grade(results, verdict)
            text = job_summary(results, verdict, grade, audience=self.audience, room=room)
            _append(path, text)

    def _write_step_outputs(self, results: Results, verdict: Verdict) -> None:
        """The outputs of the step: the verdict, the points, and GitHub Classroom's result."""
        path = self.environment.output
        if path is None:
            return
        from conformance.course.classroom import classroom_result
        from conformance.course.rubric import shown_points

        grade = self._sure_grade(results, verdict)
        values = {
            "verdict": str(verdict.kind),
            "points": shown_points(grade.points),
            "max-points": shown_points(grade.total),
            "failure": str(grade.blame or ""),
            "result": classroom_result(grade, verdict),
        }
        try:
            _append(path, "".join(f"{name}={value}\n" for name, value in values.items()))
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"cannot write the outputs of the step to {path}: {reason}") from None


def _write(path: Path, text: str, what: str) -> None:
    if path.is_dir():
        raise UsageError(f"cannot write {what} to {path}: it is a folder; name a file")
    write_bytes(path, text.encode("utf-8"), what)


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(text)
