"""Measures the suite against the corpora: false alarms, margins, survivors, null models.

    python tests/measure.py variants --seeds 20     distribution of error over tolerance
    python tests/measure.py faults                  which faults pass every MUST check
    python tests/measure.py nulls                   null models that pass a value check

All of them in the standard profile, unless --profile says otherwise.

Candidates run in this process: they are all ours.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import corpus
from tabulate import tabulate

from conformance.candidate.inprocess import local_caller
from conformance.candidate.messages import Outcome
from conformance.golden.load import GoldenStore, fixtures_folder
from conformance.spec import component_names, component_spec
from conformance.suite.check import Check, checks, included
from conformance.suite.grader import Context
from conformance.suite.profile import PROFILE
from conformance.suite.run import run_check


@dataclass(frozen=True)
class Row:
    """How one entry fared in one check."""

    entry: str
    entry_level: str
    component: str
    check: str
    requirement: str
    level: str
    dtype: str
    seed: int
    outcome: str
    margin: float | None
    message: str
    seconds: float


@dataclass(frozen=True)
class Task:
    """One component of one corpus, which one process measures."""

    corpus: str
    component: str
    seeds: tuple[int, ...]
    profile: str
    only: str
    stored: bool


def rows(task: Task, every: int = 1) -> list[Row]:
    """Run every check of a component against every entry of a corpus, or one in `every`."""
    import torch

    torch.set_num_threads(1)
    found: list[Row] = []
    entries = {"variants": corpus.variants, "faults": corpus.faults, "nulls": corpus.nulls}
    chosen = [
        entry
        for entry in entries[task.corpus]()
        if entry.component == task.component and task.only in entry.id
    ]
    for entry in chosen[::every]:
        found += list(_grade(entry, task))
    return found


def _grade(entry: corpus.Entry, task: Task) -> Iterator[Row]:
    function = component_spec(entry.component).function
    store = GoldenStore(fixtures_folder()) if task.stored else GoldenStore()
    for seed in task.seeds:
        caller = local_caller({function: entry.function})
        context = Context(caller, PROFILE[task.profile], seed=seed, golden=store)
        for check in checks(entry.component):
            if not check.module and included(check.profile, task.profile):
                yield _row(entry, check, context)


def _row(entry: corpus.Entry, check: Check, context: Context) -> Row:
    result = run_check(check, context)
    return Row(
        entry.id,
        entry.level,
        entry.component,
        check.id,
        check.requirement.id,
        str(check.requirement.level),
        check.dtype,
        context.seed,
        str(result.outcome),
        result.margin,
        result.message,
        result.seconds,
    )


def measure(options: argparse.Namespace) -> list[Row]:
    """All rows of a corpus, measured in `options.jobs` processes."""
    names = [n for n in component_names() if not options.component or n in options.component]
    tasks = [
        Task(
            options.corpus,
            name,
            tuple(range(options.first_seed, options.first_seed + options.seeds)),
            options.profile,
            options.only,
            options.stored,
        )
        for name in reversed(names)
    ]
    if options.jobs == 1:
        return [row for task in tasks for row in rows(task)]
    with ProcessPoolExecutor(options.jobs) as pool:
        return [row for found in pool.map(rows, tasks) for row in found]


def false_alarms(found: list[Row]) -> list[str]:
    """What correct variants fail; a variant of level "must-only" may fail a SHOULD."""
    return [
        f"{r.entry} {r.check} ({r.level}, seed {r.seed}): {r.outcome}: {r.message}"
        for r in found
        if r.outcome != Outcome.PASSED
        and (r.level == "MUST" or (r.level == "SHOULD" and r.entry_level == "full"))
    ]


def survivors(found: list[Row]) -> list[str]:
    """Faults that no check of their level, or of a stricter one, catches."""
    alive = []
    for entry, level in sorted({(r.entry, r.entry_level) for r in found}):
        missed = [r for r in found if r.entry == entry and r.outcome != Outcome.PASSED]
        counted = ("MUST",) if level == "MUST" else ("MUST", "SHOULD")
        if not any(r.level in counted for r in missed):
            alive.append(f"{entry} ({level}), caught by {sorted({r.requirement for r in missed})}")
    return alive


def killers(found: list[Row]) -> str:
    """Which requirements each entry fails, one line per entry."""
    failed: dict[str, dict[str, None]] = {row.entry: {} for row in found}
    for row in found:
        if row.outcome != Outcome.PASSED:
            failed[row.entry][row.requirement] = None
    return "\n".join(f"{entry}: {', '.join(ids)}" for entry, ids in failed.items())


WITHOUT_VALUES = (
    *("-PURE", "-INPUTS-UNCHANGED", "-DICTIONARY", "-FRESH", "-FRESH-RESULT"),
    *("-DEVICE", "-DTYPE", "-RESULT"),
)
"""How requirements end that say nothing about numbers: memory, device, dtype of the result."""


def null_passes(found: list[Row]) -> list[str]:
    """Value checks that a null model passes: all that compare, and all of unknown kind."""
    return [
        f"{r.entry} {r.check} ({r.level}), "
        + ("nothing was compared" if r.margin is None else f"margin {r.margin:.3g}")
        for r in found
        if r.outcome == Outcome.PASSED and (r.margin is not None or _on_values(r))
    ]


def _on_values(row: Row) -> bool:
    """Whether a check is one that an implementation which computes nothing must fail."""
    return row.level != "MAY" and not row.requirement.endswith(WITHOUT_VALUES)


def null_summary(found: list[Row]) -> str:
    """How many value checks there are, and what null models pass beside them."""
    values = {r.check for r in found if _on_values(r)}
    models = {r.entry.removesuffix(f"-{r.component.replace('_', '-')}") for r in found}
    failed = sum(r.outcome != Outcome.PASSED for r in found if r.check in values)
    others = {r.check for r in found} - values
    return (
        f"{len(values)} value checks of {len({r.component for r in found})} components, "
        f"{len(models)} null models: {failed} fail, {len(null_passes(found))} pass; "
        f"{len(others)} other checks are about memory, device, dtype, or what is left open"
    )


def margins(found: list[Row]) -> str:
    """Table of error over tolerance by component and dtype."""
    table = []
    for component in component_names():
        for dtype in ("float32", "bfloat16", "float16", "float64"):
            here = [r for r in found if r.component == component and r.dtype == dtype]
            sizes = sorted(r.margin for r in here if r.margin is not None and r.outcome == "passed")
            if sizes:
                quantiles = (f"{sizes[int(q * (len(sizes) - 1))]:.3f}" for q in (0.5, 0.99, 1))
                table.append(
                    (component, dtype, len({r.entry for r in here}), len(sizes), *quantiles)
                )
    heads = ("component", "dtype", "variants", "checks", "median", "99 %", "largest")
    return tabulate(table, headers=heads, tablefmt="github", disable_numparse=True)


def main() -> int:
    """Command line; the exit status is 1 when something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("corpus", choices=("variants", "faults", "nulls"))
    parser.add_argument("--component", action="append")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--profile", default="standard")
    parser.add_argument("--only", default="", help="entries whose id contains this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--killed", action="store_true", help="say which requirements each fails")
    parser.add_argument("--stored", action="store_true", help="use the stored golden vectors")
    options = parser.parse_args()
    start = time.perf_counter()
    found = measure(options)
    judges = {"variants": false_alarms, "faults": survivors, "nulls": null_passes}
    problems = judges[options.corpus](found)
    for problem in problems:
        print(problem)
    if options.killed:
        print(killers(found))
    if options.corpus == "variants":
        print(margins(found))
    if options.corpus == "nulls":
        print(null_summary(found))
    entries = len({row.entry for row in found})
    print(f"{len(problems)} problems in {len(found)} checks of {entries} {options.corpus}")
    print(f"{time.perf_counter() - start:.0f} s")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
