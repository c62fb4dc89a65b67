"""The results of a benchmark and how they stand in bench.json."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.bench.honesty import Flag
from conformance.bench.statistics import Interval
from conformance.errors import UsageError

BENCH_SCHEMA = "transformer-conformance/bench/1"
SCHEMA_FILE = Path(__file__).with_name("schema") / "bench.schema.json"
JSON_NAME, MARKDOWN_NAME = "bench.json", "bench.md"

MEASURED, FLAGGED, ABSENT = "measured", "flagged", "absent"


@dataclass
class Row:
    """One component in one pass and format: measured, flagged, or absent with the reason."""

    component: str
    which: str
    dtype: str
    status: str = ABSENT
    reason: str = ""
    mode: str = "eager"
    sizes: Mapping[str, int] = field(default_factory=dict)
    flags: list[Flag] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    blocks: int = 0
    calls: int = 0
    count: int = 0
    seconds: float = 0.0
    times: dict[str, dict[str, float]] = field(default_factory=dict)
    ratios: dict[str, Interval] = field(default_factory=dict)
    #: ratio of reference to fused, which is no candidate's affair
    reference_to_fused: Interval | None = None
    noise: Interval | None = None
    judge_seconds: float | None = None
    model: dict[str, Any] = field(default_factory=dict)
    achieved: dict[str, float] = field(default_factory=dict)
    screened: int = 0
    verified: int = 0
    #: for pytest-benchmark, not in bench.json: seconds of one call of every sample
    data: list[float] = field(default_factory=list)

    @property
    def id(self) -> str:
        """rmsnorm::forward[float32]"""
        mode = "" if self.mode == "eager" else f",{self.mode}"
        return f"{self.component}::{self.which}[{self.dtype}{mode}]"

    def to_json(self) -> dict[str, Any]:
        """As in bench.json."""
        return {
            "id": self.id,
            "component": self.component,
            "pass": self.which,
            "dtype": self.dtype,
            "mode": self.mode,
            "status": self.status,
            "reason": self.reason,
            "flags": [{"kind": str(f.kind), "sentence": f.sentence} for f in self.flags],
            "notes": self.notes,
            "sizes": dict(self.sizes),
            "blocks": self.blocks,
            "calls_per_sample": self.calls,
            "inputs_per_sample": self.count,
            "seconds": self.seconds,
            "times": self.times,
            "ratios": {who: interval.to_json() for who, interval in self.ratios.items()},
            "reference_to_fused": _interval(self.reference_to_fused),
            "noise": _interval(self.noise),
            "judge_seconds_per_call": self.judge_seconds,
            "model": self.model,
            "achieved": self.achieved,
            "screened_samples": self.screened,
            "verified_outputs": self.verified,
        }


@dataclass
class Sweep:
    """How time and memory of one component grow along one size."""

    component: str
    which: str
    dtype: str
    axis: str
    sizes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    model_seconds: list[float] = field(default_factory=list)
    time_exponent: Interval | None = None
    reference_exponent: Interval | None = None
    model_exponent: float | None = None
    memory_exponent: Interval | None = None
    kept_bytes: float = 0.0
    memory_how: str = ""
    findings: list[str] = field(default_factory=list)
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """As in bench.json."""
        return {
            "component": self.component,
            "pass": self.which,
            "dtype": self.dtype,
            "axis": self.axis,
            "sizes": self.sizes,
            "seconds": self.seconds,
            "peak_bytes": self.peaks,
            "model_seconds": self.model_seconds,
            "time_exponent": _interval(self.time_exponent),
            "reference_exponent": _interval(self.reference_exponent),
            "model_exponent": self.model_exponent,
            "memory_exponent": _interval(self.memory_exponent),
            "kept_bytes_per_call": self.kept_bytes,
            "memory_how": self.memory_how,
            "findings": self.findings,
            "reason": self.reason,
        }


def _interval(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else interval.to_json()


@dataclass
class BenchResult:
    """A whole benchmark."""

    header: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    sweeps: list[Sweep] = field(default_factory=list)
    ceilings: list[dict[str, Any]] = field(default_factory=list)
    absent: list[tuple[str, str]] = field(default_factory=list)
    complete: bool = False
    finished: str = ""

    @property
    def flagged(self) -> list[Row]:
        """Rows that are not believed."""
        return [row for row in self.rows if row.status == FLAGGED]

    def to_json(self) -> dict[str, Any]:
        """The document of bench.json."""
        document = {
            "schema": BENCH_SCHEMA,
            **self.header,
            "complete": self.complete,
            "finished": self.finished,
            "ceilings": self.ceilings,
            "rows": [row.to_json() for row in self.rows],
            "scaling": [sweep.to_json() for sweep in self.sweeps],
            "absent": [{"what": what, "reason": reason} for what, reason in self.absent],
        }
        cleaned: dict[str, Any] = finite(document)
        return cleaned


def finite(value: Any) -> Any:
    """The value with null in the place of numbers that JSON cannot write, others to 7 digits."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value


def bench_json(result: BenchResult) -> str:
    """The text of bench.json."""
    return json.dumps(result.to_json(), indent=1, allow_nan=False) + "\n"


def read_json(path: Path) -> dict[str, Any]:
    """A JSON document of ours; UsageError when it is none."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"{path} is not JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("schema"), str):
        raise UsageError(f"{path} is neither a bench.json nor a report.json of this suite")
    return found
