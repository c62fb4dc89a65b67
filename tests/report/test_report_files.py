"""report.json, the summary, and the writing of both reports."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conformance.report
from conformance.errors import UsageError
from conformance.report import (
    Details,
    ErrorRecord,
    Results,
    judge,
    read_results,
    summary_text,
    write_reports,
)
from conformance.report.jsonfile import report_document, report_json
from conformance.report.markdown import render_markdown

SCHEMA = json.loads(
    (Path(conformance.report.__file__).parent / "schema" / "report.schema.json").read_text()
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
TOP = [
    "schema",
    "suite_version",
    "candidate",
    "verdict",
    "score",
    "components",
    "checks",
    "environment",
]


def runs(samples: Any) -> dict[str, Results]:
    night = samples.night()
    passing = samples.results([samples.check(), samples.check("rope::definition[float32]")])
    return {
        "conforming": passing,
        "non-conforming": night,
        "incomplete": replace(night, footer=None),
        "error": Results(None, error=ErrorRecord("no such file", 3)),
    }


def test_report_has_the_fixed_shape(samples: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for kind, results in runs(samples).items():
        document = report_document(results)
        VALIDATOR.validate(document)
        assert list(document) == TOP
        assert document["verdict"] == kind
    VALIDATOR.validate(report_document(Results(None, problems=("line 1: cut off",))))


def test_schema_forbids_keys_it_does_not_know(samples: Any) -> None:
    for path in ((), ("candidate",), ("components", "rope"), ("checks", 0), ("environment",)):
        document = report_document(samples.night())
        place: Any = document
        for step in path:
            place = place[step]
        place["surprise"] = 1
        assert not VALIDATOR.is_valid(document)


def test_report_says_what_happened(samples: Any) -> None:
    document = report_document(samples.night())
    assert document["components"]["rope"] == {
        "status": "non-conforming",
        "passed": 1,
        "failed": 0,
        "not_implemented": 0,
        "errors": 3,
    }
    checks = {check["id"]: check for check in document["checks"]}
    assert list(checks) == sorted(checks)
    assert checks["rmsnorm::eps_inside_root[float32]"]["diagnosis"]["fault"] == "eps-outside-root"
    assert document["environment"]["command"] == "pytest --impl=."
    assert document["environment"]["exit_code"] == 1


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_numbers_that_json_cannot_write_become_null(samples: Any, value: float) -> None:
    check = samples.check(margin=value, outcome="failed")
    text = report_json(samples.results([check], environment={"load": [value]}))
    document = json.loads(text, parse_constant=pytest.fail)
    VALIDATOR.validate(document)
    assert document["checks"][0]["margin"] is None
    assert document["environment"]["machine"] == {"load": [None]}


def test_reports_come_from_the_results_file_alone(samples: Any, tmp_path: Path) -> None:
    samples.write(tmp_path / "results.jsonl", samples.night())
    first = write_reports(tmp_path / "results.jsonl", tmp_path / "a")
    again = write_reports(tmp_path / "results.jsonl", tmp_path / "b")
    assert first == again == judge(samples.night())
    for name in ("report.json", "report.md"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["report.json", "report.md"]


def test_reports_of_a_broken_file_are_written_and_say_so(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_bytes(b'{"kind": "hea')
    verdict = write_reports(tmp_path / "results.jsonl", tmp_path)
    assert (verdict.kind, verdict.exit_code) == ("incomplete", 4)
    assert json.loads((tmp_path / "report.json").read_text())["verdict"] == "incomplete"
    assert "Incomplete" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_written(samples: Any, tmp_path: Path) -> None:
    samples.write(tmp_path / "results.jsonl", samples.night())
    with pytest.raises(UsageError, match="cannot write the report"):
        write_reports(tmp_path / "results.jsonl", tmp_path / "results.jsonl" / "below")


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_order_of_checks_never_matters(samples: Any, data: st.DataObject) -> None:
    night = samples.night()
    shuffled = replace(night, checks=tuple(data.draw(st.permutations(night.checks))))
    assert judge(shuffled) == judge(night)
    for render in (report_json, render_markdown, summary_text):
        assert render(shuffled) == render(night)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_order_does_not_matter_where_an_id_comes_twice_either(
    samples: Any, data: st.DataObject
) -> None:
    twice = [samples.check(outcome=outcome) for outcome in ("passed", "failed", "raised")]
    results = replace(samples.results(twice), problems=("an id comes twice",))
    shuffled = replace(results, checks=tuple(data.draw(st.permutations(twice))))
    assert report_json(shuffled) == report_json(results)
    assert render_markdown(shuffled) == render_markdown(results)


def test_times_stand_in_few_places(samples: Any) -> None:
    night = samples.night()
    later = replace(
        night,
        header=replace(night.header, started="LATER"),
        footer=replace(night.footer, finished="LATEST"),
        checks=tuple(replace(check, seconds=9.0) for check in night.checks),
    )
    changed = [
        (old, new)
        for old, new in zip(
            render_markdown(night).splitlines(), render_markdown(later).splitlines(), strict=True
        )
        if old != new
    ]
    assert len(changed) == 1
    assert changed[0][1].startswith("| time |")


def test_summary_says_what_matters(samples: Any) -> None:
    text = summary_text(samples.night(), folder=Path("reports/night-owl"))
    lines = text.splitlines()
    assert lines[0] == "Verdict: NON-CONFORMING, score 0.22 (night-owl)"
    assert lines[1].startswith("5 of 9 MUST checks did not pass, in rmsnorm and rope")
    assert "RMSNORM-EPS rmsnorm::eps_inside_root[float32] (and 1 more)" in text
    assert "rmsnorm: eps is added after the root, not before." in text
    assert "raised: ValueError: not enough values to unpack" in text
    assert "pytest --impl=. -k 'rmsnorm and eps_inside_root and float32'" in text
    assert lines[-1] == f"Report: {Path('reports/night-owl/report.md')}"


def test_summary_names_the_first_failures_and_counts_the_rest(samples: Any) -> None:
    checks = [samples.check(f"rope::c{number}", outcome="failed") for number in range(9)]
    text = summary_text(samples.results(checks), width=60)
    assert text.count("rope::c") == 5
    assert "and 4 more failed checks" in text


def test_summary_names_the_first_failure_of_each_component(samples: Any) -> None:
    names = [f"part{number}" for number in range(20)]
    ids = [f"{name}::c{number}" for name in names[:7] for number in range(3)]
    checks = [samples.check(id, outcome="failed") for id in ids]
    text = summary_text(samples.results(checks, selected=tuple(names)))
    for name in names[:7]:
        assert text.count(f"{name}::c0") == 1
    assert "::c1" not in text
    assert "and 14 more failed checks" in text
    checks = [samples.check(f"{name}::c0", outcome="failed") for name in names]
    text = summary_text(samples.results(checks, selected=tuple(names)))
    assert "and 8 more failed checks" in text


def test_summary_names_unmet_shoulds_in_one_line(samples: Any) -> None:
    checks = [samples.check(), samples.check("rope::c")]
    shoulds = [
        samples.check(f"rope::advice{number}", level="SHOULD", outcome="failed")
        for number in range(9)
    ]
    text = summary_text(samples.results([*checks, *shoulds]), width=90)
    (found,) = [row for row in text.splitlines() if "SHOULDs" in row]
    assert found == "Unmet SHOULDs, which do not count (9): ROPE-ADVICE0, ROPE-ADVICE1 and 7 more"
    assert "SHOULDs" not in summary_text(samples.results([*checks, *shoulds], level="should"))
    assert "SHOULDs" not in summary_text(samples.results(checks))


def test_summary_of_a_part_that_passes(samples: Any) -> None:
    def text(checks: list[Any], **fields: Any) -> str:
        results = samples.results(checks, complete_selection=False, deselected=3, **fields)
        return summary_text(results)

    one, two = samples.check(), samples.check("rope::c")
    assert "This check passes now; for a verdict run the whole, without --check, -k" in text([one])
    assert "These checks pass now; for a verdict run the whole, without --check, -k" in text(
        [one, two]
    )
    assert "pass now" not in text([one, replace(two, outcome="failed")])
    assert "pass now" not in text([one, replace(two, outcome="failed", level="SHOULD")])
    assert "passes now" not in text([one], isolation=("none: the judge's own process",))
    assert "pass now" not in summary_text(samples.results([one, two]))


def test_the_stored_input_of_a_check(samples: Any) -> None:
    details = Details(counterexample="out/a.safetensors", counterexample_replay="conformance r")
    noted = Details(counterexample_note="not stored: the input has more than 9 numbers")
    checks = [
        samples.check("rope::a", outcome="failed", details=details),
        samples.check("rope::b", outcome="failed", details=noted, requirement="ROPE-OTHER"),
        samples.check("rope::c"),
    ]
    results = samples.results(checks)
    document = report_document(results)
    VALIDATOR.validate(document)
    empty = dict.fromkeys(("file", "command", "note"))
    assert [check["counterexample"] for check in document["checks"]] == [
        {**empty, "file": "out/a.safetensors", "command": "conformance r"},
        {**empty, "note": "not stored: the input has more than 9 numbers"},
        None,
    ]
    text = render_markdown(results)
    assert "This input lies in `out/a.safetensors`. To ask it alone:" in text
    assert "```sh\nconformance r\n```" in text
    assert "This input as a file: not stored: the input has more than 9 numbers." in text


def test_summary_of_every_verdict(samples: Any) -> None:
    for kind, results in runs(samples).items():
        assert summary_text(results).startswith(f"Verdict: {kind.upper()}")
    assert "no such file" in summary_text(runs(samples)["error"])


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "utf-8", None, "no-such-codec"])
def test_summary_fits_the_stream(samples: Any, encoding: str | None) -> None:
    check = samples.check(
        outcome="failed", message="\ud800 → \x1b[31mred\x1b[0m \u202e…", margin=float("inf")
    )
    text = summary_text(samples.results([check]), encoding=encoding)
    known = encoding if encoding not in (None, "no-such-codec") else "ascii"
    text.encode(known)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_long_lines_are_cut_to_the_width(samples: Any) -> None:
    check = samples.check("rope::" + "x" * 300, outcome="failed", message="y" * 300)
    text = summary_text(samples.results([check]), width=80)
    assert max(len(line) for line in text.splitlines()) <= 80


def test_summary_reads_back_what_was_written(samples: Any, tmp_path: Path) -> None:
    samples.write(tmp_path / "results.jsonl", samples.night())
    assert summary_text(read_results(tmp_path / "results.jsonl")) == summary_text(samples.night())
