"""Checks of RMSNorm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from conformance.components.rmsnorm.cases import COMPONENT, HALF, arguments, gain
from conformance.numerics import array as m
from conformance.numerics.draw import Draw
from conformance.numerics.dtypes import FORMATS, round_to
from conformance.numerics.ensemble import Bound
from conformance.suite import Grader, check, modules, placement, protocols, transformed

case = COMPONENT.case
cases_of = COMPONENT.cases_of

SIZES = st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(0, 999))
"""Rows, features, seed."""


@check("RMSNORM-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*cases_of("RMSNORM-DEFINITION"))


@check("RMSNORM-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("RMSNORM-EPS")
def test_eps_inside_the_root(grade: Grader) -> None:
    grade.matches_definition(*cases_of("RMSNORM-EPS"))


@check("RMSNORM-EPS-GIVEN")
def test_the_eps_that_is_given(grade: Grader) -> None:
    grade.matches_definition(*cases_of("RMSNORM-EPS-GIVEN"))


@check("RMSNORM-GAIN")
def test_gain_per_feature(grade: Grader) -> None:
    grade.matches_definition(case("gains"))


@check("RMSNORM-GAIN", profile="standard")
def test_gain_factors_out(grade: Grader) -> None:
    def test(sizes: tuple[int, int, int]) -> None:
        rows, d_model, seed = sizes
        draw = Draw("rmsnorm gain", seed)
        x, weights = draw.normal(rows, d_model), gain(draw, d_model)
        scaled = grade.made(arguments(x, weights), "gain")
        plain = grade.made(arguments(x, np.ones(d_model)), "gain")
        factor = scaled.arguments["weights"]
        grade.law(
            scaled,
            lambda f: f(**scaled.arguments),
            lambda f: f(**plain.arguments) * f.array(factor),
            "f(x; g) = g f(x; 1)",
            anchored=True,
        )

    grade.for_all(SIZES, test)


@check("RMSNORM-UNIT-RMS", profile="standard")
def test_unit_mean_square(grade: Grader) -> None:
    def test(sample: tuple[tuple[int, int, int], float]) -> None:
        (rows, d_model, seed), eps = sample
        x = Draw("rmsnorm unit rms", seed).normal(rows, d_model) + 0.25
        example = grade.made(arguments(x, np.ones(d_model), eps), "unit-rms")
        squares = np.square(example.arguments["in_features"].astype(np.float64))
        mean_square = squares.mean(-1, keepdims=True)
        grade.law(
            example,
            lambda f: m.mean(m.square(f(**example.arguments))),
            lambda f: f.array(mean_square / (mean_square + eps)),
            "the mean square of a normalised row",
        )

    grade.for_all(st.tuples(SIZES, st.sampled_from((1e-5, 1e-2, 1.0))), test)


@check("RMSNORM-SCALE-INVARIANCE", profile="standard")
def test_scale_invariance(grade: Grader) -> None:
    def test(sample: tuple[tuple[int, int, int], float]) -> None:
        (rows, d_model, seed), factor = sample
        draw = Draw("rmsnorm scale", seed)
        x, weights = draw.normal(rows, d_model) + 4.0 * draw.signs(rows, 1), gain(draw, d_model)
        plain = grade.made(arguments(x, weights, 1e-12), "scale-invariance")
        scaled = grade.made(arguments(factor * x, weights, 1e-12), "scale-invariance")
        sign = float(np.sign(factor))
        grade.law(
            scaled,
            lambda f: f(**scaled.arguments),
            lambda f: f(**plain.arguments) * sign,
            f"f({factor:g} x) = {sign:g} f(x)",
            anchored=True,
        )

    grade.for_all(st.tuples(SIZES, st.sampled_from((-1.0, 2.0**-3, -(2.0**20), 2.0**40))), test)


@check("RMSNORM-NO-CENTERING")
def test_mean_is_kept(grade: Grader) -> None:
    grade.matches_definition(case("off-centre"))


@check("RMSNORM-ROWS")
def test_rows_apart(grade: Grader) -> None:
    grade.matches_definition(*cases_of("RMSNORM-ROWS"))


@check("RMSNORM-LARGE")
def test_large_rows(grade: Grader) -> None:
    grade.matches_definition(case("large"))


@check("RMSNORM-ZERO-ROWS")
def test_zero_rows(grade: Grader) -> None:
    grade.matches_definition(case("zero-rows"))


@check("RMSNORM-LONG-ROWS")
def test_long_rows(grade: Grader) -> None:
    grade.matches_definition(*cases_of("RMSNORM-LONG-ROWS"))


@check("RMSNORM-SIZES")
def test_any_sizes(grade: Grader) -> None:
    grade.matches_definition(*cases_of("RMSNORM-SIZES"))


@check("RMSNORM-LEADING-AXES")
def test_leading_axes(grade: Grader) -> None:
    grade.matches_definition(*cases_of("RMSNORM-LEADING-AXES"))


@check("RMSNORM-VECTOR")
def test_bare_vector(grade: Grader) -> None:
    grade.matches_definition(case("vector"))


@check("RMSNORM-EMPTY")
def test_empty_batch(grade: Grader) -> None:
    grade.matches_definition(case("empty"), case("ordinary"))


@check("RMSNORM-HALF", dtypes=HALF)
def test_half_precision(grade: Grader) -> None:
    protocols.accepted(grade, case("half"))


@check("RMSNORM-HALF", dtypes=HALF)
def test_half_precision_with_float32_gain(grade: Grader) -> None:
    protocols.accepted(grade, case("half-float32-gain"))


@check("RMSNORM-HALF-RANGE", dtypes=HALF)
def test_widened_before_squaring(grade: Grader) -> None:
    grade.matches_definition(*cases_of("RMSNORM-HALF-RANGE"))


@check("RMSNORM-HALF-STATISTICS", dtypes=HALF)
def test_rounded_once(grade: Grader) -> None:
    """With unit gain, only the rounding of the result itself is left.

    The exact value, give or take what float32 arithmetic may be off by, rounds to one 16-bit number
    nearly everywhere (to one of two where it lies half-way): the result is that number.
    """
    draw = Draw("rmsnorm rounded once")
    example = grade.made(arguments(draw.normal(24, 16), np.ones(16)), "rounded-once")
    wide = {**example.arguments, "in_features": example.arguments["in_features"].astype(np.float32)}
    bounds = grade.bounded(replace(example, arguments=wide)).bounds
    assert bounds is not None
    fmt, exact = FORMATS[grade.dtype], bounds.result
    reply = grade.answer(example)
    output = reply.outputs[0]
    anything = np.full(exact.expected.shape, np.inf)
    grade.within(output, Bound(exact.expected, anything), example, reply, "the result")
    got = output.astype(np.float64)
    below = got < round_to(exact.expected - exact.tolerance, fmt)
    above = got > round_to(exact.expected + exact.tolerance, fmt)
    count = int((below | above).sum())
    grade.holds(
        count == 0,
        f"{count} of {got.size} entries are not the exact value rounded once to {grade.dtype}: "
        "an intermediate value was rounded to it as well",
        example,
        reply,
    )


@check("RMSNORM-FLOAT64-VALUES", dtypes=("float64",))
def test_float64_is_right_where_answered(grade: Grader) -> None:
    protocols.right_where_answered(grade, case("ordinary"), case("tiny-rows"))


@check("RMSNORM-FLOAT64", dtypes=("float64",))
def test_float64(grade: Grader) -> None:
    protocols.accepted(grade, case("ordinary"), case("tiny-rows"))


@check("RMSNORM-GRADIENT")
def test_gradient(grade: Grader) -> None:
    grade.matches_definition(*cases_of("RMSNORM-GRADIENT"))


@check("RMSNORM-WEIGHT-GRADIENT")
def test_weight_gradient(grade: Grader) -> None:
    grade.matches_definition(case("weight-gradient"))


@check("RMSNORM-BACKWARD-TWICE")
def test_backward_twice(grade: Grader) -> None:
    protocols.backward_twice(grade, case("gradient"))


@check("RMSNORM-PURE", dtypes=("float32", "bfloat16"))
def test_arguments_unchanged(grade: Grader) -> None:
    for name in ("gradient", "half-float32-gain"):
        protocols.inputs_unchanged(grade, case(name), ("in_features", "weights"))


@check("RMSNORM-FRESH")
def test_result_is_fresh(grade: Grader) -> None:
    for name in ("ordinary", "one-feature"):
        protocols.result_is_fresh(grade, case(name), ("in_features", "weights"))


@check("RMSNORM-STATELESS")
def test_repeats(grade: Grader) -> None:
    protocols.repeats(grade, case("ordinary"))


@check("RMSNORM-STATELESS")
def test_independent_of_other_calls(grade: Grader) -> None:
    names = ("ordinary", "odd-size", "other-numbers", "eps-0.1", "rank-4", "eps-1e-06")
    protocols.independent_of_other_calls(grade, *map(case, names))


@check("RMSNORM-LAYOUT")
def test_layout(grade: Grader) -> None:
    kinds = ("transposed", "sliced", "expanded")
    protocols.layouts(grade, case("ordinary"), "in_features", kinds)
    protocols.layouts(grade, case("ordinary"), "weights", ("sliced",))


@check("RMSNORM-NO-GRAD")
def test_without_gradients(grade: Grader) -> None:
    protocols.without_gradients(grade, case("ordinary"))


@check("RMSNORM-RESULT")
def test_result_dtype(grade: Grader) -> None:
    protocols.result_dtype(grade, case("ordinary"))


@check("RMSNORM-RESULT")
def test_result_device(grade: Grader) -> None:
    protocols.result_device(grade, case("ordinary"))


@check("RMSNORM-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, case("ordinary"))


# ---------------------------------------------------------------- module form

FORM = modules.ModuleForm(
    "RMSNorm",
    constructor={"d_model": "d_model", "eps": "eps"},
    parameters={"weights": modules.ONE},
    inputs=("in_features",),
)


@check("RMSNORM-MODULE", module=FORM.class_name)
def test_module_is_built(grade: Grader) -> None:
    modules.constructs(grade, FORM, COMPONENT.case("ordinary"))


@check("RMSNORM-MODULE-STATE", module=FORM.class_name)
def test_module_state(grade: Grader) -> None:
    modules.state_dict(grade, FORM, COMPONENT.case("ordinary"))


@check("RMSNORM-MODULE-FORWARD", module=FORM.class_name)
def test_module_forward(grade: Grader) -> None:
    modules.forward_matches(grade, FORM, COMPONENT.case("ordinary"))


@check("RMSNORM-MODULE-DTYPE", dtypes=("float64", "bfloat16"), module=FORM.class_name)
def test_module_dtype(grade: Grader) -> None:
    modules.honours_dtype(grade, FORM, COMPONENT.case("ordinary"))


@check("RMSNORM-MODULE-DEVICE", module=FORM.class_name)
def test_module_device(grade: Grader) -> None:
    placement.honours_device(grade, FORM, COMPONENT.case("ordinary"))


@check("RMSNORM-MODULE-LEARNS", module=FORM.class_name)
def test_module_learns(grade: Grader) -> None:
    modules.learns(grade, FORM, COMPONENT.case("ordinary"))


@check("RMSNORM-MODULE-INIT", module=FORM.class_name)
def test_module_initialisation(grade: Grader) -> None:
    modules.starts_at_one(grade, FORM, COMPONENT.case("ordinary"))
