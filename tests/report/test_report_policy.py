"""The rules of a course in verdict, score and reports."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from conformance.errors import ExitCode
from conformance.report import Results, ResultsWriter, judge, read_results, summary_text
from conformance.report.jsonfile import report_document
from conformance.report.markdown import render_markdown
from conformance.report.policy import PolicyRecord, PolicyUse
from conformance.report.verdict import Status, VerdictKind

SCHEMAS = Path(__file__).parents[2] / "conformance" / "report" / "schema"


def use(effect: str, component: str = "rmsnorm", seen: str = "run time") -> PolicyUse:
    return PolicyUse(component, "torch.rms_norm", "norm.py", 7, "torch.rms_norm", seen, effect)


def record(*uses: PolicyUse, watched: int = 3) -> PolicyRecord:
    observed = {"rmsnorm": watched, "rope": 2}
    return PolicyRecord("from-scratch", "the course", "fail", "report", observed, uses, ())


@pytest.fixture
def passing(samples: Any) -> Results:
    """A run in which all checks of two components passed."""
    checks = [samples.check(), samples.check("rope::definition[float32]")]
    results: Results = samples.results(checks, policy="from-scratch")
    return results


def test_a_use_that_fails_decides_the_verdict(passing: Results) -> None:
    verdict = judge(replace(passing, policy=record(use("fail"))))
    assert verdict.kind is VerdictKind.NON_CONFORMING
    assert verdict.exit_code is ExitCode.NOT_CONFORMING
    assert verdict.headline == (
        "The rules of from-scratch are broken in rmsnorm (torch.rms_norm in norm.py:7)."
    )
    statuses = {c.name: (c.status, c.score) for c in verdict.components}
    assert statuses == {"rmsnorm": (Status.RULES_BROKEN, 0.0), "rope": (Status.CONFORMING, 1.0)}
    assert verdict.score == 0.5


def test_zero_takes_the_points_and_leaves_the_verdict(passing: Results) -> None:
    verdict = judge(replace(passing, policy=record(use("zero"))))
    assert verdict.kind is VerdictKind.CONFORMING
    rmsnorm, rope = verdict.components
    assert (rmsnorm.status, rmsnorm.score) == (Status.CONFORMING, 0.0)
    assert rmsnorm.forfeited == "against the rules of from-scratch: torch.rms_norm in norm.py:7"
    assert (rope.score, rope.forfeited) == (1.0, "")


def test_what_is_only_reported_has_no_effect(passing: Results) -> None:
    verdict = judge(replace(passing, policy=record(use("report", seen="read"))))
    assert (verdict.kind, verdict.score) == (VerdictKind.CONFORMING, 1.0)


def test_broken_rules_stand_beside_failed_checks(passing: Results, samples: Any) -> None:
    checks = [*passing.checks[1:], samples.check(outcome="failed", message="wrong")]
    both = samples.results(checks, policy="from-scratch")
    verdict = judge(replace(both, policy=record(use("fail"))))
    assert "did not pass, in rmsnorm; the rules of from-scratch" in verdict.headline
    assert verdict.components[0].status is Status.NON_CONFORMING


def test_a_component_that_was_never_watched_proves_nothing(passing: Results) -> None:
    verdict = judge(replace(passing, policy=record(watched=0)))
    assert verdict.kind is VerdictKind.INCOMPLETE
    assert "Whether rmsnorm keeps the rules is not known" in verdict.headline


def written(samples: Any, path: Path, results: Results, *policies: PolicyRecord) -> Results:
    with ResultsWriter(path) as writer:
        assert results.header is not None
        writer.header(results.header)
        for check in results.checks:
            writer.check(check)
        for policy in policies:
            writer.policy(policy)
        writer.footer(finished="now")
    return read_results(path)


def test_the_record_is_part_of_a_whole_file(passing: Results, samples: Any, tmp_path: Path) -> None:
    found = written(samples, tmp_path / "a" / "results.jsonl", passing, record(use("fail")))
    assert found.problems == ()
    assert found.policy == record(use("fail"))
    schema = json.loads((SCHEMAS / "results.schema.json").read_text("utf-8"))
    for line in (tmp_path / "a" / "results.jsonl").read_text("utf-8").splitlines():
        jsonschema.validate(json.loads(line), schema)
    for name, policies in {"none": (), "two": (record(), record())}.items():
        odd = written(samples, tmp_path / name / "results.jsonl", passing, *policies)
        assert odd.problems
        assert judge(odd).kind is VerdictKind.INCOMPLETE


def test_a_record_without_a_policy_is_a_problem(samples: Any, tmp_path: Path) -> None:
    plain = samples.results([samples.check()])
    found = written(samples, tmp_path / "results.jsonl", plain, record())
    assert any("where the header names ''" in problem for problem in found.problems)


def test_every_report_tells_it(passing: Results) -> None:
    results = replace(passing, policy=record(use("fail"), use("report", "", "read")))
    document = report_document(results)
    schema = json.loads((SCHEMAS / "report.schema.json").read_text("utf-8"))
    jsonschema.validate(document, schema)
    assert [u["effect"] for u in document["environment"]["policy"]["uses"]] == ["fail", "report"]
    assert document["components"]["rmsnorm"]["status"] == "rules broken"
    assert report_document(replace(passing, policy=None))["environment"]["policy"] is None
    markdown = render_markdown(results)
    assert "## Rules of the course" in markdown
    assert "| `rmsnorm` | `torch.rms_norm` | `norm.py:7` | it ran | non-conforming |" in markdown
    assert "in the source, not seen to run" in markdown
    text = summary_text(results)
    assert "Rules of from-scratch: broken by 1 use (1 use only reported, see the report)." in text
    assert "  rmsnorm: torch.rms_norm in norm.py:7, non-conforming" in text
    kept = summary_text(replace(passing, policy=record()))
    assert "Rules of from-scratch: nothing forbidden was seen in 2 components." in kept
    assert "Rules of" not in summary_text(replace(passing, policy=None))
