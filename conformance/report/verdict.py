"""From results to a verdict: a pure function, and the only place where one is drawn.

`conforming` needs all of this: the results file is whole, nothing was deselected, at least one
component is selected, each selected component has MUST checks, and every check at a level that
counts passed.  MUST always counts, SHOULD when the run asks for level `should` or `may`, MAY never.

In order of precedence:

1. `error`: the candidate, the command or the harness failed before there was anything to judge;
2. `incomplete`: the results file is not whole, whatever the checks in it say;
3. `non-conforming`: a check that counts did not pass, a selected component is not implemented, or
   the rules of the course are broken in a way that decides;
   this holds for a partial selection too, because more checks could not mend it;
4. `incomplete`: something was deselected or skipped, or a selected component had no MUST check;
5. `conforming`.

The score, 0 to 1, is the mean over the selected components of the weighted share of requirements
that pass.  A requirement passes when all of its checks do, however many they are; MUST weighs 3,
SHOULD 1, MAY 0.  A skipped check has not passed; only a SHOULD requirement whose checks were all
skipped is left out.  A component that is not implemented, or without a MUST check, scores 0.  The
score of a run that is not whole (killed, in error, or with checks deselected) is 0: what was not
checked is not proved.  The order of checks never matters.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.candidate.messages import Outcome
from conformance.errors import ExitCode
from conformance.report.figures import listed, plural
from conformance.report.model import ERRORS, LEVELS, CheckRecord, ErrorRecord, Header, Results
from conformance.report.policy import PolicyRecord, broken_rules, not_watched

WEIGHTS: Mapping[str, int] = {"MUST": 3, "SHOULD": 1, "MAY": 0}


class VerdictKind(StrEnum):
    """What a run proves."""

    CONFORMING = "conforming"
    NON_CONFORMING = "non-conforming"
    INCOMPLETE = "incomplete"
    ERROR = "error"


EXIT_CODES: Mapping[VerdictKind, ExitCode] = {
    VerdictKind.CONFORMING: ExitCode.CONFORMING,
    VerdictKind.NON_CONFORMING: ExitCode.NOT_CONFORMING,
    VerdictKind.INCOMPLETE: ExitCode.INTERNAL,
}
"""Exit codes; that of `error` says which error it was."""


class Status(StrEnum):
    """How one component stands."""

    CONFORMING = "conforming"
    NON_CONFORMING = "non-conforming"
    NOT_IMPLEMENTED = "not implemented"
    INCOMPLETE = "incomplete"
    RULES_BROKEN = "rules broken"


@dataclass(frozen=True)
class Tally:
    """Checks of one level: how many there are, passed, and were skipped."""

    total: int = 0
    passed: int = 0
    skipped: int = 0

    @property
    def missed(self) -> int:
        """Ran and did not pass."""
        return self.total - self.passed - self.skipped

    @property
    def shown(self) -> str:
        """As in a table: "3/4", "3/4 (1 skipped)", "-" for none."""
        if not self.total:
            return "-"
        skipped = f" ({self.skipped} skipped)" if self.skipped else ""
        return f"{self.passed}/{self.total}{skipped}"


@dataclass(frozen=True)
class ComponentResult:
    """One component: its status, its checks by outcome (all levels) and by level, its score.

    `errors` are checks in which the candidate raised, crashed, ran out of time or of memory.
    `worst_margin` is the largest error of its binding checks in units of tolerance, None if none
    compares values.  `forfeited` says in words by what use it has lost all points; empty if it has
    not.
    """

    name: str
    status: Status
    passed: int
    failed: int
    not_implemented: int
    errors: int
    skipped: int
    levels: Mapping[str, Tally]
    worst_margin: float | None
    score: float
    forfeited: str = ""


@dataclass(frozen=True)
class Verdict:
    """The verdict, a headline that says it in one sentence, and further reasons.

    `whole` is true when the results file is whole and nothing was deselected; only then is `score`
    worth looking at.  `error` is the message of a run that ended before it could be judged; it may
    quote the candidate.
    """

    kind: VerdictKind
    headline: str
    reasons: tuple[str, ...]
    score: float
    whole: bool
    exit_code: ExitCode
    components: tuple[ComponentResult, ...]
    error: str = ""


def judge(results: Results) -> Verdict:
    """The verdict on one run."""
    components = _components(results)
    if results.error is not None:
        return _error(results.error, components)
    broken = _broken(results)
    header = results.header
    if broken or header is None:
        headline = f"The results are not whole: {broken[0]}."
        return _incomplete(headline, broken[1:], components)
    failure = _failure(header, results, components)
    reasons = _gaps(header, results.checks, components)
    reasons += _unwatched(results.policy, components)
    if failure:
        kind, headline = VerdictKind.NON_CONFORMING, failure
    elif reasons:
        kind, headline = VerdictKind.INCOMPLETE, reasons.pop(0)
    else:
        kind, headline = VerdictKind.CONFORMING, _success(header, components)
    whole = _complete(header)
    score = _mean([component.score for component in components]) if whole else 0.0
    return Verdict(kind, headline, tuple(reasons), score, whole, EXIT_CODES[kind], components)


def _error(error: ErrorRecord, components: tuple[ComponentResult, ...]) -> Verdict:
    headlines = {
        ExitCode.USAGE: "Nothing was graded: the command or its configuration is wrong.",
        ExitCode.CANNOT_LOAD: "Nothing was graded: the candidate cannot be loaded.",
        ExitCode.INTERNAL: "The harness itself failed. This says nothing about the candidate.",
        ExitCode.NO_SANDBOX: "Nothing was graded: there is no sandbox here, and one is demanded.",
    }
    # a line that claims success or failure in place of an error is our own mistake
    known = error.exit_code in {code.value for code in headlines}
    code = ExitCode(error.exit_code) if known else ExitCode.INTERNAL
    return Verdict(
        VerdictKind.ERROR, headlines[code], (), 0.0, False, code, components, error=error.message
    )


def _incomplete(
    headline: str, reasons: Sequence[str], components: tuple[ComponentResult, ...]
) -> Verdict:
    missed = sum(c.levels["MUST"].missed for c in components)
    seen = [f"up to there, {_did_not_pass(missed, 'MUST check')}"] if missed else []
    return Verdict(
        VerdictKind.INCOMPLETE,
        headline,
        tuple(_sentence(reason) for reason in (*reasons, *seen)),
        0.0,
        False,
        ExitCode.INTERNAL,
        components,
    )


def _broken(results: Results) -> list[str]:
    """Why the results file proves nothing; the reader's words, and a net below them."""
    if results.problems:
        return list(results.problems)
    if results.header is None:
        return ["there is no header"]
    if results.footer is None:
        return ["there is no footer"]
    return []


def _complete(header: Header) -> bool:
    return header.complete_selection and header.deselected == 0


def _failure(header: Header, results: Results, components: Iterable[ComponentResult]) -> str:
    """One sentence when the candidate is known not to conform, otherwise empty."""
    counted = [c for c in results.checks if c.level in header.counted]
    missed = [c for c in counted if c.missed and c.outcome != Outcome.NOT_IMPLEMENTED]
    absent = [c.name for c in components if c.status is Status.NOT_IMPLEMENTED]
    partly = {c.component for c in counted if c.outcome == Outcome.NOT_IMPLEMENTED} - set(absent)
    wrong = {c.component for c in missed}
    parts = []
    if missed:
        many = _of(len(missed), len(counted), _counted_check(header))
        parts.append(f"{many} did not pass, in {_names(header, wrong)}")
    if absent:
        parts.append(f"not implemented: {listed(absent)}")
    if partly:
        parts.append(f"partly not implemented: {_names(header, partly)}")
    if results.policy is not None:
        parts += filter(None, [broken_rules(results.policy, header.selected)])
    return _sentence("; ".join(parts)) if parts else ""


def _gaps(
    header: Header, checks: Sequence[CheckRecord], components: Sequence[ComponentResult]
) -> list[str]:
    """What keeps a run without a failure from proving conformance, the gravest first."""
    gaps = []
    if header.in_process:
        gaps.append(
            "The candidate ran in the judge's own process, where it could decide for itself."
        )
    if not _complete(header):
        gaps.append(_partial(header, checks))
    if not header.selected:
        gaps.append("No component was selected.")
    skipped = [c for c in checks if c.skipped and c.level in header.counted]
    if skipped:
        where = _names(header, {c.component for c in skipped})
        gaps.append(f"{plural(len(skipped), 'check')} that would count were skipped, in {where}.")
    empty = {c.name for c in components if not c.levels["MUST"].total}
    empty -= {c.name for c in components if c.status is Status.NOT_IMPLEMENTED}
    if empty:
        gaps.append(f"No MUST check ran for {_names(header, empty)}.")
    return gaps


def _unwatched(policy: PolicyRecord | None, components: Iterable[ComponentResult]) -> list[str]:
    """Components whose rules nobody can vouch for: no call of theirs was watched to its end."""
    there = [c.name for c in components if c.passed and c.status is not Status.NOT_IMPLEMENTED]
    names = [] if policy is None else not_watched(policy, there)
    if not names:
        return []
    return [f"Whether {listed(names)} keeps the rules is not known: no call of it was watched."]


def _partial(header: Header, checks: Iterable[CheckRecord]) -> str:
    missed = sum(c.missed and c.level in header.counted for c in checks)
    rest = f"of the ones that ran, {_did_not_pass(missed, _counted_check(header))}"
    if not missed:
        rest = "the ones that ran passed" if header.collected else "none was left to run"
    if header.deselected:
        whole = header.deselected + header.collected
        return f"{header.deselected} of {whole} checks were deselected; {rest}."
    return f"Only a part of the checks was selected; {rest}."


def _success(header: Header, components: Sequence[ComponentResult]) -> str:
    total = sum(c.levels[level].total for c in components for level in header.counted)
    where = components[0].name if len(components) == 1 else f"{len(components)} components"
    only = f", in {' and '.join(header.dtypes)} only" if header.dtypes else ""
    return f"{_of(total, total, _counted_check(header))} of {where} passed{only}."


def _counted_check(header: Header) -> str:
    return f"{' and '.join(header.counted)} check"


def _components(results: Results) -> tuple[ComponentResult, ...]:
    """One result per selected component, in the order of selection."""
    header = results.header
    checks: dict[str, list[CheckRecord]] = defaultdict(list)
    for check in results.checks:
        checks[check.component].append(check)
    names = dict.fromkeys(header.selected) if header else dict.fromkeys(sorted(checks))
    counted = header.counted if header else ("MUST",)
    closed = header is not None and _complete(header) and not (_broken(results) or results.error)
    policy = results.policy
    return tuple(_component(name, checks[name], counted, closed, policy) for name in names)


def _component(
    name: str,
    checks: Sequence[CheckRecord],
    counted: Sequence[str],
    closed: bool,
    policy: PolicyRecord | None,
) -> ComponentResult:
    def number(*outcomes: str) -> int:
        return sum(c.outcome in outcomes for c in checks)

    margins = [c.margin for c in checks if c.margin is not None and c.level in counted]
    status = _status(checks, counted, closed)
    forfeited = policy.forfeits(name) if policy else ""
    if forfeited and status is Status.CONFORMING and policy and policy.effect_on(name) == "fail":
        status = Status.RULES_BROKEN
    return ComponentResult(
        name=name,
        status=status,
        passed=number(Outcome.PASSED),
        failed=number(Outcome.FAILED),
        not_implemented=number(Outcome.NOT_IMPLEMENTED),
        errors=number(*ERRORS),
        skipped=number(Outcome.SKIPPED),
        levels={level: _tally(checks, level) for level in LEVELS},
        worst_margin=max(margins, key=by_size, default=None),
        score=0.0 if forfeited or status is Status.NOT_IMPLEMENTED else _score(checks),
        forfeited=forfeited,
    )


def by_size(margin: float) -> float:
    """Sorting key of a margin: an error that is not a number is the worst."""
    return math.inf if math.isnan(margin) else margin


def _status(checks: Sequence[CheckRecord], counted: Sequence[str], closed: bool) -> Status:
    ran = [c for c in checks if not c.skipped]
    deciding = [c for c in checks if c.level in counted]
    if ran and all(c.outcome == Outcome.NOT_IMPLEMENTED for c in ran):
        return Status.NOT_IMPLEMENTED
    if any(c.missed for c in deciding):
        return Status.NON_CONFORMING
    if not closed or any(c.skipped for c in deciding) or all(c.level != "MUST" for c in checks):
        return Status.INCOMPLETE
    return Status.CONFORMING


def _tally(checks: Iterable[CheckRecord], level: str) -> Tally:
    mine = [c for c in checks if c.level == level]
    return Tally(len(mine), sum(c.passed for c in mine), sum(c.skipped for c in mine))


def _score(checks: Iterable[CheckRecord]) -> float:
    """Weighted share of the requirements that pass; 0 without a MUST requirement."""
    requirements: dict[tuple[str, str], list[CheckRecord]] = defaultdict(list)
    for check in checks:
        requirements[check.level, check.requirement].append(check)
    passed = total = 0
    for (level, _), mine in requirements.items():
        if level == "SHOULD" and all(c.skipped for c in mine):
            continue
        total += WEIGHTS[level]
        passed += WEIGHTS[level] * all(c.passed for c in mine)
    must = any(level == "MUST" for level, _ in requirements)
    return passed / total if must else 0.0


def _mean(scores: Sequence[float]) -> float:
    """The mean; `fsum` rounds once, so that order cannot show.  0 of nothing."""
    return math.fsum(scores) / len(scores) if scores else 0.0


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _names(header: Header, names: set[str]) -> str:
    ordered = [name for name in header.selected if name in names]
    return listed(ordered or sorted(names))


def _did_not_pass(number: int, noun: str) -> str:
    return f"{plural(number, noun)} did not pass"


def _of(number: int, total: int, noun: str) -> str:
    return f"{number} of {plural(total, noun)}"
