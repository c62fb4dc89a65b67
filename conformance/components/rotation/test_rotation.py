"""Checks of rotation matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from conformance.components.rotation.cases import ANGLES, COMPONENT
from conformance.numerics import array as m
from conformance.suite import Grader, check, protocols, transformed
from conformance.suite.check import HALF
from conformance.suite.grader import Example

GRID = 2.0**10
"""Angles of laws are multiples of 1/1024 below 16, so that sums of two are exact in float32."""


def _of(requirement: str) -> Any:
    return COMPONENT.cases_of(requirement)


# ---------------------------------------------------------------- values


@check("ROTATION-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*_of("ROTATION-DEFINITION"))


@check("ROTATION-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("ROTATION-DIRECTION")
def test_direction(grade: Grader) -> None:
    grade.matches_definition(*_of("ROTATION-DIRECTION"))


@check("ROTATION-RADIANS")
def test_radians(grade: Grader) -> None:
    grade.matches_definition(*_of("ROTATION-RADIANS"))


@check("ROTATION-IDENTITY")
def test_identity(grade: Grader) -> None:
    grade.matches_definition(*_of("ROTATION-IDENTITY"))


@check("ROTATION-LARGE-ANGLES")
def test_large_angles(grade: Grader) -> None:
    grade.matches_definition(*_of("ROTATION-LARGE-ANGLES"))


@check("ROTATION-SMALL-ANGLES")
def test_small_angles(grade: Grader) -> None:
    grade.matches_definition(*_of("ROTATION-SMALL-ANGLES"))


@check("ROTATION-SHAPES")
def test_shapes(grade: Grader) -> None:
    grade.matches_definition(*_of("ROTATION-SHAPES"))


@check("ROTATION-SIZES")
def test_sizes(grade: Grader) -> None:
    grade.matches_definition(*_of("ROTATION-SIZES"))


@check("ROTATION-EMPTY")
def test_empty(grade: Grader) -> None:
    grade.matches_definition(COMPONENT.case("ordinary"), COMPONENT.case("empty"))


@check("ROTATION-GRADIENT")
def test_gradient(grade: Grader) -> None:
    grade.matches_definition(*_of("ROTATION-GRADIENT"))


# ---------------------------------------------------------------- laws

steps = st.integers(-16 * 1024, 16 * 1024)
few = st.lists(steps, min_size=2, max_size=3, unique=True)


def _made(grade: Grader, counts: Any) -> Example:
    """Angles that are multiples of the grid."""
    return grade.made({"angles": np.array(counts) / GRID}, "law", "angles at random")


def _differ(grade: Grader, example: Example) -> None:
    """A law holds emptily where the angle changes nothing."""
    reply = grade.answer(example)
    first, second = reply.outputs[0][0], reply.outputs[0][1]
    message = "different angles have the same matrix"
    grade.holds(not np.array_equal(first, second), message, example, reply)


@check("ROTATION-ORTHOGONAL")
def test_orthogonal(grade: Grader) -> None:
    def test(counts: Any) -> None:
        example = _made(grade, counts)

        def product(f: Any) -> Any:
            matrix = f(**example.arguments)
            return m.swap(matrix) @ matrix

        grade.law(example, product, lambda f: f.array(np.eye(2)), "R(t)^T R(t), against I,")
        _differ(grade, example)

    grade.for_all(few, test)


@check("ROTATION-INVERSE")
def test_transpose_turns_back(grade: Grader) -> None:
    def test(counts: Any) -> None:
        example = _made(grade, counts)
        grade.law(
            example,
            lambda f: m.swap(f(**example.arguments)),
            lambda f: f(angles=-example.arguments["angles"]),
            "R(t)^T, against R(-t),",
        )
        _differ(grade, example)

    grade.for_all(few, test)


@check("ROTATION-COMPOSITION")
def test_angles_add(grade: Grader) -> None:
    def test(counts: Any) -> None:
        example = _made(grade, counts)
        angles = example.arguments["angles"]
        rolled = np.roll(angles, 1)
        grade.law(
            example,
            lambda f: f(angles=angles) @ f(angles=rolled),
            lambda f: f(angles=angles + rolled),
            "R(a) R(b), against R(a + b),",
        )
        _differ(grade, example)

    grade.for_all(few, test)


@check("ROTATION-DETERMINANT", profile="standard")
def test_determinant(grade: Grader) -> None:
    def test(counts: Any) -> None:
        example = _made(grade, counts)

        def determinant(f: Any) -> Any:
            r = f(**example.arguments)
            return r[..., 0, 0] * r[..., 1, 1] - r[..., 0, 1] * r[..., 1, 0]

        ones = np.ones(example.arguments["angles"].shape)
        grade.law(example, determinant, lambda f: f.array(ones), "the determinant")
        _differ(grade, example)

    grade.for_all(few, test)


# ---------------------------------------------------------------- dtypes and devices


@check("ROTATION-DTYPE")
def test_dtype(grade: Grader) -> None:
    protocols.result_dtype(grade, COMPONENT.case("ordinary"))


@check("ROTATION-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_other_formats_where_answered(grade: Grader) -> None:
    protocols.right_where_answered(grade, *_of("ROTATION-HALF-VALUES"))


@check("ROTATION-HALF", dtypes=HALF)
def test_half(grade: Grader) -> None:
    protocols.accepted(grade, *_of("ROTATION-HALF-VALUES"))


@check("ROTATION-FLOAT64", dtypes=("float64",))
def test_float64(grade: Grader) -> None:
    protocols.accepted(grade, *_of("ROTATION-FLOAT64"))


@check("ROTATION-DEVICE")
def test_device(grade: Grader) -> None:
    protocols.result_device(grade, COMPONENT.case("ordinary"))


# ---------------------------------------------------------------- memory and state


@check("ROTATION-INPUTS-UNCHANGED")
def test_inputs_unchanged(grade: Grader) -> None:
    protocols.inputs_unchanged(grade, COMPONENT.case("gradient"), ANGLES)
    protocols.inputs_unchanged(grade, COMPONENT.case("large"), ANGLES)


@check("ROTATION-FRESH-RESULT")
def test_fresh_result(grade: Grader) -> None:
    protocols.result_is_fresh(grade, COMPONENT.case("ordinary"), ANGLES)


@check("ROTATION-NO-STATE")
def test_no_state(grade: Grader) -> None:
    protocols.repeats(grade, COMPONENT.case("ordinary"))
    protocols.independent_of_other_calls(grade, *_of("ROTATION-NO-STATE"))


@check("ROTATION-MEMORY-LAYOUT")
def test_memory_layout(grade: Grader) -> None:
    kinds = ("transposed", "sliced", "expanded")
    protocols.layouts(grade, COMPONENT.case("ordinary"), *ANGLES, kinds)


@check("ROTATION-AUTOGRAD-MODES")
def test_autograd_modes(grade: Grader) -> None:
    protocols.without_gradients(grade, COMPONENT.case("ordinary"))
    protocols.backward_twice(grade, COMPONENT.case("gradient"))


# ---------------------------------------------------------------- left open


@check("ROTATION-NOT-FINITE")
def test_not_finite(grade: Grader) -> None:
    protocols.observe(
        grade,
        COMPONENT.case("infinite"),
        lambda result: f"an infinite angle gives {result[0].reshape(-1).tolist()}",
    )


@check("ROTATION-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, COMPONENT.case("ordinary"))
