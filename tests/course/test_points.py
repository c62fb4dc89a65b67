"""Points are a pure function of the results and the rubric, and fail closed."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conformance.report
from conformance.course import Blame, Counts, Grade, Grading, Rubric, Worth, award
from conformance.course.shown import points_json_of, points_markdown, points_text
from conformance.report import Candidate, ErrorRecord, Results, judge, write_reports
from conformance.report.jsonfile import report_document
from conformance.report.model import OUTCOMES
from conformance.report.policy import PolicyRecord, PolicyUse

SCHEMA = Path(conformance.report.__file__).parent / "schema" / "report.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))


def only(*worths: Worth) -> Rubric:
    return Rubric(worths)


def test_everything_passes(passing: Results, rubric: Rubric) -> None:
    grade = award(passing, rubric)
    assert (grade.points, grade.total, grade.blame) == (25, 25, None)
    assert grade.shown == "25 of 25 points"


def test_the_typical_evening(samples: Any, rubric: Rubric) -> None:
    grade = award(samples.night(), rubric)
    assert (grade.points, grade.total, grade.blame) == (0, 25, None)
    norm, rope, glu = grade.components
    assert norm.parts[0].shown == "MUST 0 of 10 (1 of 2 requirements)"
    assert [part.shown for part in rope.parts] == [
        "MUST 0 of 8 (1 of 4 requirements)",
        "SHOULD 0 of 2 (0 of 0 requirements)",  # its only check was skipped
    ]
    assert glu.note == "not implemented: run_glu raises NotImplementedError"


def test_in_proportion_to_requirements_not_to_checks(samples: Any) -> None:
    checks = [samples.check("rope::right")]
    checks += [samples.check(f"rope::wrong{n}", outcome="failed") for n in range(5)]
    checks = [replace(c, requirement=c.requirement.rstrip("0123456789")) for c in checks]
    checks.append(samples.check("rope::other"))
    results = samples.results(checks, selected=("rope",))
    (earned,) = award(
        results, only(Worth("rope", Fraction(10), grading=Grading.PROPORTIONAL))
    ).components
    assert earned.parts[0].passed == 2
    assert earned.parts[0].total == 3
    assert earned.points == Fraction("6.66")  # two digits, rounded down


def test_a_requirement_passes_when_all_of_its_checks_do(samples: Any) -> None:
    checks = [
        samples.check("rope::a[float32]"),
        samples.check("rope::a[float16]", outcome="failed"),
    ]
    results = samples.results(checks, selected=("rope",))
    worth = Worth("rope", Fraction(10), grading=Grading.PROPORTIONAL)
    assert award(results, only(worth)).points == 0


def test_points_for_what_should_be(samples: Any) -> None:
    checks = [samples.check("rope::a", outcome="failed"), samples.check("rope::b", level="SHOULD")]
    results = samples.results(checks, selected=("rope",))
    grade = award(results, only(Worth("rope", Fraction(8), Fraction(2))))
    assert grade.points == 2
    assert [part.points for part in grade.components[0].parts] == [0, 2]


def test_bonus_and_later(samples: Any) -> None:
    names = ("rope", "glu", "rmsnorm")
    results = samples.results([samples.check(f"{n}::a") for n in names], selected=names)
    rubric = only(
        Worth("rope", Fraction(10)),
        Worth("glu", Fraction(5), counts=Counts.BONUS),
        Worth("rmsnorm", Fraction(7), counts=Counts.LATER),
    )
    grade = award(results, rubric)
    assert (grade.points, grade.total) == (15, 10)
    assert [earned.counted for earned in grade.components] == [10, 5, 0]
    text = points_text(grade)
    assert text.splitlines()[0] == "Points: 15 of 10 points"
    assert "bonus" in text
    assert "due later, not counted" in text


def test_what_is_optional_may_be_absent(samples: Any) -> None:
    results = samples.results([samples.check("rope::a")], selected=("rope",))
    for counts in (Counts.REQUIRED, Counts.BONUS):
        rubric = only(Worth("rope", Fraction(10)), Worth("glu", Fraction(5), counts=counts))
        grade = award(results, rubric)
        assert grade.blame is None
        assert grade.points == 10
        assert grade.components[1].note == "not selected, or not provided by the submission"


CASES = (
    "killed",
    "damaged",
    "deselected",
    "partial",
    "in process",
    "skipped",
    "not selected",
    "usage",
    "internal",
    "nothing at all",
)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("grading", Grading)
def test_a_run_that_proves_nothing_gives_nothing_and_says_whose_failure_it_is(
    case: str, grading: Grading, nothing: dict[str, Results], rubric: Rubric
) -> None:
    assert set(CASES) == set(nothing)
    graded = Rubric(tuple(replace(worth, grading=grading) for worth in rubric.components))
    grade = award(nothing[case], graded)
    assert (grade.points, grade.total, grade.components) == (0, 25, ())
    assert grade.blame is Blame.INFRASTRUCTURE
    assert grade.reason
    for text in (points_text(grade), points_markdown(grade)):
        assert "nfrastructure failure" in text
        assert "says nothing about the submission" in " ".join(text.split())


def test_a_run_with_failures_that_proves_nothing_either(nothing: dict[str, Results]) -> None:
    """One failed check makes the verdict non-conforming; what was left out stays left out."""
    rubric = only(
        Worth("rmsnorm", Fraction(1), grading=Grading.PROPORTIONAL), Worth("rope", Fraction(1))
    )
    for case in ("in process", "skipped", "deselected"):
        results = nothing[case]
        failed = replace(results.checks[0], id="rmsnorm::z", requirement="Z", outcome="failed")
        assert results.header is not None
        header = replace(results.header, collected=len(results.checks) + 1)
        grade = award(replace(results, header=header, checks=(*results.checks, failed)), rubric)
        assert (grade.points, grade.blame) == (0, Blame.INFRASTRUCTURE), case


def test_a_submission_that_cannot_be_loaded(rubric: Rubric) -> None:
    grade = award(Results(None, error=ErrorRecord("adapters.py: invalid syntax", 3)), rubric)
    assert (grade.points, grade.total, grade.blame) == (0, 25, Blame.CANDIDATE)
    assert points_text(grade).startswith("Points: 0 of 25 points: candidate failure")


def test_no_check_of_a_component_that_counts(samples: Any) -> None:
    checks = [samples.check("rope::a", outcome="failed"), samples.check("silu::a", level="SHOULD")]
    results = samples.results(checks, selected=("rope", "silu"))
    grade = award(results, only(Worth("rope", Fraction(1)), Worth("silu", Fraction(1))))
    assert (grade.blame, grade.reason) == (Blame.INFRASTRUCTURE, "No MUST check ran for silu.")


def test_components_that_the_submission_left_out(samples: Any) -> None:
    notices = ("its adapters module declares COMPONENTS: rope",)
    results = samples.results([samples.check("rope::a")], selected=("rope",), notices=notices)
    grade = award(results, only(Worth("rope", Fraction(1)), Worth("silu", Fraction(1))))
    assert grade.blame is Blame.INFRASTRUCTURE
    assert "silu" in grade.reason
    assert "the submission's own COMPONENTS" in grade.reason


def broken(component: str, effect: str) -> PolicyRecord:
    use = PolicyUse(component, "torch.nn.Linear", "model.py", 12, "torch.nn", "run time", effect)
    watched = {"rope": 3, "silu": 3}
    return PolicyRecord("from-scratch", "", effect, "report", watched, (use,), ())


@pytest.mark.parametrize(("effect", "points"), [("report", 2), ("zero", 1), ("fail", 1)])
def test_what_breaks_the_rules_gives_no_points(samples: Any, effect: str, points: int) -> None:
    checks = [samples.check("rope::a"), samples.check("silu::a")]
    results = samples.results(checks, selected=("rope", "silu"), policy="from-scratch")
    results = replace(results, policy=broken("rope", effect))
    grade = award(results, only(Worth("rope", Fraction(1)), Worth("silu", Fraction(1))))
    assert grade.points == points
    assert ("torch.nn.Linear in model.py:12" in grade.components[0].note) == (points == 1)


def test_what_was_never_watched_gives_no_points(samples: Any) -> None:
    checks = [
        samples.check("rope::a"),
        samples.check("silu::a"),
        samples.check("silu::b", outcome="failed"),
    ]
    results = samples.results(checks, selected=("rope", "silu"), policy="from-scratch")
    record = replace(broken("silu", "report"), observed={"silu": 2}, uses=())
    worth = Worth("rope", Fraction(4), grading=Grading.PROPORTIONAL)
    grade = award(replace(results, policy=record), only(worth, Worth("silu", Fraction(4))))
    assert grade.points == 0
    assert "not known" in grade.components[0].note


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_points_stay_within_bounds_and_need_a_pass(samples: Any, data: st.DataObject) -> None:
    grading = data.draw(st.sampled_from(list(Grading)))
    outcomes = data.draw(st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=6))
    levels = data.draw(st.lists(st.sampled_from(["MUST", "SHOULD"]), min_size=6, max_size=6))
    checks = [
        samples.check(f"rope::c{number}", outcome=outcome, level=level)
        for number, (outcome, level) in enumerate(zip(outcomes, levels, strict=False))
    ]
    results = samples.results(checks, selected=("rope",))
    worth = Worth("rope", Fraction(7), Fraction(3), grading)
    grade = award(results, only(worth))
    assert 0 <= grade.points <= grade.total == 10
    must = [c for c in checks if c.level == "MUST"]
    should = [c for c in checks if c.level == "SHOULD" and not c.skipped]
    full = bool(must) and bool(should) and all(c.passed for c in (*must, *should))
    assert (grade.points == 10) == full
    assert grade == award(
        replace(results, checks=tuple(data.draw(st.permutations(checks)))), only(worth)
    )


def test_who_is_graded_when_and_where_makes_no_difference(passing: Results, rubric: Rubric) -> None:
    assert passing.header is not None
    header = replace(passing.header, candidate=Candidate("other"), started="later", environment={})
    slower = tuple(replace(check, seconds=9.0) for check in passing.checks)
    other: Grade = award(replace(passing, header=header, checks=slower), rubric)
    assert other == award(passing, rubric)


def test_points_as_markdown_hold_no_markup_of_others(samples: Any) -> None:
    check = samples.check("rope::a", outcome="not implemented", message="a | b <b> `c` @someone")
    results = samples.results([check], selected=("rope",))
    text = points_markdown(award(results, only(Worth("rope", Fraction(1)))))
    row = text.splitlines()[-1]
    assert row.count("|") - row.count("\\|") == 5
    assert "<b>" not in text
    assert "@someone" not in text


def test_in_the_report_for_programs(
    samples: Any, passing: Results, rubric: Rubric, nothing: dict[str, Results]
) -> None:
    runs = [passing, samples.night(), *nothing.values()]
    for results in runs:
        verdict = judge(results)
        document = report_document(results, verdict, points_json_of(results, verdict, rubric))
        VALIDATOR.validate(document)
        told, grade = document["environment"]["points"], award(results, rubric)
        assert (told["points"], told["total"]) == (float(grade.points), float(grade.total))
        assert told["failure"] == (grade.blame and grade.blame.value)
    VALIDATOR.validate(report_document(passing))
    assert report_document(passing)["environment"]["points"] is None
    told = award(passing, rubric).to_json()["components"]["rope"]
    assert told["levels"]["should"] == {
        "points": 2.0,
        "possible": 2.0,
        "passed": 1,
        "requirements": 1,
    }
    assert (told["points"], told["counts"]) == (10.0, "required")


def test_the_report_is_written_with_points(samples: Any, rubric: Rubric, tmp_path: Path) -> None:
    samples.write(tmp_path / "results.jsonl", samples.night())
    write_reports(tmp_path / "results.jsonl", tmp_path, rubric=rubric, audience="student")
    document = json.loads((tmp_path / "report.json").read_text("utf-8"))
    VALIDATOR.validate(document)
    assert document["environment"]["points"]["total"] == 25
    assert document["environment"]["points"]["components"]["glu"]["note"].startswith("not impl")
