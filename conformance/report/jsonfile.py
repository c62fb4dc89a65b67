"""`report.json`: the fixed shape that other programs rely on (`schema/report.schema.json`).

The keys at the top never change within one schema version.  Checks are sorted by id, so the order
in which they ran makes no difference.  JSON has no infinity and no NaN: here such a number becomes
null, so that a reader needs to handle numbers and null only (`results.jsonl` keeps which it was).
Times are in `checks[].seconds`, `environment.started` and `environment.finished`, nowhere else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from conformance.report.model import Candidate, CheckRecord, Details, Header, Results
from conformance.report.verdict import ComponentResult, Verdict, judge

REPORT_SCHEMA = "transformer-conformance/report/1"


def report_json(
    results: Results, verdict: Verdict | None = None, points: Mapping[str, Any] | None = None
) -> str:
    """The text of `report.json`, the same bytes for the same results in any order."""
    document = report_document(results, verdict, points)
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def report_document(
    results: Results, verdict: Verdict | None = None, points: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The report as plain JSON values; `points` are those that a rubric gives."""
    verdict = verdict or judge(results)
    header = results.header
    return {
        "schema": REPORT_SCHEMA,
        "suite_version": header.suite_version if header else "",
        "candidate": (header.candidate if header else Candidate()).to_json(),
        "verdict": verdict.kind.value,
        "score": round(verdict.score, 6),
        "components": {c.name: _component(c) for c in verdict.components},
        "checks": [_check(check) for check in results.ordered()],
        "environment": {**_environment(results, verdict), "points": points},
    }


def _component(component: ComponentResult) -> dict[str, Any]:
    return {
        "status": component.status.value,
        "passed": component.passed,
        "failed": component.failed,
        "not_implemented": component.not_implemented,
        "errors": component.errors,
    }


def _check(check: CheckRecord) -> dict[str, Any]:
    return {
        "id": check.id,
        "component": check.component,
        "requirement": check.requirement,
        "level": check.level,
        "outcome": str(check.outcome),
        "message": check.message,
        "diagnosis": check.diagnosis.to_json() if check.diagnosis else None,
        "counterexample": _counterexample(check.details),
        "margin": _finite(check.margin),
        "seconds": check.seconds,
    }


def _counterexample(details: Details | None) -> dict[str, Any] | None:
    if details is None:
        return None
    found = {
        "file": details.counterexample,
        "command": details.counterexample_replay,
        "note": details.counterexample_note,
    }
    return found if any(found.values()) else None


def _environment(results: Results, verdict: Verdict) -> dict[str, Any]:
    """How the run was made and what the verdict rests on; null where there is no header."""
    header, footer = results.header, results.footer
    return {
        "exit_code": verdict.exit_code.value,
        "headline": verdict.headline,
        "reasons": [*verdict.reasons, *([verdict.error] if verdict.error else [])],
        **_settings(header),
        "policy": results.policy.plain() if results.policy else None,
        "machine": _finite(header.environment if header else {}),
        "started": header.started if header else None,
        "finished": footer.finished if footer else None,
    }


def _settings(header: Header | None) -> dict[str, Any]:
    names = (
        "spec_version",
        "fixtures_sha256",
        "command",
        "seed",
        "profile",
        "level",
        "dtypes",
        "device",
        "selected",
        "complete_selection",
        "deselected",
        "collected",
        "isolation",
        "notices",
    )
    values = header.to_json() if header else {}
    return {name: values.get(name) for name in names}


def _finite(value: Any) -> Any:
    """The value with null in the place of every float that JSON cannot write."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
