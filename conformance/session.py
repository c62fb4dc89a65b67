"""One grading run: who is graded, on what, with which checks, and where the results go.

The pytest plugin drives it: `open` resolves the candidate and starts its process, `plan` decides
which checks are run, `run` runs one of them, `Recorder` writes the stream that every report is made
from. With pytest-xdist each worker has a `GradingRun` of its own and only the controller a
`Recorder`.
"""

from __future__ import annotations

import datetime
import os
import platform
import shlex
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance import SPEC_VERSION, __version__
from conformance.adapters import COURSE_FUNCTIONS
from conformance.candidate.limits import GIB, Limits
from conformance.candidate.messages import Call, Description, Outcome
from conformance.candidate.process import Worker
from conformance.candidate.resolve import Submission, resolve
from conformance.errors import UsageError
from conformance.golden.load import GoldenStore, fixtures_folder
from conformance.options import GradeOptions
from conformance.report import Candidate, CheckRecord, Details, Header, ResultsWriter
from conformance.spec import Level, component_names
from conformance.suite.check import Check, checks, included
from conformance.suite.component import Component, component
from conformance.suite.failure import CheckResult
from conformance.suite.grader import Caller, Context
from conformance.suite.profile import PROFILE
from conformance.suite.run import run_check

PATIENCE = 3
"""After so many time-outs or crashes of a component its remaining checks are not asked."""

LOST = (Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.OUT_OF_MEMORY)


@dataclass
class GradingRun:
    """The candidate's process and what is asked of it."""

    options: GradeOptions
    submission: Submission
    caller: Caller
    description: Description | None = None
    golden: GoldenStore = field(default_factory=GoldenStore)
    _implemented: dict[str, CheckResult | None] = field(default_factory=dict)
    _lost: Counter[str] = field(default_factory=Counter)

    @classmethod
    def open(cls, options: GradeOptions, cwd: Path) -> GradingRun:
        """Resolve the candidate and start its process; returns while it is still importing.

        Raises UsageError or LoadError.
        """
        submission = resolve(options.impl, cwd=cwd)
        golden = GoldenStore(fixtures_folder())
        if options.in_process:
            from conformance.candidate.inprocess import InProcess

            return cls(options, submission, InProcess(submission, options.device), golden=golden)
        limits = Limits(
            call_seconds=options.timeout,
            import_seconds=options.import_timeout,
            memory_bytes=int(options.memory * GIB),
        )
        worker = Worker(
            submission,
            python=options.python,
            device=options.device,
            limits=limits,
            seed=options.seed,
        )
        worker.start()
        return cls(options, submission, worker, golden=golden)

    def describe(self) -> Description:
        """What the candidate offers; waits for its import. Raises LoadError."""
        if self.description is None:
            self.description = self.caller.describe()  # type: ignore[attr-defined]
        return self.description

    def close(self) -> None:
        """End the candidate's process."""
        close = getattr(self.caller, "close", None)
        if close is not None:
            close()

    # ------------------------------------------------------------ what is asked

    def context(self) -> Context:
        """What the checks share."""
        options = self.options
        return Context(
            caller=self.caller,
            profile=PROFILE[options.profile],
            seed=options.seed,
            golden=self.golden,
            device=options.device,
        )

    def selected(self) -> tuple[str, ...]:
        """The components the verdict is about.

        Those that were asked for; else those that the adapters module declares; else the twelve of
        the course contract and whatever of the other four the candidate provides.
        """
        if self.options.component:
            wanted = set(self.options.component)
        elif self.submission.declared is not None:
            wanted = self._declared(self.submission.declared)
        else:
            others = (n for n in component_names() if n not in COURSE_FUNCTIONS)
            wanted = {*COURSE_FUNCTIONS, *(n for n in others if self._provides(n))}
        return tuple(name for name in component_names() if name in wanted)

    def _declared(self, declared: tuple[str, ...]) -> set[str]:
        unknown = sorted(set(declared) - set(component_names()))
        if unknown or not declared:
            raise UsageError(
                f"COMPONENTS in {self.submission.adapters} names {unknown or 'nothing'}; "
                f"the components are: {', '.join(component_names())}"
            )
        return set(declared)

    def _provides(self, name: str) -> bool:
        return self.absence(component(name)) is None

    def plan(self) -> list[Check]:
        """The checks of this run, in order."""
        options = self.options
        planned = [
            check
            for name in self.selected()
            for check in checks(name)
            if included(check.profile, options.profile)
            and (not options.dtype or check.dtype in options.dtype)
            and self._exposed(check)
        ]
        self._known_ids(planned)
        return planned

    def _known_ids(self, planned: list[Check]) -> None:
        unknown = set(self.options.check) - {check.id for check in planned}
        if unknown:
            raise UsageError(
                f"--check {sorted(unknown)[0]}: no such check in this run; ids look like "
                f"{planned[0].id if planned else 'rope::definition[float32]'}"
            )

    def _exposed(self, check: Check) -> bool:
        """A check of the module form is run where the candidate has the class."""
        if not check.module:
            return True
        return check.module in {*self.describe().classes, *self.submission.modules}

    def level(self, check: Check) -> str:
        """The level of a check; the module form is a MUST for classes that the candidate names."""
        named = check.module in self.submission.modules
        return str(Level.MUST if named else check.requirement.level)

    def chosen(self, check: Check) -> bool:
        """Whether `--check`, where it is given, names this check."""
        return not self.options.check or check.id in self.options.check

    def binding(self, level: str) -> bool:
        """Whether failing a requirement of that level makes the candidate non-conforming."""
        return level == Level.MUST or (level == Level.SHOULD and self.options.level == "should")

    # ------------------------------------------------------------ asking

    def absence(self, owner: Component) -> CheckResult | None:
        """Why a component counts as not implemented; None when it is implemented.

        It is asked once, with its first case: a missing function, a missing keyword, a stub.
        """
        if owner.name not in self._implemented:
            case = owner.cases[0]
            arguments = case.arguments(case.dtypes[0])
            reply = self.caller.call(Call(owner.function, arguments))
            stub = reply.outcome is Outcome.NOT_IMPLEMENTED
            self._implemented[owner.name] = (
                CheckResult(Outcome.NOT_IMPLEMENTED, reply.message) if stub else None
            )
            if reply.outcome in LOST:
                self._lost[owner.name] += 1
        return self._implemented[owner.name]

    def run(self, check: Check) -> CheckResult:
        """Run one check. Exceptions that come out of here are errors of the harness."""
        owner = check.component
        if self._lost[owner.name] >= PATIENCE:
            return CheckResult(
                Outcome.TIMED_OUT,
                f"not asked: {owner.function} had hung or crashed {PATIENCE} times before",
            )
        absent = None if check.module else self.absence(owner)
        if absent is not None:
            return absent
        result = run_check(check, self.context())
        if result.outcome in LOST:
            self._lost[owner.name] += 1
        return result

    # ------------------------------------------------------------ records

    def record(self, check: Check, result: CheckResult) -> dict[str, Any]:
        """One check and how it ended, as plain values for the stream."""
        details = None
        if result.outcome not in (Outcome.PASSED, Outcome.NOT_IMPLEMENTED):
            details = Details(
                **result.details(
                    {
                        "sentence": check.requirement.sentence,
                        "formula": check.requirement.formula,
                        "source": check.requirement.source,
                        "dtype": check.dtype,
                        "replay": self.replay(check),
                    }
                )
            )
        return CheckRecord(
            id=check.id,
            component=check.component.name,
            requirement=check.requirement.id,
            level=self.level(check),
            outcome=str(result.outcome),
            message=result.message,
            diagnosis=None,
            margin=result.margin,
            seconds=round(result.seconds, 6),
            details=details,
        ).to_json()

    def replay(self, check: Check) -> str:
        """The command that runs this one check again on the same inputs."""
        options = replace(self.options, component=(check.component.name,), check=(check.id,))
        words = ["conformance", "grade", options.impl]
        for name, value in options.not_default().items():
            if name == "report":
                continue
            for one in value if isinstance(value, tuple) else (value,):
                words += [f"--{name.replace('_', '-')}", *([] if one is True else [str(one)])]
        return shlex.join(words)


class Recorder:
    """Writes the results of a run and makes the reports from them."""

    def __init__(self, run: GradingRun, cwd: Path) -> None:
        options = run.options
        self.run = run
        self.folder = cwd / (options.report or Path("reports") / _file_name(run.submission.name))
        self.results = self.folder / "results.jsonl"
        self.writer = ResultsWriter(self.results)
        self.interrupted = False
        self.started = False

    def header(self, planned: int, collected: int, command: str) -> None:
        """Write the first line: what is graded, with how many checks."""
        run, options = self.run, self.run.options
        description = run.describe()
        self.writer.header(
            Header(
                suite_version=__version__,
                spec_version=SPEC_VERSION,
                fixtures_sha256=run.golden.sha256,
                candidate=candidate(run.submission),
                command=command,
                seed=options.seed,
                profile=options.profile,
                level=options.level,
                dtypes=options.dtype,
                device=options.device,
                selected=run.selected(),
                complete_selection=collected == planned,
                deselected=planned - collected,
                collected=collected,
                environment=environment(description),
                isolation=description.isolation,
                notices=description.notices,
                started=_now(),
            )
        )
        self.started = True

    def check(self, record: Mapping[str, Any]) -> None:
        """Write one check."""
        self.writer.check(record)

    def error(self, message: str, exit_code: int) -> None:
        """Write why nothing could be graded."""
        self.writer.error(message, exit_code)

    def finish(self) -> None:
        """Write the footer and close; without a header there is nothing to close."""
        if self.started:
            self.writer.footer(finished=_now(), interrupted=self.interrupted)
        self.writer.close()


def candidate(submission: Submission) -> Candidate:
    """The candidate as reports name it."""
    return Candidate(
        name=submission.name,
        path=str(submission.adapters or submission.root),
        module=submission.module,
        how=submission.how,
        ignored=submission.ignored,
    )


def environment(description: Description) -> dict[str, Any]:
    """Where the candidate and the judge ran."""
    import numpy

    return {
        "candidate_python": description.python,
        "torch": description.torch,
        "device": description.device,
        "device_name": description.device_name,
        "threads": description.threads,
        "platform": description.platform,
        "judge_python": platform.python_version(),
        "numpy": numpy.__version__,
        "cpu_count": os.cpu_count(),
    }


def _file_name(name: str) -> str:
    kept = "".join(c if c.isalnum() or c in "-_." else "_" for c in name).strip(".")
    return kept or "candidate"


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def command_line() -> str:
    """The command this process was started with, with the program's bare name."""
    program = Path(sys.argv[0]).name
    if program in ("__main__.py", "-m"):
        program = f"python -m {Path(sys.argv[0]).parent.name}"
        return f"{program} {shlex.join(sys.argv[1:])}".strip()
    return shlex.join([program, *sys.argv[1:]])
