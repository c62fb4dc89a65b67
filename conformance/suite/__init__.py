"""What a check is written with: cases, the grader, and protocols that several components share."""

from conformance.suite.case import Case
from conformance.suite.check import check
from conformance.suite.component import Component
from conformance.suite.grader import Grader

__all__ = ["Case", "Component", "Grader", "check"]
