"""Which plots are drawn, from the document of bench.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.bench.results import MEASURED
from conformance.bench.svg import STYLES, Plot, Series

Document = Mapping[str, Any]


def plots(document: Document) -> dict[str, str]:
    """File name -> text of every plot there is something to draw for."""
    found = {"ratios.svg": _ratios(document), "roofline.svg": _roofline(document)}
    for component in dict.fromkeys(sweep["component"] for sweep in document["scaling"]):
        found[f"scaling-{component}.svg"] = _scaling(document, component)
    return {name: plot.svg() for name, plot in found.items() if plot is not None}


def _measured(document: Document) -> list[Mapping[str, Any]]:
    return [row for row in document["rows"] if row["status"] == MEASURED]


def _ratios(document: Document) -> Plot | None:
    """For every row the ratios with their intervals, and the line at 1."""
    rows = [row for row in _measured(document) if row["ratios"]]
    if not rows:
        return None
    kinds = (("reference", "over reference_impl", "first"), ("fused", "over torch fused", "second"))
    plot = Plot(
        f"Time of {document['candidate']['name']} over that of others",
        "ratio with 95 % interval; left of 1: faster",
        rows=[row["id"] for row in rows],
        upright=1.0,
    )
    for offset, (who, label, style) in zip((-0.2, 0.2), kinds, strict=True):
        shown = [(n, row["ratios"][who]) for n, row in enumerate(rows) if who in row["ratios"]]
        plot.series.append(
            Series(
                label,
                style,
                [(ratio["value"], number + offset) for number, ratio in shown],
                [(ratio["low"], ratio["high"]) for _, ratio in shown],
            )
        )
    return plot


def _roofline(document: Document) -> Plot | None:
    """Operations per second over operations per byte, under what the machine reaches."""
    rows = [row for row in _measured(document) if row["achieved"] and row["model"]["flops"]]
    if not rows or not document["ceilings"]:
        return None
    ceiling = document["ceilings"][0]
    rates = [rate for rate in ceiling["bytes_per_second"].values() if rate]
    points = [(r["model"]["flops_per_byte"], r["achieved"]["flops_per_second"]) for r in rows]
    lowest = min(x for x, _ in points) / 2
    highest = max(*(x for x, _ in points), ceiling["flops_per_second"] / min(rates)) * 2
    plot = Plot(
        f"What the machine could do ({ceiling['dtype']}, {document['threads']} thread(s))",
        "operations per byte moved at least",
        "operations per second",
        height=560,
    )
    for rate, style, label in (
        (max(rates), "line", "ceiling in cache"),
        (min(rates), "third", "ceiling from memory"),
    ):
        corners = (lowest, ceiling["flops_per_second"] / rate, highest)
        roof = [(x, min(x * rate, ceiling["flops_per_second"])) for x in sorted(corners)]
        plot.series.append(Series(label, style, roof, connected=True))
    numbers = [str(number) for number, _ in enumerate(rows, 1)]
    plot.series.append(Series("rows, by number in the table", "first", points, names=numbers))
    return plot


def _scaling(document: Document, component: str) -> Plot | None:
    """Time along every axis, relative to the first point, beside the model."""
    sweeps = [s for s in document["scaling"] if s["component"] == component and s["seconds"]]
    if not sweeps:
        return None
    plot = Plot(
        f"{component}: growth of time along each size",
        "size, relative to the smallest",
        "time, relative to the smallest size",
    )
    measured: list[Series] = []
    modelled: list[Series] = []
    for sweep, style in zip(sweeps, STYLES, strict=False):
        relative = [size / sweep["sizes"][0] for size in sweep["sizes"]]
        times = _over_first(relative, sweep["seconds"])
        measured.append(Series(sweep["axis"], style, times, connected=True))
        model = _over_first(relative, sweep["model_seconds"])
        label = "" if modelled else "the model of each"
        modelled.append(Series(label, "line", model, connected=True))
    plot.series = [*measured, *modelled]
    return plot


def _over_first(sizes: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    return [(size, value / values[0]) for size, value in zip(sizes, values, strict=True)]
