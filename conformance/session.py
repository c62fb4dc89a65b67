"""One grading run: who is graded, on what, and with which checks.

The pytest plugin drives it: `open` starts the candidate's process, `plan` decides which checks are
run, `run` runs one of them. With pytest-xdist each of its processes has a `GradingRun` of its own.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from conformance.adapters import COURSE_FUNCTIONS, OPTIONAL_FUNCTIONS
from conformance.boundary import left_out
from conformance.candidate.frames import clean
from conformance.candidate.messages import NOT_ASKED, Call, Description, Outcome
from conformance.candidate.resolve import Submission
from conformance.counterexample.keep import Keeper
from conformance.diagnosis.doctor import Doctor
from conformance.errors import InternalError, LoadError, UsageError, internal_error
from conformance.golden.load import GoldenStore, fixtures_folder
from conformance.hidden import HiddenSeed, read_hidden_seed, stays_readable
from conformance.opening import opened
from conformance.options import GradeOptions, grade_command
from conformance.policy.watch import WatchingCaller
from conformance.report import CheckRecord, Details, Diagnosis
from conformance.spec import Level, component_names
from conformance.suite.check import Check, checks, included
from conformance.suite.component import Component, component
from conformance.suite.failure import CheckResult
from conformance.suite.grader import Caller, Context
from conformance.suite.profile import PROFILE
from conformance.suite.run import run_check

PATIENCE = 2
"""After so many calls of a component that hung or crashed, its remaining checks are not asked."""

READABLE = "the candidate can read the file with the hidden seed: no sandbox hides it"
TRUSTED = "settings and conftest.py of the folder took part in the judge (--trust)"

LOST = (Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.OUT_OF_MEMORY)


@dataclass
class Losses:
    """How often a component hung or crashed, and how it did so last.

    `binding` counts those in checks that decide the verdict. What hangs in other checks only must
    not fail the ones that decide.
    """

    last: Outcome = Outcome.CRASHED
    binding: int = 0
    total: int = 0

    def add(self, outcome: Outcome, binding: bool) -> None:
        """Count one more."""
        self.last = outcome
        self.total += 1
        self.binding += binding

    def hopeless(self, binding: bool) -> bool:
        """Whether a check of that kind is not worth asking any more."""
        return self.total >= PATIENCE and (self.binding > 0 or not binding)


@dataclass
class GradingRun:
    """The candidate's process and what is asked of it."""

    options: GradeOptions
    submission: Submission
    caller: Caller
    description: Description | None = None
    golden: GoldenStore = field(default_factory=GoldenStore)
    keeper: Keeper | None = None
    hidden: HiddenSeed | None = None
    started: float = field(default_factory=time.monotonic)
    _selected: tuple[str, ...] | None = None
    _plan: list[Check] | None = None
    _implemented: dict[str, CheckResult | None] = field(default_factory=dict)
    _losses: dict[str, Losses] = field(default_factory=dict)

    @classmethod
    def open(cls, options: GradeOptions, submission: Submission) -> GradingRun:
        """Start the candidate's process; returns while it is still importing.

        Raises UsageError or LoadError.
        """
        named_components(options, submission)
        _require_checks(options.check)
        golden = GoldenStore(fixtures_folder())
        path = options.hidden_seed_file
        hidden = None if path is None else read_hidden_seed(path)
        caller: Any = opened(options, submission)
        if options.policy is not None:
            caller = WatchingCaller(caller, f"{options.seed} {hidden.seed(0) if hidden else ''}")
        return cls(options, submission, caller, golden=golden, hidden=hidden)

    def describe(self) -> Description:
        """What the candidate offers; waits for its import. Raises LoadError."""
        if self.description is None:
            self._warm_up()
            self.description = self.caller.describe()  # type: ignore[attr-defined]
            self._must_offer_something(self.description)
        return self.description

    def _must_offer_something(self, description: Description) -> None:
        contract = {**COURSE_FUNCTIONS, **OPTIONAL_FUNCTIONS}
        if not set(contract.values()) & set(description.functions) and not description.classes:
            raise LoadError(
                f"{self.submission.adapters} defines none of the adapter functions (run_linear, "
                "run_rmsnorm, ...); name the file that does, or the submission's folder"
            )

    def _warm_up(self) -> None:
        """Import what checks and reports need while the candidate's process imports torch."""
        for name in self._certain():
            _checks_of(name)
        import conformance.report.jsonfile
        import conformance.report.markdown
        import conformance.suite.explore  # noqa: F401

    def _certain(self) -> tuple[str, ...]:
        """The components selected whatever the candidate provides; UsageError if unknown."""
        wanted = named_components(self.options, self.submission) or set(COURSE_FUNCTIONS)
        return tuple(name for name in component_names() if name in wanted)

    def must_keep_the_secret(self) -> None:
        """UsageError when the candidate of a gate can read the file with the hidden seed."""
        if self.options.gate and self._secret_in_reach:
            raise UsageError(
                f"--hidden-seed-file {self.options.hidden_seed_file}: the candidate runs with your "
                "rights and without a sandbox that hides this file; give the secret through a pipe "
                "(--hidden-seed-file - reads standard input), or use a sandbox"
            )

    @cached_property
    def _secret_in_reach(self) -> bool:
        """Whether the candidate can read the file with the hidden seed."""
        path, hides = self.options.hidden_seed_file, getattr(self.caller, "hides", None)
        if path is None or not stays_readable(path):
            return False
        return hides is None or not hides(path)

    def close(self) -> None:
        """End the candidate's process."""
        close = getattr(self.caller, "close", None)
        if close is not None:
            close()

    # ------------------------------------------------------------ what is asked

    @property
    def deadline(self) -> float | None:
        """When `--max-minutes` are over, on the clock of `time.monotonic`."""
        minutes = self.options.max_minutes
        return None if minutes is None else self.started + 60.0 * minutes

    def context(self) -> Context:
        """What the checks share."""
        options = self.options
        return Context(
            caller=self.caller,
            profile=PROFILE[options.profile],
            seed=options.seed,
            golden=self.golden,
            device=options.device,
            deadline=self.deadline,
            hidden=self.hidden,
        )

    def selected(self) -> tuple[str, ...]:
        """The components the verdict is about.

        Those that were asked for; else those that the adapters module declares; else the twelve of
        the course contract and whatever of the other four the candidate provides.
        """
        if self._selected is None:
            wanted = named_components(self.options, self.submission)
            if wanted is None:
                others = (n for n in component_names() if n not in COURSE_FUNCTIONS)
                wanted = {*COURSE_FUNCTIONS, *(n for n in others if self._provides(n))}
            self._selected = tuple(name for name in component_names() if name in wanted)
        return self._selected

    def _provides(self, name: str) -> bool:
        return self.absence(component(name)) is None

    def notices(self) -> tuple[str, ...]:
        """What a reader of the report should know about the selection, and what was left out."""
        options, submission = self.options, self.submission
        return (
            *self._about_declared(),
            *submission.notices,
            *(_left_out(submission) if not (submission.ours or options.trust) else ()),
            *((TRUSTED,) if options.trust else ()),
            *(_about_seeds(options) if options.gate or options.hidden_seed_file else ()),
            *((READABLE,) if self._secret_in_reach else ()),
        )

    def _about_declared(self) -> tuple[str, ...]:
        declared, options = self.submission.declared, self.options
        if declared is None or options.component or options.check:
            return ()
        if _own_choice(options, self.submission) is None:
            return ("COMPONENTS in its adapters module is ignored: it does not choose, --gate",)
        return (f"its adapters module declares COMPONENTS: {', '.join(declared)}",)

    def plan(self) -> list[Check]:
        """The checks of this run, in order."""
        if self._plan is None:
            self._plan = self._planned()
            if self.options.gate or self.hidden:
                self._plan = self._in_another_order(self._plan)
        return self._plan

    def _in_another_order(self, planned: list[Check]) -> list[Check]:
        """The checks of each component in an order that the seeds decide."""
        context = self.context()
        return [
            mine[place]
            for name in self.selected()
            for mine in ([check for check in planned if check.component.name == name],)
            for place in context.order(f"checks of {name}", len(mine))
        ]

    def _planned(self) -> list[Check]:
        options = self.options
        planned = [
            check
            for name in self.selected()
            for check in _checks_of(name)
            if included(check.profile, options.profile)
            and (not options.dtype or check.dtype in options.dtype)
            and self._exposed(check)
        ]
        left_out = set(options.check) - {check.id for check in planned}
        if left_out:
            raise UsageError(
                f"--check {min(left_out)}: not part of this run; it needs another --profile or "
                "--dtype, or a class that the candidate does not have"
            )
        return planned

    def _exposed(self, check: Check) -> bool:
        """A check of the module form is run where the candidate has the class."""
        if not check.module:
            return True
        return check.module in {*self.describe().classes, *self.submission.modules}

    def level(self, check: Check) -> str:
        """The level of a check; the module form is a MUST for classes that the candidate names.

        What is only observed (MAY) stays so.
        """
        level = check.requirement.level
        named = check.module in self.submission.modules
        return str(Level.MUST if named and level == Level.SHOULD else level)

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
            self._count(owner.name, reply.outcome, binding=False)
        return self._implemented[owner.name]

    def _count(self, name: str, outcome: Outcome, *, binding: bool) -> None:
        if outcome in LOST:
            self._losses.setdefault(name, Losses()).add(outcome, binding)

    def run(self, check: Check) -> CheckResult:
        """Run one check. Exceptions that come out of here are errors of the harness."""
        owner = check.component
        binding = self.binding(self.level(check))
        absent = None if check.module else self.absence(owner)
        if absent is not None:
            return absent
        if isinstance(self.caller, WatchingCaller):
            self.caller.component = owner.name
        losses = self._losses.get(owner.name, Losses())
        if losses.hopeless(binding):
            return CheckResult(
                losses.last,
                f"{NOT_ASKED}: {owner.name} had hung or crashed {PATIENCE} times before",
            )
        result = run_check(check, self.context())
        self._count(owner.name, result.outcome, binding=binding)
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
                        **self.kept(check, result),
                        **({"hidden": True} if result.evidence.hidden else {}),
                    }
                )
            )
        return CheckRecord(
            id=check.id,
            component=check.component.name,
            requirement=check.requirement.id,
            level=self.level(check),
            outcome=str(result.outcome),
            message=result.shown,
            diagnosis=self.diagnosis(check, result),
            margin=result.margin,
            seconds=round(result.seconds, 6),
            details=details,
        ).to_json()

    def watched(self) -> dict[str, Any] | None:
        """What the candidate was newly seen to use, where rules hold; see `Watch.fresh`."""
        return self.caller.watch.fresh() if isinstance(self.caller, WatchingCaller) else None

    def kept(self, check: Check, result: CheckResult) -> dict[str, str]:
        """Where the input of a failed check is stored, as entries of the report's details."""
        if result.evidence.hidden:
            return {"counterexample_note": "not stored: the input is a hidden one"}
        return {} if self.keeper is None else self.keeper.keep(check, result, self.context())

    def diagnosis(self, check: Check, result: CheckResult) -> Diagnosis | None:
        """The likely mistake behind a failed check. An error of ours in here costs no verdict."""
        if result.outcome is Outcome.PASSED or result.evidence.example is None:
            return None
        try:
            return self.doctor.explain(check, result)
        except Exception as error:
            return Diagnosis(
                fault="",
                sentence=f"The diagnosis stopped with an error of its own: {error!r:.300}",
                component=check.component.name,
                certainty="described",
                basis="please report it; the check itself is not concerned",
            )

    @cached_property
    def doctor(self) -> Doctor:
        """Who explains failures."""
        return Doctor(self.caller, self.golden, self.options.device)

    def replay(self, check: Check) -> str:
        """The command that runs this one check again on the same inputs."""
        options = replace(self.options, component=(), check=(check.id,), report=None)
        return grade_command(options)


def named_components(options: GradeOptions, submission: Submission) -> set[str] | None:
    """The components that the command or the adapters module names; None if neither does.

    UsageError when the adapters module names one that there is not.
    """
    if options.component or options.check:
        return {*options.component, *(id.split("::")[0] for id in options.check)}
    declared = _own_choice(options, submission)
    if declared is None:
        return None
    known = component_names()
    unknown = [name for name in declared if name not in known]
    if unknown or not declared:
        raise UsageError(
            f"COMPONENTS in {submission.adapters} names {clean(', '.join(unknown)) or 'nothing'}; "
            f"the components are: {', '.join(known)}"
        )
    return set(declared)


def _own_choice(options: GradeOptions, submission: Submission) -> tuple[str, ...] | None:
    """The components that the adapters module declares, where it may choose."""
    return None if options.gate and not submission.ours else submission.declared


def _left_out(submission: Submission) -> tuple[str, ...]:
    """What lies in the submission and takes no part in the judge."""
    folders = [submission.root, submission.workdir or submission.root]
    here = Path.cwd()
    return left_out(*folders, *([here] if here.is_relative_to(submission.root) else []))


def _about_seeds(options: GradeOptions) -> tuple[str, ...]:
    """How much of what is asked can have been known before."""
    if options.hidden_seed_file is None:
        if options.seed != GradeOptions.seed:
            return ()
        return (
            "every input of this run can be known in advance: --hidden-seed-file, or another "
            "--seed each time, draws others",
        )
    return ("some inputs were drawn from a hidden seed",)


def _require_checks(wanted: Iterable[str]) -> None:
    """UsageError when there is no check of one of these ids."""
    for one in wanted:
        ids = [check.id for check in _checks_of(one.split("::")[0])]
        if one not in ids:
            close = difflib.get_close_matches(one[:100], ids, n=3, cutoff=0.4)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            raise UsageError(f"--check {one}: there is no such check{hint}")


def _checks_of(name: str) -> list[Check]:
    """The checks of a component; InternalError that names it when its code cannot be imported."""
    try:
        return list(checks(name))
    except InternalError:
        raise
    except Exception as error:
        raise internal_error(error, f"reading the checks of {name}") from error
