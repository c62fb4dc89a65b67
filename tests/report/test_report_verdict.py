"""The rules of the verdict, one by one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.candidate.messages import Outcome
from conformance.errors import ExitCode
from conformance.report import ErrorRecord, Results, Verdict, judge
from conformance.report.figures import shown_margin, shown_score
from conformance.report.model import LEVELS
from conformance.report.verdict import Status, VerdictKind

BAD = [o for o in Outcome if o not in (Outcome.PASSED, Outcome.SKIPPED)]


@pytest.fixture
def passing(samples: Any) -> list[Any]:
    """Each selected component passes one MUST check."""
    return [samples.check(), samples.check("rope::definition[float32]")]


def status(verdict: Verdict) -> dict[str, str]:
    return {component.name: component.status.value for component in verdict.components}


def test_conforming(samples: Any, passing: list[Any]) -> None:
    verdict = judge(samples.results(passing))
    assert verdict.kind is VerdictKind.CONFORMING
    assert verdict.exit_code is ExitCode.CONFORMING
    assert verdict.headline == (
        "2 of 2 MUST checks of 2 components passed, in float32 and bfloat16 only."
    )
    assert (verdict.score, verdict.whole, verdict.reasons) == (1.0, True, ())
    assert set(status(verdict).values()) == {"conforming"}


@pytest.mark.parametrize("outcome", BAD)
def test_a_must_check_that_does_not_pass(samples: Any, passing: list[Any], outcome: str) -> None:
    bad = samples.check("rope::other[float32]", outcome=outcome)
    verdict = judge(samples.results([*passing, bad]))
    assert verdict.kind is VerdictKind.NON_CONFORMING
    assert verdict.exit_code == 1
    assert status(verdict) == {"rmsnorm": "conforming", "rope": "non-conforming"}
    assert "rope" in verdict.headline
    assert verdict.score == 0.75


@pytest.mark.parametrize("outcome", BAD)
@pytest.mark.parametrize("level", ["must", "should", "may"])
@pytest.mark.parametrize("of_check", ["SHOULD", "MAY"])
def test_which_levels_count(
    samples: Any, passing: list[Any], outcome: str, level: str, of_check: str
) -> None:
    bad = samples.check("rope::other[float32]", outcome=outcome, level=of_check)
    verdict = judge(samples.results([*passing, bad], level=level))
    counts = of_check == "SHOULD" and level != "must"
    assert verdict.kind == ("non-conforming" if counts else "conforming")
    assert status(verdict)["rope"] == ("non-conforming" if counts else "conforming")


def test_a_component_that_is_not_implemented(samples: Any, passing: list[Any]) -> None:
    absent = [
        samples.check("rope::definition[float32]", outcome="not implemented"),
        samples.check("rope::other[float32]", outcome="not implemented", level="SHOULD"),
        samples.check("rope::cuda[float32]", outcome="skipped", level="MAY"),
    ]
    verdict = judge(samples.results([passing[0], *absent]))
    assert (verdict.kind, verdict.exit_code) == ("non-conforming", 1)
    assert status(verdict)["rope"] == "not implemented"
    assert verdict.headline == "Not implemented: rope."
    assert verdict.score == 0.5


def test_a_component_of_which_a_part_is_missing(samples: Any, passing: list[Any]) -> None:
    part = samples.check("rope::module[float32]", outcome="not implemented")
    verdict = judge(samples.results([*passing, part]))
    assert (verdict.kind, status(verdict)["rope"]) == ("non-conforming", "non-conforming")
    assert verdict.headline == "Partly not implemented: rope."


def test_a_skipped_must_check_is_not_a_pass(samples: Any, passing: list[Any]) -> None:
    skipped = samples.check("rope::other[float32]", outcome="skipped")
    verdict = judge(samples.results([*passing, skipped]))
    assert (verdict.kind, verdict.exit_code) == ("incomplete", 4)
    assert "skipped" in verdict.headline
    assert status(verdict)["rope"] == "incomplete"
    assert verdict.score == 0.75


@pytest.mark.parametrize(("level", "kind"), [("must", "conforming"), ("should", "incomplete")])
def test_a_skipped_should_check(samples: Any, passing: list[Any], level: str, kind: str) -> None:
    skipped = samples.check("rope::other[float32]", outcome="skipped", level="SHOULD")
    verdict = judge(samples.results([*passing, skipped], level=level))
    assert (verdict.kind, verdict.score) == (kind, 1.0)


@pytest.mark.parametrize("level", [None, "SHOULD", "MAY"])
def test_a_selected_component_without_a_must_check(
    samples: Any, passing: list[Any], level: str | None
) -> None:
    more = [samples.check("rope::other[float32]", level=level)] if level else []
    verdict = judge(samples.results([passing[0], *more]))
    assert (verdict.kind, verdict.exit_code) == ("incomplete", 4)
    assert verdict.headline == "No MUST check ran for rope."
    assert status(verdict) == {"rmsnorm": "conforming", "rope": "incomplete"}
    assert verdict.score == 0.5


def test_nothing_selected_is_not_a_pass(samples: Any) -> None:
    verdict = judge(samples.results([], selected=()))
    assert (verdict.kind, verdict.score) == ("incomplete", 0.0)
    assert verdict.headline == "No component was selected."


def test_partial_selection_that_passes(samples: Any, passing: list[Any]) -> None:
    verdict = judge(samples.results(passing, deselected=3, complete_selection=False))
    assert (verdict.kind, verdict.exit_code, verdict.score) == ("incomplete", 4, 0.0)
    assert verdict.headline == "3 of 5 checks were deselected; the ones that ran passed."
    assert set(status(verdict).values()) == {"incomplete"}


def test_partial_selection_by_path(samples: Any, passing: list[Any]) -> None:
    verdict = judge(samples.results(passing[:1], complete_selection=False))
    assert verdict.kind is VerdictKind.INCOMPLETE
    assert verdict.headline == "Only a part of the checks was selected; the ones that ran passed."
    assert verdict.reasons == ("No MUST check ran for rope.",)


def test_deselected_checks_count_even_if_the_header_claims_to_be_complete(
    samples: Any, passing: list[Any]
) -> None:
    assert judge(samples.results(passing, deselected=1)).kind is VerdictKind.INCOMPLETE


def test_partial_selection_of_nothing(samples: Any) -> None:
    verdict = judge(samples.results([], deselected=5, complete_selection=False))
    assert verdict.headline == "5 of 5 checks were deselected; none was left to run."


def test_partial_selection_that_fails(samples: Any, passing: list[Any]) -> None:
    bad = replace(passing[0], outcome="failed")
    verdict = judge(samples.results([bad, passing[1]], deselected=3, complete_selection=False))
    assert (verdict.kind, verdict.exit_code, verdict.score) == ("non-conforming", 1, 0.0)
    assert verdict.reasons == (
        "3 of 5 checks were deselected; of the ones that ran, 1 MUST check did not pass.",
    )


def test_results_that_are_not_whole_are_incomplete_whatever_they_say(
    samples: Any, passing: list[Any]
) -> None:
    whole = samples.results(passing)
    failing = samples.results([replace(passing[0], outcome="failed"), passing[1]])
    for results in (
        replace(whole, problems=("line 3: cut off",)),
        replace(whole, footer=None),
        replace(whole, header=None),
        Results(None),
        replace(failing, footer=None),
    ):
        verdict = judge(results)
        assert (verdict.kind, verdict.exit_code, verdict.score) == ("incomplete", 4, 0.0)
        assert "conforming" not in status(verdict).values()
    assert "Up to there, 1 MUST check did not pass." in verdict.reasons


@pytest.mark.parametrize(("written", "code"), [(2, 2), (3, 3), (4, 4), (0, 4), (1, 4), (-9, 4)])
def test_an_error_never_leads_to_an_exit_code_of_a_verdict(
    samples: Any, passing: list[Any], written: int, code: int
) -> None:
    error = ErrorRecord("no such module", written)
    for results in (Results(None, error=error), replace(samples.results(passing), error=error)):
        verdict = judge(results)
        assert (verdict.kind, verdict.exit_code, verdict.score) == ("error", code, 0.0)
        assert verdict.error == "no such module"
        assert "conforming" not in status(verdict).values()


def test_score_weighs_requirements_not_checks(samples: Any) -> None:
    def one(name: str, outcome: str = "passed", level: str = "MUST") -> Any:
        requirement = f"ROPE-{name[0]}"
        return samples.check(f"rope::{name}", outcome=outcome, level=level, requirement=requirement)

    checks = [
        *(one(f"a{number}") for number in range(10)),  # one requirement, ten checks
        one("b1"),
        one("b2", "failed"),  # one bad check fails its requirement
        one("c", "failed", "SHOULD"),
        one("d", "failed", "MAY"),  # weighs nothing
    ]
    verdict = judge(samples.results(checks, selected=("rope",)))
    assert verdict.score == pytest.approx(3 / (3 + 3 + 1))


def test_component_counts(samples: Any) -> None:
    checks = [
        samples.check(f"rope::{number}", outcome=outcome) for number, outcome in enumerate(Outcome)
    ]
    (rope,) = judge(samples.results(checks, selected=("rope",))).components
    assert (rope.passed, rope.failed, rope.not_implemented) == (1, 1, 1)
    assert (rope.errors, rope.skipped) == (5, 1)


def test_worst_margin(samples: Any) -> None:
    def worst(*margins: float | None) -> float | None:
        checks = [samples.check(f"rope::{i}", margin=margin) for i, margin in enumerate(margins)]
        (rope,) = judge(samples.results(checks, selected=("rope",))).components
        return rope.worst_margin

    assert worst(None) is None
    assert worst(0.5, None, 3.0) == 3.0
    assert worst(0.5, math.inf) == math.inf
    assert math.isnan(worst(0.5, math.nan) or 0.0)


outcomes = st.sampled_from(list(Outcome))


@given(data=st.data())
def test_conforming_exactly_when_every_must_check_passed(samples: Any, data: st.DataObject) -> None:
    shape = st.tuples(st.sampled_from(["rmsnorm", "rope"]), st.sampled_from(LEVELS), outcomes)
    checks = [
        samples.check(f"{component}::{number}", level=level, outcome=outcome)
        for number, (component, level, outcome) in enumerate(data.draw(st.lists(shape, max_size=8)))
    ]
    verdict = judge(samples.results(checks))
    must = [check for check in checks if check.level == "MUST"]
    expected = {c.component for c in must} == {"rmsnorm", "rope"} and all(c.passed for c in must)
    assert (verdict.kind is VerdictKind.CONFORMING) == expected
    assert (verdict.exit_code == 0) == expected
    assert 0.0 <= verdict.score <= 1.0
    if expected:
        assert set(status(verdict).values()) == {Status.CONFORMING}


def test_shown_score_never_rounds_up() -> None:
    assert [shown_score(x) for x in (0.0, 0.29, 0.999, 1.0)] == ["0.00", "0.29", "0.99", "1.00"]


def test_shown_margin_tells_on_which_side_of_one_it_is() -> None:
    shown = [shown_margin(x) for x in (None, 0.5, 1.0, 1.0004, 0.9996, math.inf, math.nan)]
    assert shown == ["-", "0.5", "1", "1.000400", "0.999600", "∞", "not a number"]
