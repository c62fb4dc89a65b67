"""Checks of the linear map."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from conformance.components.linear.cases import COMPONENT, HALF, arguments
from conformance.numerics.draw import Draw
from conformance.suite import Grader, check, modules, placement, protocols, transformed

case = COMPONENT.case
cases_of = COMPONENT.cases_of

SIZES = st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 6), st.integers(0, 999))
"""Rows, inputs, outputs, seed."""


def _exact(draw: Draw, *shape: int) -> Any:
    """Multiples of 1/8 below 4: their sums and small multiples are exact in every format."""
    return draw.integers(-31, 32, *shape) / 8.0


@check("LINEAR-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*cases_of("LINEAR-DEFINITION"))


@check("LINEAR-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("LINEAR-SELECTION", profile="standard")
def test_unit_rows_select_inputs(grade: Grader) -> None:
    def test(sizes: tuple[int, int, int, int]) -> None:
        rows, d_in, d_out, seed = sizes
        draw = Draw("linear selection", seed)
        x, chosen = draw.normal(rows, d_in + 1), draw.integers(0, d_in + 1, d_out)
        example = grade.made(arguments(x, np.eye(d_in + 1)[chosen]), "unit-rows")
        picked = example.arguments["in_features"][:, chosen]
        grade.law(
            example,
            lambda f: f(**example.arguments),
            lambda f: f.array(picked),
            "the choice of input features by unit rows",
        )

    grade.for_all(SIZES, test)


@check("LINEAR-NO-BIAS")
def test_nothing_is_added(grade: Grader) -> None:
    grade.matches_definition(*cases_of("LINEAR-NO-BIAS"))


@check("LINEAR-SUPERPOSITION", profile="standard")
def test_superposition(grade: Grader) -> None:
    def test(sizes: tuple[int, int, int, int]) -> None:
        rows, d_in, d_out, seed = sizes
        draw = Draw("linear superposition", seed)
        x, y = _exact(draw, rows, d_in), _exact(draw, rows, d_in)
        weights = draw.normal(d_out, d_in)
        first, second, both = (
            grade.made(arguments(value, weights), "superposition") for value in (x, y, x + y)
        )
        grade.law(
            both,
            lambda f: f(**both.arguments),
            lambda f: f(**first.arguments) + f(**second.arguments),
            "f(x + y) = f(x) + f(y)",
            anchored=True,
        )

    grade.for_all(SIZES, test)


@check("LINEAR-HOMOGENEITY", profile="standard")
def test_homogeneity(grade: Grader) -> None:
    def test(sample: tuple[tuple[int, int, int, int], int, bool]) -> None:
        (rows, d_in, d_out, seed), factor, on_weights = sample
        draw = Draw("linear homogeneity", seed)
        x, weights = _exact(draw, rows, d_in), _exact(draw, d_out, d_in)
        plain = grade.made(arguments(x, weights), "homogeneity")
        changed = (x, factor * weights) if on_weights else (factor * x, weights)
        scaled = grade.made(arguments(*changed), "homogeneity")
        grade.law(
            scaled,
            lambda f: f(**scaled.arguments),
            lambda f: f(**plain.arguments) * float(factor),
            f"f({factor} x) = {factor} f(x)",
            anchored=True,
        )

    grade.for_all(st.tuples(SIZES, st.sampled_from((-1, 3, -7, 64)), st.booleans()), test)


@check("LINEAR-SIZES")
def test_any_sizes(grade: Grader) -> None:
    grade.matches_definition(*cases_of("LINEAR-SIZES"))


@check("LINEAR-LEADING-AXES")
def test_leading_axes(grade: Grader) -> None:
    grade.matches_definition(*cases_of("LINEAR-LEADING-AXES"))


@check("LINEAR-VECTOR")
def test_bare_vector(grade: Grader) -> None:
    grade.matches_definition(case("vector"))


@check("LINEAR-EMPTY")
def test_empty_batch(grade: Grader) -> None:
    grade.matches_definition(case("empty"), case("ordinary"))


@check("LINEAR-ROWS")
def test_rows_apart(grade: Grader) -> None:
    grade.matches_definition(case("mixed-magnitudes"))


@check("LINEAR-LONG-ROWS")
def test_long_rows(grade: Grader) -> None:
    grade.matches_definition(*cases_of("LINEAR-LONG-ROWS"))


@check("LINEAR-GRADIENT")
def test_gradient(grade: Grader) -> None:
    grade.matches_definition(*cases_of("LINEAR-GRADIENT"))


@check("LINEAR-WEIGHT-GRADIENT")
def test_weight_gradient(grade: Grader) -> None:
    grade.matches_definition(case("weight-gradient"))


@check("LINEAR-BACKWARD-TWICE")
def test_backward_twice(grade: Grader) -> None:
    protocols.backward_twice(grade, case("gradient"))


@check("LINEAR-PURE")
def test_arguments_unchanged(grade: Grader) -> None:
    for name in ("gradient", "square"):
        protocols.inputs_unchanged(grade, case(name), ("in_features", "weights"))


@check("LINEAR-FRESH")
def test_result_is_fresh(grade: Grader) -> None:
    for name in ("ordinary", "square", "one-by-one"):
        protocols.result_is_fresh(grade, case(name), ("in_features", "weights"))


@check("LINEAR-STATELESS")
def test_repeats(grade: Grader) -> None:
    protocols.repeats(grade, case("ordinary"))


@check("LINEAR-STATELESS")
def test_independent_of_other_calls(grade: Grader) -> None:
    names = ("ordinary", "narrowing", "other-weights", "one-output", "rank-4")
    protocols.independent_of_other_calls(grade, *map(case, names))


@check("LINEAR-LAYOUT")
def test_input_layout(grade: Grader) -> None:
    kinds = ("transposed", "sliced", "expanded")
    protocols.layouts(grade, case("ordinary"), "in_features", kinds)


@check("LINEAR-LAYOUT")
def test_weights_layout(grade: Grader) -> None:
    protocols.layouts(grade, case("ordinary"), "weights")


@check("LINEAR-NO-GRAD")
def test_without_gradients(grade: Grader) -> None:
    protocols.without_gradients(grade, case("ordinary"))


@check("LINEAR-RESULT")
def test_result_dtype(grade: Grader) -> None:
    protocols.result_dtype(grade, case("ordinary"))


@check("LINEAR-RESULT")
def test_result_device(grade: Grader) -> None:
    protocols.result_device(grade, case("ordinary"))


@check("LINEAR-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_other_dtypes_are_right_where_answered(grade: Grader) -> None:
    protocols.right_where_answered(grade, case("half"))


@check("LINEAR-HALF", dtypes=HALF)
def test_half_precision(grade: Grader) -> None:
    protocols.accepted(grade, case("half"))


@check("LINEAR-HALF-SUMS", dtypes=HALF)
def test_counting_in_half_precision(grade: Grader) -> None:
    protocols.exactly(grade, case("counting"))


@check("LINEAR-FLOAT64", dtypes=("float64",))
def test_float64(grade: Grader) -> None:
    protocols.accepted(grade, case("ordinary"), case("zero-rows"))


@check("LINEAR-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, case("ordinary"))


# ---------------------------------------------------------------- module form

FORM = modules.ModuleForm(
    "Linear",
    constructor={"in_features": "d_in", "out_features": "d_out"},
    parameters={"weights": modules.ONE},
    inputs=("in_features",),
)


@check("LINEAR-MODULE", module=FORM.class_name)
def test_module_is_built(grade: Grader) -> None:
    modules.constructs(grade, FORM, COMPONENT.case("ordinary"))


@check("LINEAR-MODULE-STATE", module=FORM.class_name)
def test_module_state(grade: Grader) -> None:
    modules.state_dict(grade, FORM, COMPONENT.case("ordinary"))


@check("LINEAR-MODULE-FORWARD", module=FORM.class_name)
def test_module_forward(grade: Grader) -> None:
    modules.forward_matches(grade, FORM, COMPONENT.case("ordinary"))


@check("LINEAR-MODULE-DTYPE", dtypes=("float64", "bfloat16"), module=FORM.class_name)
def test_module_dtype(grade: Grader) -> None:
    modules.honours_dtype(grade, FORM, COMPONENT.case("ordinary"))


@check("LINEAR-MODULE-DEVICE", module=FORM.class_name)
def test_module_device(grade: Grader) -> None:
    placement.honours_device(grade, FORM, COMPONENT.case("ordinary"))


@check("LINEAR-MODULE-LEARNS", module=FORM.class_name)
def test_module_learns(grade: Grader) -> None:
    modules.learns(grade, FORM, COMPONENT.case("ordinary"))


@check("LINEAR-MODULE-INIT", module=FORM.class_name)
def test_module_initialisation(grade: Grader) -> None:
    arguments = {"d_in": 192, "d_out": 320}
    modules.truncated_normal(grade, FORM, arguments, lambda shape: (2 / sum(shape)) ** 0.5)
