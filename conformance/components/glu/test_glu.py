"""Checks of the gated linear unit."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from conformance.components.glu.cases import COMPONENT, HALF, arguments
from conformance.numerics.draw import Draw
from conformance.suite import Grader, check, protocols, transformed

case = COMPONENT.case
cases_of = COMPONENT.cases_of

ARGUMENTS = ("in_features", "w1_weight", "w2_weight")
SIZES = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 6), st.integers(0, 999))
"""Rows, width, hidden features, seed."""


def _drawn(sizes: tuple[int, int, int, int], law: str) -> tuple[Any, Any, Any]:
    """Rows and the two weights."""
    rows, d_model, d_ff, seed = sizes
    draw = Draw(law, seed)
    return draw.normal(rows, d_model), draw.normal(d_ff, d_model), draw.normal(d_ff, d_model)


def _values(example: Any) -> Any:
    """`x W2^T`, exactly."""
    x, w2 = (example.arguments[name].astype(np.float64) for name in ("in_features", "w2_weight"))
    return x @ w2.T


@check("GLU-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*cases_of("GLU-DEFINITION"))


@check("GLU-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("GLU-ROLES")
def test_gate_and_values(grade: Grader) -> None:
    grade.matches_definition(*cases_of("GLU-ROLES"))


@check("GLU-COMPLEMENT", profile="standard")
def test_gates_of_opposite_sign(grade: Grader) -> None:
    def test(sizes: tuple[int, int, int, int]) -> None:
        x, w1, w2 = _drawn(sizes, "glu complement")
        plus = grade.made(arguments(x, w1, w2), "complement")
        minus = grade.made(arguments(x, -w1, w2), "complement")
        grade.law(
            plus,
            lambda f: f(**plus.arguments) + f(**minus.arguments),
            lambda f: f.array(_values(plus)),
            "f(W1) + f(-W1) = x W2^T",
        )

    grade.for_all(SIZES, test)


@check("GLU-HALF-OPEN", profile="standard")
def test_half_open_gate(grade: Grader) -> None:
    def test(sizes: tuple[int, int, int, int]) -> None:
        x, w1, w2 = _drawn(sizes, "glu half open")
        example = grade.made(arguments(x, np.zeros_like(w1), w2), "half-open")
        grade.law(
            example,
            lambda f: f(**example.arguments),
            lambda f: f.array(_values(example) / 2),
            "half of the values",
        )

    grade.for_all(SIZES, test)


@check("GLU-LINEAR-IN-VALUES", profile="standard")
def test_linear_in_values(grade: Grader) -> None:
    def test(sample: tuple[tuple[int, int, int, int], float]) -> None:
        sizes, factor = sample
        x, w1, w2 = _drawn(sizes, "glu linear")
        plain = grade.made(arguments(x, w1, w2), "linear-in-values")
        scaled = grade.made(arguments(x, w1, factor * w2), "linear-in-values")
        grade.law(
            scaled,
            lambda f: f(**scaled.arguments),
            lambda f: f(**plain.arguments) * factor,
            f"f({factor:g} W2) = {factor:g} f(W2)",
            anchored=True,
        )

    grade.for_all(st.tuples(SIZES, st.sampled_from((-1.0, 8.0, -0.25))), test)


@check("GLU-SATURATION")
def test_saturated_gates(grade: Grader) -> None:
    grade.matches_definition(*cases_of("GLU-SATURATION"))


@check("GLU-NO-BIAS")
def test_nothing_is_added(grade: Grader) -> None:
    grade.matches_definition(case("zero-rows"))


@check("GLU-SIZES")
def test_any_sizes(grade: Grader) -> None:
    grade.matches_definition(*cases_of("GLU-SIZES"))


@check("GLU-LEADING-AXES")
def test_leading_axes(grade: Grader) -> None:
    grade.matches_definition(*cases_of("GLU-LEADING-AXES"))


@check("GLU-VECTOR")
def test_bare_vector(grade: Grader) -> None:
    grade.matches_definition(case("vector"))


@check("GLU-EMPTY")
def test_empty_batch(grade: Grader) -> None:
    grade.matches_definition(case("empty"), case("ordinary"))


@check("GLU-GRADIENT")
def test_gradient(grade: Grader) -> None:
    grade.matches_definition(*cases_of("GLU-GRADIENT"))


@check("GLU-WEIGHT-GRADIENT")
def test_weight_gradient(grade: Grader) -> None:
    grade.matches_definition(case("weight-gradient"))


@check("GLU-BACKWARD-TWICE")
def test_backward_twice(grade: Grader) -> None:
    protocols.backward_twice(grade, case("gradient"))


@check("GLU-PURE")
def test_arguments_unchanged(grade: Grader) -> None:
    protocols.inputs_unchanged(grade, case("gradient"), ARGUMENTS)


@check("GLU-FRESH")
def test_result_is_fresh(grade: Grader) -> None:
    for name in ("ordinary", "equal-axes"):
        protocols.result_is_fresh(grade, case(name), ARGUMENTS)


@check("GLU-STATELESS")
def test_repeats(grade: Grader) -> None:
    protocols.repeats(grade, case("ordinary"))


@check("GLU-STATELESS")
def test_independent_of_other_calls(grade: Grader) -> None:
    names = ("ordinary", "fewer-hidden", "other-weights", "one-hidden", "rank-4")
    protocols.independent_of_other_calls(grade, *map(case, names))


@check("GLU-LAYOUT")
def test_input_layout(grade: Grader) -> None:
    kinds = ("transposed", "sliced", "expanded")
    protocols.layouts(grade, case("ordinary"), "in_features", kinds)


@check("GLU-LAYOUT")
def test_weights_layout(grade: Grader) -> None:
    for name in ("w1_weight", "w2_weight"):
        protocols.layouts(grade, case("ordinary"), name)


@check("GLU-NO-GRAD")
def test_without_gradients(grade: Grader) -> None:
    protocols.without_gradients(grade, case("ordinary"))


@check("GLU-RESULT")
def test_result_dtype(grade: Grader) -> None:
    protocols.result_dtype(grade, case("ordinary"))


@check("GLU-RESULT")
def test_result_device(grade: Grader) -> None:
    protocols.result_device(grade, case("ordinary"))


@check("GLU-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_other_dtypes_are_right_where_answered(grade: Grader) -> None:
    protocols.right_where_answered(grade, case("half"))


@check("GLU-HALF", dtypes=HALF)
def test_half_precision(grade: Grader) -> None:
    protocols.accepted(grade, case("half"))


@check("GLU-FLOAT64", dtypes=("float64",))
def test_float64(grade: Grader) -> None:
    protocols.accepted(grade, case("ordinary"), case("zero-rows"))


@check("GLU-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, case("ordinary"))
