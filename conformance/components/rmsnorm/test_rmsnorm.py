"""Checks of RMSNorm."""

from conformance.components.rmsnorm.cases import COMPONENT
from conformance.suite import Grader, check


@check("RMSNORM-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("RMSNORM-DEFINITION"))


@check("RMSNORM-EPS")
def test_eps_inside_the_root(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("RMSNORM-EPS"))
