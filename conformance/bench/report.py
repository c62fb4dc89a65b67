"""bench.md: the results for people, made from the document of bench.json and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from conformance.bench.plots import plots
from conformance.bench.results import (
    ABSENT,
    FLAGGED,
    JSON_NAME,
    MARKDOWN_NAME,
    MEASURED,
    BenchResult,
    bench_json,
)
from conformance.bench.workload import workload
from conformance.report.files import write_text
from conformance.report.text import cell_code, code, fence, prose

PLOTS = "plots"
EXPLAINED = 3.0
"""A ratio of the reference to fused operators above this is explained."""


def write_bench(result: BenchResult, folder: Path) -> None:
    """Write bench.json, bench.md and the plots. UsageError when the folder cannot be written."""
    document = result.to_json()
    drawn = plots(document)
    write_text(folder / JSON_NAME, bench_json(result))
    for name, text in drawn.items():
        write_text(folder / PLOTS / name, text)
    write_text(folder / MARKDOWN_NAME, render(document, list(drawn)))


def render(document: Mapping[str, Any], drawn: Sequence[str] = ()) -> str:
    """The Markdown of a bench.json."""
    rows = document["rows"]
    values = {
        "document": document,
        "measured": [_row(row, n) for n, row in enumerate(_of(rows, MEASURED), 1)],
        "flagged": _of(rows, FLAGGED),
        "left_out": _left_out(rows),
        "notes": [(row["id"], note) for row in rows for note in row["notes"]],
        "ceilings": [_ceiling(one) for one in document["ceilings"]],
        "sweeps": [_sweep(one) for one in document["scaling"]],
        "findings": [(s["component"], text) for s in document["scaling"] for text in s["findings"]],
        "explained": explained(rows),
        "plots": list(drawn),
        "folder": PLOTS,
    }
    text: str = _template().render(values)
    return text.rstrip("\n") + "\n"


@cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=False,  # every text of others goes through one of the filters
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(prose=prose, code=code, cell=cell_code, fence=fence)
    return environment.get_template("bench.md.j2")


def _of(rows: Sequence[Mapping[str, Any]], status: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["status"] == status]


def _row(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    times = row["times"]["candidate"]
    return {
        "number": number,
        "id": row["id"],
        "time": duration(times["median"]),
        "quantiles": f"{duration(times['q05'])} to {duration(times['q95'])}",
        "reference": shown_ratio(row["ratios"].get("reference")),
        "fused": shown_ratio(row["ratios"].get("fused")),
        "noise": _percent(row["noise"]),
        "flops": _rate(row["achieved"].get("flops_per_second"), "FLOP/s"),
        "bytes": _rate(row["achieved"].get("bytes_per_second"), "B/s"),
        "share": _share(row),
        "blocks": row["blocks"],
    }


def _share(row: Mapping[str, Any]) -> str:
    share = row["achieved"].get("share_of_ceiling", 0.0)
    return f"{100 * share:.0f} % of {row['model']['bound']}"


def _left_out(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(row["id"], row["reason"]) for row in _of(rows, ABSENT)]


def _ceiling(one: Mapping[str, Any]) -> str:
    rates = ", ".join(
        f"{_rate(rate, 'B/s')} at {int(size) / 2**20:g} MiB"
        for size, rate in one["bytes_per_second"].items()
    )
    return f"{one['dtype']}: {_rate(one['flops_per_second'], 'FLOP/s')}; copies: {rates}"


def _sweep(one: Mapping[str, Any]) -> dict[str, str]:
    sizes = one["sizes"]
    return {
        "name": one["component"],
        "axis": one["axis"],
        "range": f"{sizes[0]} to {sizes[-1]}" if sizes else "",
        "time": _exponent(one["time_exponent"]),
        "reference": _exponent(one["reference_exponent"]),
        "model": "" if one["model_exponent"] is None else f"{one['model_exponent']:.2f}",
        "memory": _exponent(one["memory_exponent"]) or "below what can be seen",
        "peak": f"{max(one['peak_bytes'], default=0) / 2**20:.1f} MiB",
        "reason": one["reason"],
    }


def explained(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """(row, ratio, why) where the reference takes more than three times what is fused."""
    found = []
    for row in rows:
        ratio = row["reference_to_fused"]
        if ratio is not None and ratio["value"] > EXPLAINED:
            why = workload(row["component"]).note or "not explained yet"
            found.append((row["id"], shown_ratio(ratio), why))
    return found


def shown_ratio(ratio: Mapping[str, float] | None) -> str:
    """1.23 (1.20 to 1.26)"""
    if ratio is None:
        return ""
    value, low, high = ratio["value"], ratio["low"], ratio["high"]
    return f"{_short(value)} ({_short(low)} to {_short(high)})"


def _short(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "?"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _percent(noise: Mapping[str, float] | None) -> str:
    if noise is None:
        return ""
    return f"{100 * (noise['low'] - 1):+.1f} to {100 * (noise['high'] - 1):+.1f} %"


def _exponent(found: Mapping[str, float] | None) -> str:
    return shown_ratio(found) if found is not None and found["value"] is not None else ""


def duration(seconds: float) -> str:
    """Seconds with a unit that suits them."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _rate(value: float | None, unit: str) -> str:
    if not value:
        return ""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def terminal_table(document: Mapping[str, Any]) -> str:
    """The rows for the terminal."""
    from tabulate import tabulate  # type: ignore[import-untyped]  # it has no annotations

    shown = [_row(row, n) for n, row in enumerate(_of(document["rows"], MEASURED), 1)]
    columns = ("id", "time", "reference", "fused", "share", "blocks")
    heads = ("row", "time", "over reference_impl", "over torch fused", "of the ceiling", "blocks")
    table = [[row[column] for column in columns] for row in shown]
    return str(tabulate(table, headers=heads, disable_numparse=True)) if table else ""
