"""Plots as small SVG files: one template, points and lines, nothing that needs a library.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; every series has a
mark and a dash of its own as well, so that a black-and-white print can be read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

BLACK, BLUE, ORANGE, GREEN = "#000000", "#0072b2", "#d55e00", "#009e73"
PURPLE = "#cc79a7"

STYLES: dict[str, tuple[str, str, str]] = {
    "first": (BLUE, "circle", ""),
    "second": (ORANGE, "square", "6 3"),
    "third": (GREEN, "triangle", "2 3"),
    "fourth": (PURPLE, "diamond", "9 3 2 3"),
    "line": (BLACK, "", "1 3"),
}
"""Style -> colour, mark, dashes."""


@dataclass(frozen=True)
class Series:
    """Points of one kind; `low` and `high` are intervals along x where they are given."""

    label: str
    style: str
    points: Sequence[tuple[float, float]]
    intervals: Sequence[tuple[float, float]] = ()
    connected: bool = False
    names: Sequence[str] = ()


@dataclass
class Plot:
    """A plot with logarithmic axes; `rows` are names on the y axis in place of numbers."""

    title: str
    x_label: str
    y_label: str = ""
    series: list[Series] = field(default_factory=list)
    rows: Sequence[str] = ()
    upright: float | None = None
    width: int = 760
    height: int = 420

    def svg(self) -> str:
        """The text of the SVG file."""
        text: str = _template().render(drawn=_Drawn(self))
        return text + "\n"


@cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader

    folder = Path(__file__).with_name("templates")
    return Environment(
        loader=FileSystemLoader(folder), autoescape=True, trim_blocks=True, lstrip_blocks=True
    ).get_template("plot.svg.j2")


class _Drawn:
    """A plot in pixels, as the template wants it."""

    def __init__(self, plot: Plot) -> None:
        self.plot = plot
        if plot.rows:
            plot.height = 120 + 22 * len(plot.rows)
        longest = max((len(row) for row in plot.rows), default=0)
        self.left = 24 + 7 * longest if plot.rows else 84
        #: where title and legend begin: names of rows leave them no room beside
        self.margin = 24 if plot.rows else self.left
        self.right, self.top, self.bottom = plot.width - 24, 62, plot.height - 52
        xs = [x for s in plot.series for x, _ in s.points] + [
            x for s in plot.series for pair in s.intervals for x in pair
        ]
        ys = [y for s in plot.series for _, y in s.points]
        xs += [] if plot.upright is None else [plot.upright]
        self._x = _span(xs)
        self._y = (0.0, 1.0) if plot.rows else _span(ys)

    def x(self, value: float) -> float:
        """Pixel of a value on the x axis."""
        low, high = self._x
        share = (math.log10(max(value, 1e-300)) - low) / (high - low)
        return round(self.left + min(max(share, 0.0), 1.0) * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        """Pixel of a value, or of a row's number, on the y axis."""
        if self.plot.rows:
            return round(self.top + 11 + 22 * value, 1)
        low, high = self._y
        share = (math.log10(max(value, 1e-300)) - low) / (high - low)
        return round(self.bottom - min(max(share, 0.0), 1.0) * (self.bottom - self.top), 1)

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        """(pixel, label) on the x axis."""
        return [(self.x(value), _shown(value)) for value in _ticks(*self._x)]

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        """(pixel, label) on the y axis."""
        if self.plot.rows:
            return [(self.y(number), name) for number, name in enumerate(self.plot.rows)]
        return [(self.y(value), _shown(value)) for value in _ticks(*self._y)]

    @property
    def upright(self) -> float | None:
        """Pixel of the line to compare with."""
        return None if self.plot.upright is None else self.x(self.plot.upright)

    @property
    def bars(self) -> list[dict[str, Any]]:
        """The intervals."""
        found = []
        for series in self.plot.series:
            colour, _, dash = STYLES[series.style]
            for (low, high), (_, y) in zip(series.intervals, series.points, strict=False):
                ends = {"low": self.x(low), "high": self.x(high), "y": self.y(y)}
                found.append({**ends, "colour": colour, "dash": dash})
        return found

    @property
    def lines(self) -> list[dict[str, str]]:
        """The connected series."""
        found = []
        for series in self.plot.series:
            if series.connected:
                colour, _, dash = STYLES[series.style]
                points = " ".join(f"{self.x(x)},{self.y(y)}" for x, y in series.points)
                found.append({"points": points, "colour": colour, "dash": dash})
        return found

    @property
    def marks(self) -> list[dict[str, Any]]:
        """Every point with a mark, and its name."""
        return [
            mark
            for series in self.plot.series
            for number, (x, y) in enumerate(series.points)
            for mark in [self._mark(series, number, self.x(x), self.y(y))]
            if mark
        ]

    def _mark(self, series: Series, number: int, x: float, y: float) -> dict[str, Any]:
        colour, shape, _ = STYLES[series.style]
        if not shape:
            return {}
        name = series.names[number] if number < len(series.names) else ""
        return {"x": x, "y": y, "colour": colour, "shape": shape, "name": name}

    @property
    def legend(self) -> list[dict[str, Any]]:
        """One entry for each series that has a label."""
        labelled = [series for series in self.plot.series if series.label]
        entries: list[dict[str, Any]] = []
        x = float(self.margin)
        for series in labelled:
            colour, shape, dash = STYLES[series.style]
            entries.append(
                {"x": x, "label": series.label, "colour": colour, "shape": shape, "dash": dash}
            )
            x += 54 + 6.6 * len(series.label)
        return entries


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Logarithms of the ends of an axis that holds the values with some room."""
    logs = [math.log10(v) for v in values if v > 0 and math.isfinite(v)] or [0.0]
    room = max(0.04 * (max(logs) - min(logs)), 0.03)
    return min(logs) - room, max(logs) + room


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between two powers of ten, so few that there is room for their labels."""
    powers = range(math.floor(low) - 1, math.ceil(high) + 1)
    for steps in ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)):
        found = [round(step * 10.0**power, 12) for power in powers for step in steps]
        inside = [value for value in found if low <= math.log10(value) <= high]
        if len(inside) >= 4:
            return inside
    if len(inside) >= 2:
        return inside
    return [float(f"{10.0 ** (low + (high - low) * share):.2g}") for share in (0.1, 0.5, 0.9)]


def _shown(value: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
