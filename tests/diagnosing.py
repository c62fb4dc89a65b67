"""Measures the diagnosis: is the mistake that is named the one that was made?

    python tests/diagnosing.py --component rope      every fault of the corpus, one line each

The faults are the torch implementations of `faulty/`, which share nothing with the wrong
definitions they are compared with but the description. What counts is the first mistake that the
report names.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import corpus
from tabulate import tabulate

from conformance.candidate.inprocess import local_caller
from conformance.candidate.messages import Outcome
from conformance.diagnosis.catalogue import fault_of, faults
from conformance.diagnosis.doctor import Doctor
from conformance.golden.load import GoldenStore, fixtures_folder
from conformance.report import Diagnosis
from conformance.spec import component_names, component_spec
from conformance.suite.check import checks, included
from conformance.suite.grader import Context
from conformance.suite.profile import PROFILE
from conformance.suite.run import run_check

REPORT = Path(__file__).resolve().parent.parent / "reports" / "diagnosis.md"
VERDICTS = ("right", "among", "wrong", "unnamed", "passed")


@dataclass(frozen=True)
class Row:
    """What was named for one fault.

    root: the component in which the mistake is was named. verdict: "right" when the first mistake
    named is the one, "among" when it is one of several that cannot be told apart, "wrong",
    "unnamed" when something is said but no mistake named, "passed" when nothing failed.
    """

    component: str
    fault: str
    visible: str
    verdict: str
    root: bool
    diagnosis: Diagnosis | None
    seconds: float


def rows(name: str, only: str = "", every: int = 1, profile: str = "quick") -> list[Row]:
    """The faults of one component, or one in `every`."""
    import torch

    torch.set_num_threads(1)
    chosen = [e for e in corpus.faults() if e.component == name and only in e.id]
    return [_row(entry, profile) for entry in chosen[::every]]


def _row(entry: corpus.Entry, profile: str) -> Row:
    start = time.perf_counter()
    named: Diagnosis | None = None
    missed = 0
    for found in _diagnoses(entry, profile):
        missed += 1
        if found is not None and (named is None or (found.fault and not named.fault)):
            named = found
        if named is not None and named.fault:
            break
    fault = faults(entry.component)[entry.id]
    place = fault_of(fault.same_as).component if fault.same_as else fault.component
    return Row(
        entry.component,
        entry.id,
        fault.visible,
        _verdict({fault.id, fault.same_as}, named) if missed else "passed",
        named is not None and named.component == place,
        named,
        time.perf_counter() - start,
    )


def _diagnoses(entry: corpus.Entry, profile: str) -> Iterator[Diagnosis | None]:
    function = component_spec(entry.component).function
    caller = local_caller({function: entry.function})
    store = GoldenStore(fixtures_folder())
    context = Context(caller, PROFILE[profile], golden=store)
    doctor = Doctor(caller, store)
    for check in checks(entry.component):
        if check.module or not included(check.profile, profile) or check.requirement.level == "MAY":
            continue
        if check.requirement.level != "MUST" and entry.level == "MUST":
            continue
        result = run_check(check, context)
        if result.outcome is not Outcome.PASSED:
            yield doctor.explain(check, result)


def _verdict(right: set[str], named: Diagnosis | None) -> str:
    if named is None or not named.fault:
        return "unnamed"
    if named.fault in right:
        return "right"
    return "among" if right & set(named.others) else "wrong"


def table(found: list[Row]) -> str:
    """Counts by component, and by where the fault shows."""
    lines = []
    for key in ("component", "visible"):
        for value in dict.fromkeys(getattr(row, key) for row in found):
            lines.append(_line(value, [row for row in found if getattr(row, key) == value]))
    lines.append(_line("all", found))
    heads = ("", "faults", *VERDICTS, "right place")
    return tabulate(lines, headers=heads, tablefmt="github")


def _line(name: str, found: list[Row]) -> tuple[object, ...]:
    counts = Counter(row.verdict for row in found)
    return name, len(found), *(counts[v] for v in VERDICTS), sum(row.root for row in found)


def report(found: list[Row]) -> str:
    """The measurement as Markdown."""
    total = len(found)
    counts = Counter(row.verdict for row in found)
    composite = [row for row in found if faults(row.component)[row.fault].same_as]
    placed = sum(row.root for row in composite)
    certain = [r for r in found if r.diagnosis is not None and r.diagnosis.certainty == "certain"]
    wrong = sum(row.verdict == "wrong" for row in certain)
    lines = [
        "# Diagnosis, measured",
        "",
        f"{total} torch implementations, each wrong in one named way, were graded, and the first "
        "mistake that the report names was compared with the one that was made "
        "(`python tests/diagnosing.py --report`). The implementations share nothing with the wrong "
        "definitions that they are compared with, and are asked on the suite's own inputs.",
        "",
        f"- The right mistake is named first for {counts['right']} "
        f"({_percent(counts['right'], total)}).",
        f"- It is among several that are named, none of them as certain, for {counts['among']}.",
        f"- Another mistake is named for {counts['wrong']}; as certain for {wrong} of "
        f"{len(certain)} that are called certain.",
        f"- What was seen is described and no mistake named for {counts['unnamed']}.",
        f"- Of {len(composite)} mistakes in a part of a larger component the part is named for "
        f"{placed} ({_percent(placed, len(composite))}).",
        "",
        table(found),
        "",
        "right place: the component in which the mistake is was named.",
        "",
        "## Not named first",
        "",
    ]
    for row in found:
        if row.verdict != "right":
            said = row.diagnosis
            text = f"[{said.certainty}] {said.sentence}" if said else "nothing is said"
            lines.append(f"- `{row.fault}` ({row.visible}), {row.verdict}: {text}")
    return "\n".join(lines) + "\n"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"


def main() -> int:
    """Command line; the exit status is 1 when a wrong mistake is named as certain."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--component", action="append")
    parser.add_argument("--only", default="", help="faults whose id contains this")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", action="store_true", help="write reports/diagnosis.md")
    options = parser.parse_args()
    names = options.component or component_names()
    start = time.perf_counter()
    with ProcessPoolExecutor(options.jobs) as executor:
        parts = executor.map(
            rows,
            names,
            [options.only] * len(names),
            [options.every] * len(names),
            [options.profile] * len(names),
        )
        found = [row for part in parts for row in part]
    for row in found:
        if row.verdict != "right":
            said = row.diagnosis
            text = f"[{said.certainty}] {said.fault} {said.others}: {said.sentence}" if said else ""
            print(f"{row.fault} ({row.visible}): {row.verdict} {text[:300]}")
    print(table(found))
    if options.report:
        REPORT.write_text(report(found), encoding="utf-8")
    print(f"{time.perf_counter() - start:.0f} s")
    certain = [r for r in found if r.verdict == "wrong" and r.diagnosis.certainty == "certain"]  # type: ignore[union-attr]
    return int(bool(certain))


if __name__ == "__main__":
    sys.exit(main())
