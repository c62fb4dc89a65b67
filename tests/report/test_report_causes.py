"""Failed checks with one diagnosis are one cause."""

from __future__ import annotations

from conformance.report import CheckRecord, Diagnosis
from conformance.report.causes import causes

ROPE = Diagnosis("rope-half-split", "Pairs the wrong features.", "Which pairs?", "rope", "certain")


def check(
    number: int, component: str, found: Diagnosis | None, outcome: str = "failed"
) -> CheckRecord:
    """A check of a component with a diagnosis."""
    return CheckRecord(
        f"{component}::check{number}[float32]", component, "X", "MUST", outcome, diagnosis=found
    )


def test_one_mistake_in_several_components_is_one_cause() -> None:
    inside = Diagnosis("rope-half-split", "Its rope is wrong: ...", "", "rope", "likely")
    checks = [check(1, "rope", ROPE), check(2, "transformer_block", inside)]
    (cause,) = causes(checks, ["rope", "transformer_block"])
    assert cause.diagnosis is ROPE
    assert cause.components == ("rope", "transformer_block")
    assert len(cause.checks) == 2


def test_what_explains_most_comes_first() -> None:
    other = Diagnosis("silu-gelu", "Computes GELU.", component="silu", certainty="certain")
    checks = [check(1, "silu", other), check(1, "rope", ROPE), check(2, "rope", ROPE)]
    assert [cause.place for cause in causes(checks, ["silu", "rope"])] == ["rope", "silu"]


def test_descriptions_and_passes_are_no_cause() -> None:
    described = Diagnosis("", "It is wrong somewhere.", component="rope", certainty="described")
    checks = [check(1, "rope", described), check(2, "rope", None), check(3, "rope", ROPE, "passed")]
    assert causes(checks, ["rope"]) == []
