"""Checks of SiLU."""

from __future__ import annotations

from hypothesis import strategies as st

from conformance.components.silu.cases import COMPONENT, HALF, arguments
from conformance.numerics import array as m
from conformance.numerics.draw import Draw
from conformance.suite import Grader, check, protocols, transformed

case = COMPONENT.case
cases_of = COMPONENT.cases_of


@check("SILU-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SILU-DEFINITION"))


@check("SILU-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("SILU-NEGATIVE")
def test_negative_numbers(grade: Grader) -> None:
    grade.matches_definition(case("negative"))


@check("SILU-SATURATION")
def test_saturation(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SILU-SATURATION"))


@check("SILU-SMALL")
def test_small_numbers(grade: Grader) -> None:
    grade.matches_definition(case("small"))


@check("SILU-REFLECTION", profile="standard")
def test_reflection(grade: Grader) -> None:
    def test(sample: tuple[int, float, int]) -> None:
        count, scale, seed = sample
        x = Draw("silu reflection", seed).normal(count, scale=scale)
        plus, minus = (grade.made(arguments(value), "reflection") for value in (x, -x))
        grade.law(
            plus,
            lambda f: f(**plus.arguments) - f(**minus.arguments),
            lambda f: f.array(plus.arguments["in_features"]),
            "f(x) - f(-x) = x",
        )

    sizes = st.tuples(st.integers(1, 6), st.sampled_from((0.1, 2.0, 20.0)), st.integers(0, 999))
    grade.for_all(sizes, test)


@check("SILU-ELEMENTWISE", profile="standard")
def test_entries_apart(grade: Grader) -> None:
    def test(sample: tuple[int, int]) -> None:
        count, seed = sample
        draw = Draw("silu elementwise", seed)
        x, order = draw.normal(count, scale=3.0), draw.permutation(count)
        plain, moved = grade.made(arguments(x), "order"), grade.made(arguments(x[order]), "order")
        grade.law(
            moved,
            lambda f: f(**moved.arguments),
            lambda f: m.take(f(**plain.arguments), order),
            "the result for reordered entries",
            anchored=True,
        )

    grade.for_all(st.tuples(st.integers(1, 9), st.integers(0, 999)), test)


@check("SILU-LEADING-AXES")
def test_any_shape(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SILU-LEADING-AXES"))


@check("SILU-SCALAR")
def test_scalar(grade: Grader) -> None:
    grade.matches_definition(case("scalar"), case("ordinary"))


@check("SILU-EMPTY")
def test_empty(grade: Grader) -> None:
    grade.matches_definition(case("empty"), case("ordinary"))


@check("SILU-GRADIENT")
def test_gradient(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SILU-GRADIENT"))


@check("SILU-BACKWARD-TWICE")
def test_backward_twice(grade: Grader) -> None:
    protocols.backward_twice(grade, case("gradient"))


@check("SILU-PURE")
def test_input_unchanged(grade: Grader) -> None:
    for name in ("gradient", "saturated"):
        protocols.inputs_unchanged(grade, case(name), ("in_features",))


@check("SILU-FRESH")
def test_result_is_fresh(grade: Grader) -> None:
    for name in ("ordinary", "all-large"):
        protocols.result_is_fresh(grade, case(name), ("in_features",))


@check("SILU-STATELESS")
def test_repeats(grade: Grader) -> None:
    protocols.repeats(grade, case("ordinary"))


@check("SILU-STATELESS")
def test_independent_of_other_calls(grade: Grader) -> None:
    names = ("ordinary", "rank-4", "other-numbers", "saturated")
    protocols.independent_of_other_calls(grade, *map(case, names))


@check("SILU-LAYOUT")
def test_layout(grade: Grader) -> None:
    kinds = ("transposed", "sliced", "expanded")
    protocols.layouts(grade, case("ordinary"), "in_features", kinds)


@check("SILU-NO-GRAD")
def test_without_gradients(grade: Grader) -> None:
    protocols.without_gradients(grade, case("ordinary"))


@check("SILU-RESULT")
def test_result_dtype(grade: Grader) -> None:
    protocols.result_dtype(grade, case("ordinary"))


@check("SILU-RESULT")
def test_result_device(grade: Grader) -> None:
    protocols.result_device(grade, case("ordinary"))


@check("SILU-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_other_dtypes_are_right_where_answered(grade: Grader) -> None:
    protocols.right_where_answered(grade, *cases_of("SILU-HALF-VALUES"))


@check("SILU-HALF", dtypes=HALF)
def test_half_precision(grade: Grader) -> None:
    protocols.accepted(grade, *cases_of("SILU-HALF-VALUES"))


@check("SILU-FLOAT64", dtypes=("float64",))
def test_float64(grade: Grader) -> None:
    protocols.accepted(grade, case("ordinary"), case("negative"))


@check("SILU-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, case("ordinary"))
