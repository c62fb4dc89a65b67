"""The rubric: how many points each component is worth, as the instructor wrote it down.

    total = 100                      # optional; must be what the components add up to
    grading = "proportional"         # or "all-or-nothing", which is the default

    [components]
    rmsnorm = 10                     # points for its MUST requirements
    rope = { must = 12, should = 3, grading = "all-or-nothing" }
    glu = { must = 5, counts = "bonus" }
    transformer_lm = { must = 20, counts = "later" }

Everything that is wrong is said at once, each with its file, its key and what to do.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

from conformance.adapters import COURSE_FUNCTIONS
from conformance.errors import UsageError
from conformance.spec import Level, component_names, component_spec

MOST_POINTS = 1_000_000
"""More points than this are a typing error."""

MOST_PROBLEMS = 10
"""Of more problems than these the first are told."""

DEFAULT_POINTS = 10
"""Points of a component where no rubric is given."""

TABLE = "rubric"
"""Name of the rubric's table in a file that holds other things as well."""


class Grading(StrEnum):
    """How the points of one level follow from its requirements."""

    ALL_OR_NOTHING = "all-or-nothing"
    PROPORTIONAL = "proportional"


class Counts(StrEnum):
    """Whether a component is part of the total.

    A bonus is added to the points and not to the total. What is due later gives no points yet.
    """

    REQUIRED = "required"
    BONUS = "bonus"
    LATER = "later"


@dataclass(frozen=True)
class Worth:
    """What one component is worth."""

    component: str
    must: Fraction
    should: Fraction = Fraction(0)
    grading: Grading = Grading.ALL_OR_NOTHING
    counts: Counts = Counts.REQUIRED

    @property
    def points(self) -> Fraction:
        """All of its points."""
        return self.must + self.should


@dataclass(frozen=True)
class Rubric:
    """What every component is worth; components that are not named give no points."""

    components: tuple[Worth, ...]

    @property
    def total(self) -> Fraction:
        """The points of everything that is required."""
        required = (w.points for w in self.components if w.counts is Counts.REQUIRED)
        return sum(required, Fraction(0))

    @classmethod
    def default(cls) -> Rubric:
        """The same for each component of the course contract, all or nothing."""
        names = (name for name in component_names() if name in COURSE_FUNCTIONS)
        return cls(tuple(Worth(name, Fraction(DEFAULT_POINTS)) for name in names))

    @classmethod
    def read(cls, path: Path) -> Rubric:
        """The rubric in a TOML file: the whole file, or its table `rubric`. Raises UsageError."""
        try:
            data = tomllib.loads(path.read_bytes().decode("utf-8"))
        except OSError as error:
            raise UsageError(f"rubric {path}: cannot be read: {error.strerror or error}") from None
        except ValueError as error:  # neither UTF-8 nor TOML
            raise UsageError(f"rubric {path}: this is not TOML: {error}") from None
        if TABLE in data and "components" not in data:
            return cls.from_mapping(data[TABLE], f"{path}, [{TABLE}]")
        return cls.from_mapping(data, str(path))

    @classmethod
    def from_mapping(cls, table: Any, where: str) -> Rubric:
        """The rubric in a table of a file; `where` names both in messages. Raises UsageError."""
        reader = _Reader()
        rubric = reader.rubric(table)
        if reader.problems:
            told = reader.problems[:MOST_PROBLEMS]
            more = len(reader.problems) - len(told)
            lines = [f"rubric {where}: {problem}" for problem in told]
            raise UsageError("\n".join([*lines, *([f"and {more} more"] if more else [])]))
        return rubric


class _Reader:
    """Reads a rubric and notes every problem; what is wrong is left out."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def rubric(self, table: Any) -> Rubric:
        if not isinstance(table, Mapping):
            self.problems.append("give a table with the entry components")
            return Rubric(())
        self._known(table, ("total", "grading", "components"), "")
        grading = self._choice(table, "", "grading", Grading, Grading.ALL_OR_NOTHING)
        total = self._points(table["total"], "total") if "total" in table else None
        components = table.get("components")
        if not isinstance(components, Mapping) or not components:
            self.problems.append(
                "components: give a table with the points of each component, such as rmsnorm = 10"
            )
            return Rubric(())
        rubric = Rubric(tuple(self._components(components, grading)))
        if not self.problems:
            self._adds_up(total, rubric)
        return rubric

    def _components(self, table: Mapping[str, Any], grading: Grading) -> Iterable[Worth]:
        for name, value in table.items():
            if name not in component_names():
                hint = _close(name, component_names())
                self.problems.append(
                    f"components.{name}: there is no such component"
                    f"{hint or '; the components are: ' + ', '.join(component_names())}"
                )
                continue
            yield self._worth(name, value, grading)

    def _worth(self, name: str, value: Any, grading: Grading) -> Worth:
        key = f"components.{name}"
        if not isinstance(value, Mapping):
            return Worth(name, self._points(value, key), grading=grading)
        self._known(value, ("must", "should", "grading", "counts"), f"{key}.")
        if "must" not in value and "should" not in value:
            self.problems.append(f"{key}: give its points as must, should or both")
        should = self._points(value.get("should", 0), f"{key}.should")
        levels = {one.level for one in component_spec(name).requirements.values()}
        if should and Level.SHOULD not in levels:
            self.problems.append(
                f"{key}.should: {name} has no SHOULD requirement, so nobody could earn these "
                "points; add them to must"
            )
        return Worth(
            name,
            self._points(value.get("must", 0), f"{key}.must"),
            should,
            self._choice(value, f"{key}.", "grading", Grading, grading),
            self._choice(value, f"{key}.", "counts", Counts, Counts.REQUIRED),
        )

    def _points(self, value: Any, key: str) -> Fraction:
        number = not isinstance(value, bool) and isinstance(value, int | float)
        if not number or not math.isfinite(value):
            self.problems.append(f"{key}: {_shown(value)} is no number of points; give one, as 10")
            return Fraction(0)
        if value < 0:
            self.problems.append(f"{key}: {value} points are negative; give 0 or more")
            return Fraction(0)
        if value > MOST_POINTS:
            self.problems.append(f"{key}: {value} points; give {MOST_POINTS:,} at most")
            return Fraction(0)
        return Fraction(str(value))  # as it is written: 0.1 is a tenth

    def _choice(
        self, table: Mapping[str, Any], prefix: str, name: str, kind: type[StrEnum], default: Any
    ) -> Any:
        if name not in table:
            return default
        try:
            return kind(table[name])
        except ValueError:
            allowed = ", ".join(kind)
            self.problems.append(f"{prefix}{name}: {_shown(table[name])}; choose one of {allowed}")
            return default

    def _known(self, table: Mapping[str, Any], known: tuple[str, ...], prefix: str) -> None:
        for name in table:
            if name in known:
                continue
            hint = _close(name, known) or f"; known are: {', '.join(known)}"
            if name == "may":
                hint = "; MAY requirements are only observed and give no points, take it out"
            elif not prefix and name in component_names():
                hint = "; components stand below [components]"
            self.problems.append(f"{prefix}{name}: there is no such entry{hint}")

    def _adds_up(self, total: Fraction | None, rubric: Rubric) -> None:
        if not rubric.total:
            self.problems.append("components: no required component gives any points")
        elif total is not None and total != rubric.total:
            self.problems.append(
                f"total: {shown_points(total)}, but the required components add up to "
                f"{shown_points(rubric.total)}; change one of the two, or leave total out"
            )


def shown_points(points: Fraction) -> str:
    """Points with up to two digits after the point, rounded down: "10", "7.5", "33.33"."""
    return f"{math.floor(points * 100) / 100:.2f}".rstrip("0").rstrip(".")


def _close(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(str(name)[:100], list(known), n=2)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def _shown(value: Any) -> str:
    return repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:59]}…"
