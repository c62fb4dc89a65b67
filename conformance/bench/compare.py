"""`conformance compare A.json B.json`: what has changed from one run to another.

Two bench.json: each row's ratio to the reference, so that another machine or another load does not
count as a change of the candidate. A row has changed when the interval of the quotient leaves the
noise of both runs. Two report.json: requirements that newly fail or newly hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.bench.results import BENCH_SCHEMA, MEASURED, read_json
from conformance.bench.statistics import Interval, quotient
from conformance.errors import ExitCode, UsageError
from conformance.report.jsonfile import REPORT_SCHEMA

LEAST_NOISE = 0.01
"""Changes of less than this are never told."""


@dataclass
class Comparison:
    """What has changed: names with a few words each."""

    kind: str
    worse: list[tuple[str, str]] = field(default_factory=list)
    better: list[tuple[str, str]] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    unlike: list[tuple[str, str]] = field(default_factory=list)
    words: tuple[str, str] = ("worse", "better")

    @property
    def exit_code(self) -> ExitCode:
        """NOT_CONFORMING when something got worse."""
        return ExitCode.NOT_CONFORMING if self.worse else ExitCode.CONFORMING

    def text(self) -> str:
        """For the terminal."""
        lines = []
        for title, entries in ((self.words[0], self.worse), (self.words[1], self.better)):
            lines += [f"{title}: {name}{f', {more}' if more else ''}" for name, more in entries]
        lines += [f"not compared: {name}, {why}" for name, why in self.unlike]
        counts = (
            f"{len(self.worse)} {self.words[0]}",
            f"{len(self.better)} {self.words[1]}",
            f"{len(self.same)} the same",
            f"{len(self.unlike)} not compared",
        )
        return "\n".join([*lines, f"{self.kind}: " + ", ".join(counts)])


def compare_files(before: Path, after: Path) -> Comparison:
    """Compare two files of the same kind. UsageError when they are not."""
    first, second = read_json(before), read_json(after)
    kinds = {first["schema"], second["schema"]}
    if kinds == {BENCH_SCHEMA}:
        return compare_benchmarks(first, second)
    if kinds == {REPORT_SCHEMA}:
        return compare_reports(first, second)
    raise UsageError(
        f"{before} and {after} are not two bench.json or two report.json of this version of the "
        f"suite ({', '.join(sorted(kinds))})"
    )


# -- speed ---------------------------------------------------------------------------------------


def compare_benchmarks(before: Mapping[str, Any], after: Mapping[str, Any]) -> Comparison:
    """Faster, slower, the same; rows that are not believed any more count as slower."""
    found = Comparison("benchmarks", words=("slower", "faster"))
    old = {row["id"]: row for row in before["rows"]}
    new = {row["id"]: row for row in after["rows"]}
    for id in dict.fromkeys([*old, *new]):
        _compare_row(found, id, old.get(id), new.get(id), _settings_differ(before, after))
    return found


def _settings_differ(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    for key in ("device", "threads"):
        if before[key] != after[key]:
            return f"{key} {before[key]} and {after[key]}"
    return ""


def _compare_row(
    found: Comparison,
    id: str,
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
    differ: str,
) -> None:
    was = old is not None and old["status"] == MEASURED
    if was and (new is None or new["status"] != MEASURED):
        why = "it is not there any more" if new is None else new["reason"] or new["status"]
        found.worse.append((id, f"no longer measured: {why}"))
        return
    if old is None or new is None or not was or new["status"] != MEASURED:
        found.unlike.append((id, "measured in one of the two only"))
        return
    if differ or old["sizes"] != new["sizes"]:
        found.unlike.append((id, differ or "sizes differ"))
        return
    _compare_ratio(found, id, old, new)


def _compare_ratio(
    found: Comparison, id: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    ratios = [row["ratios"].get("reference") for row in (old, new)]
    if not all(ratios):
        found.unlike.append((id, "without a ratio to the reference"))
        return
    change = quotient(*(Interval(r["value"], r["low"], r["high"]) for r in reversed(ratios)))
    noise = max(LEAST_NOISE, *(_noise(row) for row in (old, new)))
    words = f"time x {change.value:.3f} ({change.low:.3f} to {change.high:.3f})"
    if change.low > 1 + noise:
        found.worse.append((id, words))
    elif change.high < 1 / (1 + noise):
        found.better.append((id, words))
    else:
        found.same.append(id)


def _noise(row: Mapping[str, Any]) -> float:
    """How far a run's candidate was from itself."""
    noise = row["noise"]
    return 0.0 if noise is None else abs(float(noise["value"]) - 1.0)


# -- correctness ---------------------------------------------------------------------------------


def compare_reports(before: Mapping[str, Any], after: Mapping[str, Any]) -> Comparison:
    """Requirements that newly fail, or that hold now."""
    found = Comparison("requirements", words=("newly failing", "fixed"))
    old, new = _requirements(before), _requirements(after)
    for key in dict.fromkeys([*old, *new]):
        name = f"{key[1]} in {key[0]}"
        if key not in old or key not in new:
            found.unlike.append((name, "checked in one of the two only"))
        elif old[key] == new[key]:
            found.same.append(name)
        elif new[key]:
            found.better.append((name, ""))
        else:
            found.worse.append((name, _first_message(after, key)))
    return found


Key = tuple[str, str]


def _requirements(report: Mapping[str, Any]) -> dict[Key, bool]:
    """(component, requirement) -> whether all of its checks passed; MAY is only observed."""
    held: dict[Key, bool] = {}
    for check in report["checks"]:
        if check["level"] != "MAY" and check["outcome"] != "skipped":
            key = (check["component"], check["requirement"])
            held[key] = held.get(key, True) and check["outcome"] == "passed"
    return held


def _first_message(report: Mapping[str, Any], key: Key) -> str:
    for check in report["checks"]:
        same = (check["component"], check["requirement"]) == key
        if same and check["outcome"] not in ("passed", "skipped"):
            return str(check["message"])[:200]
    return ""
