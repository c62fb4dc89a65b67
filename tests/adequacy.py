"""Proves that the suite catches what people get wrong: each fault against each check.

    python tests/adequacy.py        grades all faults, writes the report

It goes on where it was stopped: results are kept in `build/adequacy.jsonl`, one line per fault, and
are thrown away when the suite or the corpus has changed. The report is `reports/adequacy.md`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import measure

from conformance.candidate.messages import Outcome
from conformance.diagnosis.catalogue import Fault, faults
from conformance.spec import component_names, component_spec
from conformance.suite.check import checks, included

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = ROOT / "build" / "adequacy.jsonl"
REPORT = ROOT / "reports" / "adequacy.md"
SOURCES = ("conformance/**/*.py", "conformance/**/*.toml", "fixtures/*.json", "tests/faulty/*.py")
AT_LEVEL = {"MUST": ("MUST",), "SHOULD": ("MUST", "SHOULD")}


@dataclass(frozen=True)
class Graded:
    """One fault: the checks it fails, by id."""

    fault: str
    component: str
    failed: tuple[str, ...]
    seconds: float


def fingerprint(profile: str) -> str:
    """A hash of all that the results depend on."""
    parts = hashlib.sha256(profile.encode())
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            parts.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    for name in ("parts.py", "adapting.py", "witnesses.py", "corpus.py"):
        parts.update((HERE / name).read_bytes())
    return parts.hexdigest()[:16]


def kept(path: Path, mark: str) -> dict[str, Graded]:
    """The results of an earlier run of the same suite; a last line that was cut off is ignored."""
    if not path.exists():
        return {}
    found: dict[str, Graded] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry.pop("suite", "") == mark:
            graded = Graded(**{**entry, "failed": tuple(entry["failed"])})
            found[graded.fault] = graded
    return found


def grade(component: str, identifier: str, profile: str) -> Graded:
    """One fault against all checks of its component."""
    start = time.perf_counter()
    task = measure.Task("faults", component, (0,), profile, identifier, True)
    found = [row for row in measure.rows(task) if row.entry == identifier]
    assert found, f"{identifier} is not in the corpus"
    failed = tuple(row.check for row in found if row.outcome != Outcome.PASSED)
    return Graded(identifier, component, failed, round(time.perf_counter() - start, 2))


def run(profile: str, jobs: int, names: Iterable[str], path: Path = RESULTS) -> list[Graded]:
    """All faults of these components, those that are known already taken from the file."""
    mark = fingerprint(profile)
    done = kept(path, mark)
    path.parent.mkdir(parents=True, exist_ok=True)
    wanted = [(name, fault) for name in names for fault in faults(name)]
    missing = [pair for pair in wanted if pair[1] not in done]
    if not done:
        path.write_text("", encoding="utf-8")
    with ProcessPoolExecutor(jobs) as pool, path.open("a", encoding="utf-8") as file:
        todo = [pool.submit(grade, component, fault, profile) for component, fault in missing]
        for future in todo:
            graded = future.result()
            file.write(json.dumps({"suite": mark, **asdict(graded)}) + "\n")
            file.flush()
            done[graded.fault] = graded
    return [done[fault] for _, fault in wanted]


@dataclass(frozen=True)
class Verdict:
    """What the run says of one fault.

    killed: a check of its level (or a stricter one) fails; stated: one of a requirement that states
    that it is wrong does.
    """

    fault: Fault
    graded: Graded
    killed: bool
    stated: bool


def verdicts(graded: Iterable[Graded]) -> Iterator[Verdict]:
    """Each result with what it means."""
    for one in graded:
        fault = faults(one.component)[one.fault]
        owner = component_spec(one.component)
        of = requirement_of(one.component)
        failed = {of[check] for check in one.failed}
        counted = {r for r in failed if owner.requirements[r].level in AT_LEVEL[fault.level]}
        yield Verdict(fault, one, bool(counted), bool(counted & set(fault.requirements)))


def requirement_of(component: str) -> dict[str, str]:
    """Check id -> requirement id."""
    return {check.id: check.requirement.id for check in checks(component)}


def planned(component: str, profile: str) -> list[str]:
    """The checks of a component that a fault is graded with, in order."""
    return [c.id for c in checks(component) if not c.module and included(c.profile, profile)]


# ---------------------------------------------------------------- report


def report(found: list[Verdict], profile: str, seconds: float) -> str:
    """The report as Markdown."""
    names = list(dict.fromkeys(v.fault.component for v in found))
    parts = [_head(found, profile), _table(found, names, profile)]
    parts += [_problems(found), _idle(found, names, profile), _without(found, names)]
    parts += [_matrix(found, name, profile) for name in names]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(found: list[Verdict], profile: str) -> str:
    must = [v for v in found if v.fault.level == "MUST"]
    should = [v for v in found if v.fault.level != "MUST"]
    return "\n".join(
        [
            "# Adequacy of the suite",
            "",
            f"{len(found)} named mistakes, each written as a torch implementation that is wrong in "
            f"exactly that way, were graded with the {profile} profile (`make adequacy`).",
            "",
            f"- MUST: {_share(must)} caught by a MUST check, {_stated(must)} by a check of a "
            "requirement that states that it is wrong.",
            f"- SHOULD: {_share(should)} caught, {_stated(should)} by such a check.",
        ]
    )


def _share(found: list[Verdict]) -> str:
    return f"{sum(v.killed for v in found)} of {len(found)}"


def _stated(found: list[Verdict]) -> str:
    return f"{sum(v.stated for v in found)} of {len(found)}"


def _table(found: list[Verdict], names: list[str], profile: str) -> str:
    lines = [
        "## By component",
        "",
        "| component | faults | caught | as stated | checks | checks that catch none "
        "| requirements | without a fault |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in names:
        own = [v for v in found if v.fault.component == name]
        lines.append(
            f"| {name} | {len(own)} | {sum(v.killed for v in own)} | {sum(v.stated for v in own)} "
            f"| {len(planned(name, profile))} | {len(_idle_checks(own, name, profile))} "
            f"| {len(component_spec(name).requirements)} | {len(_unused(own, name))} |"
        )
    return "\n".join(lines)


def _problems(found: list[Verdict]) -> str:
    lines = ["## Survivors, and faults that are caught by accident", ""]
    bad = [v for v in found if not v.killed or not v.stated]
    for v in bad:
        what = "survives" if not v.killed else "is caught only by requirements that do not state it"
        lines.append(f"- `{v.fault.id}` ({v.fault.level}) {what}: {v.fault.sentence}")
    return "\n".join(lines if bad else [*lines, "None."])


def _idle_checks(own: list[Verdict], name: str, profile: str) -> list[str]:
    used = {check for v in own for check in v.graded.failed}
    return [check for check in planned(name, profile) if check not in used]


def _idle(found: list[Verdict], names: list[str], profile: str) -> str:
    lines = [
        "## Checks that catch no fault of the corpus",
        "",
        "They observe what is left open (MAY), or guard against what nobody has been seen to do.",
        "",
    ]
    for name in names:
        own = [v for v in found if v.fault.component == name]
        of, levels = requirement_of(name), component_spec(name).requirements
        idle = _idle_checks(own, name, profile)
        lines += [f"- `{check}` ({levels[of[check]].level}, `{of[check]}`)" for check in idle]
    return "\n".join(lines)


def _unused(own: list[Verdict], name: str) -> list[str]:
    stated = {requirement for v in own for requirement in v.fault.requirements}
    return [r for r in component_spec(name).requirements if r not in stated]


def _without(found: list[Verdict], names: list[str]) -> str:
    lines = ["## Requirements that no fault is said to break", ""]
    for name in names:
        own = [v for v in found if v.fault.component == name]
        levels = component_spec(name).requirements
        unused = ", ".join(f"`{r}` ({levels[r].level})" for r in _unused(own, name))
        if unused:
            lines.append(f"- {name}: {unused}")
    return "\n".join(lines)


def _matrix(found: list[Verdict], name: str, profile: str) -> str:
    own = [v for v in found if v.fault.component == name]
    order = planned(name, profile)
    number = {check: place for place, check in enumerate(order, start=1)}
    of, levels = requirement_of(name), component_spec(name).requirements
    lines = [
        f"## {name}: fault by check",
        "",
        "Numbers are those of the checks below; bold where its requirement states the mistake.",
        "",
        "| fault | level | shows in | caught by |",
        "| --- | --- | --- | --- |",
    ]
    for v in own:
        cells = [
            f"**{number[c]}**" if of[c] in v.fault.requirements else str(number[c])
            for c in v.graded.failed
        ]
        cell = " ".join(cells)
        lines.append(f"| `{v.fault.id}` | {v.fault.level} | {v.fault.visible} | {cell} |")
    kills = {check: sum(check in v.graded.failed for v in own) for check in order}
    alone = {c: sum(v.graded.failed == (c,) for v in own) for c in order}
    lines += ["", "| | check | level | catches | alone |", "| ---: | --- | --- | ---: | ---: |"]
    lines += [
        f"| {number[c]} | `{c}` | {levels[of[c]].level} | {kills[c]} | {alone[c]} |" for c in order
    ]
    return "\n".join(lines)


def main() -> int:
    """Command line; the exit status is 1 when a MUST fault survives or is caught by accident."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--component", action="append", help="only these, and no report file")
    parser.add_argument("--profile", default="standard")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    start = time.perf_counter()
    graded = run(options.profile, options.jobs, options.component or component_names())
    found = list(verdicts(graded))
    seconds = time.perf_counter() - start
    if not options.component:
        REPORT.write_text(report(found, options.profile, seconds), encoding="utf-8")
        print(f"wrote {REPORT.relative_to(ROOT)}")
    print(_head(found, options.profile))
    print(_problems(found))
    print(f"{seconds:.0f} s")
    return int(any(v.fault.level == "MUST" and not v.stated for v in found))


if __name__ == "__main__":
    sys.exit(main())
