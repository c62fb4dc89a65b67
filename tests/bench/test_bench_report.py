"""bench.json keeps its schema; bench.md and the plots can be read by people and programs."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from markdown_it import MarkdownIt

from conformance.bench.honesty import Flag, Kind
from conformance.bench.plots import plots
from conformance.bench.report import duration, render, terminal_table, write_bench
from conformance.bench.results import FLAGGED, MEASURED, SCHEMA_FILE, BenchResult, Row, Sweep
from conformance.bench.scaling import Point, fill
from conformance.bench.statistics import Interval

SCHEMA = json.loads(SCHEMA_FILE.read_text("utf-8"))

QUANTILES = {"min": 1e-3, "q05": 1e-3, "q25": 1e-3, "median": 1.1e-3, "q75": 2e-3, "q95": 2e-3}


def measured(component: str, **more: Any) -> Row:
    """A row as a good run leaves it."""
    row = Row(component, "forward", "float32", MEASURED, sizes={"batch": 2}, blocks=20, calls=3)
    row.times = {"candidate": QUANTILES, "reference": QUANTILES, "fused": QUANTILES}
    row.ratios = {"reference": Interval(1.02, 0.99, 1.05), "fused": Interval(4.1, 4.0, 4.2)}
    row.reference_to_fused = Interval(4.0, 3.9, 4.1)
    row.noise = Interval(1.0, 0.98, 1.02)
    row.model = {"flops": 1e6, "matmul_flops": 0.0, "bytes": 4e6, "flops_per_byte": 0.25}
    row.model |= {"bound": "memory", "ceiling_seconds": 1e-4, "floor_seconds": 1e-5}
    row.achieved = {"flops_per_second": 1e9, "bytes_per_second": 4e9, "share_of_ceiling": 0.1}
    for name, value in more.items():
        setattr(row, name, value)
    return row


def cubic(size: float) -> tuple[float, ...]:
    return (1e-9 * size**3, 1.1e-9 * size**3)


def square(size: float) -> tuple[float, ...]:
    return (1e-9 * size**2, 1.1e-9 * size**2)


def sweep() -> Sweep:
    """Attention that holds the scores and leaves memory behind."""
    found = Sweep("scaled_dot_product_attention", "forward", "float32", "sequence")
    sizes = (512, 1024, 2048, 4096)
    fill(
        found,
        [
            Point(s, cubic(s), square(s), 40 * s * s + (1 << 20), 1e-9 * s**2, 9e8, "how")
            for s in sizes
        ],
    )
    return found


@pytest.fixture
def result() -> BenchResult:
    """A benchmark with everything in it."""
    machine = {"torch": "2", "python": "3", "platform": "Linux", "device_name": "x", "settings": []}
    machine |= {"processors": 2, "load_at_start": 0.1, "judge_python": "3"}
    header = {
        "suite_version": "0.1.0",
        "spec_version": "1",
        "candidate": {"name": "owl|<b>", "module": "adapters"},
        "command": "conformance bench owl",
        "profile": "quick",
        "device": "cpu",
        "threads": 1,
        "dtypes": ["float32"],
        "machine": machine,
        "notices": ["stood in for the missing package wandb"],
        "isolation": [],
        "started": "2026-11-30T00:00:00+00:00",
    }
    flag = Flag(Kind.WRONG, "2 of 5 calls of a timed sample gave a wrong result")
    rows = [
        measured("softmax", notes=["fused: torch has no fused operator for it"]),
        measured(
            "silu", status=FLAGGED, reason=flag.sentence, flags=[flag], ratios={}, achieved={}
        ),
        Row("rope", "forward", "float32", reason="not implemented: there is no function run_rope"),
    ]
    ceilings = [
        {"dtype": "float32", "flops_per_second": 1e11, "bytes_per_second": {"1048576": 1e10}}
    ]
    return BenchResult(
        header, rows, [sweep()], ceilings, [("CUDA", "no GPU was asked for")], True, "2026-11-30"
    )


def test_the_document_keeps_its_schema(result: BenchResult) -> None:
    document = result.to_json()
    jsonschema.validate(document, SCHEMA)
    assert json.loads(json.dumps(document, allow_nan=False)) == document


@pytest.mark.parametrize("key", ["ratios", "achieved"])
def test_the_schema_forbids_ratios_of_what_is_not_believed(result: BenchResult, key: str) -> None:
    document = result.to_json()
    document["rows"][1][key] = document["rows"][0][key]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)


def test_the_report_tells_what_is_measured_doubted_and_left_out(result: BenchResult) -> None:
    text = render(result.to_json(), ["ratios.svg", "roofline.svg"])
    assert "1.02 (0.99 to 1.05)" in text
    assert "wrong result when timed" in text
    assert "there is no function run\\_rope" in text
    assert "no GPU was asked for" in text
    assert "five passes" in text, "a ratio above 3 is explained"
    assert "grows like sequence^" in text
    assert "MiB behind that is not freed" in text
    rendered = MarkdownIt("commonmark").enable("table").render(text)
    assert rendered.count("<table>") == 3
    assert "<b>" not in rendered.replace("&lt;b&gt;", ""), "names of others are not markup"


def test_plots_are_well_formed_and_can_be_told_apart_without_colour(result: BenchResult) -> None:
    drawn = plots(result.to_json())
    assert set(drawn) == {
        "ratios.svg",
        "roofline.svg",
        "scaling-scaled_dot_product_attention.svg",
    }
    for text in drawn.values():
        root = ET.fromstring(text)
        assert root.tag.endswith("svg")
        assert "nan" not in text.lower()
    assert "<circle" in drawn["ratios.svg"]
    assert 'stroke-dasharray="6 3"' in drawn["ratios.svg"]


def test_nothing_measured_is_still_a_report(result: BenchResult, tmp_path: Path) -> None:
    result.rows, result.sweeps = result.rows[2:], []
    write_bench(result, tmp_path)
    jsonschema.validate(json.loads((tmp_path / "bench.json").read_text("utf-8")), SCHEMA)
    assert "Left out" in (tmp_path / "bench.md").read_text("utf-8")
    assert terminal_table(result.to_json()) == ""


def test_links_in_the_report_lead_to_the_plots(result: BenchResult, tmp_path: Path) -> None:
    write_bench(result, tmp_path)
    text = (tmp_path / "bench.md").read_text("utf-8")
    for path in sorted((tmp_path / "plots").iterdir()):
        assert f"(plots/{path.name})" in text


def test_findings_of_a_sweep() -> None:
    found = sweep()
    assert found.time_exponent is not None
    assert found.time_exponent.value == pytest.approx(3.0, abs=0.05)
    assert found.model_exponent == pytest.approx(2.0)
    assert len(found.findings) == 3, found.findings
    linear = Sweep("silu", "forward", "float32", "sequence")
    cached = [Point(s, cubic(s), cubic(s), 4096 * s, 1e-6 * s, 0.0, "") for s in (512, 1024, 2048)]
    fill(linear, cached)
    assert linear.findings == [], "where the reference grows as fast, nothing is said"


def test_times_have_units_that_suit_them() -> None:
    assert [duration(s) for s in (2.5, 1.5e-3, 2e-6, 3e-9)] == ["2.5 s", "1.5 ms", "2 µs", "3 ns"]
