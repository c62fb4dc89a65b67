"""Checks of the SwiGLU network."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from conformance.components.swiglu.cases import COMPONENT, HALF, arguments, weights
from conformance.numerics.draw import Draw
from conformance.suite import Grader, check, modules, placement, protocols, transformed

case = COMPONENT.case
cases_of = COMPONENT.cases_of

ARGUMENTS = ("in_features", "w1_weight", "w2_weight", "w3_weight")
SIZES = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 6), st.integers(0, 999))
"""Rows, width, hidden features, seed."""


def _drawn(sizes: tuple[int, int, int, int], law: str) -> tuple[Any, ...]:
    """Rows and the three weights."""
    rows, d_model, d_ff, seed = sizes
    draw = Draw(law, seed)
    return draw.normal(rows, d_model), *weights(draw, d_model, d_ff)


@check("SWIGLU-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SWIGLU-DEFINITION"))


@check("SWIGLU-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("SWIGLU-ROLES")
def test_gate_and_values(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SWIGLU-ROLES"))


@check("SWIGLU-ACTIVATION")
def test_negative_pre_activations(grade: Grader) -> None:
    grade.matches_definition(case("negative-gates"))


@check("SWIGLU-REFLECTION", profile="standard")
def test_gates_of_opposite_sign(grade: Grader) -> None:
    def test(sizes: tuple[int, int, int, int]) -> None:
        x, w1, w2, w3 = _drawn(sizes, "swiglu reflection")
        plus = grade.made(arguments(x, w1, w2, w3), "reflection")
        minus = grade.made(arguments(x, -w1, w2, w3), "reflection")
        rows, gate, back, values = (plus.arguments[name].astype(np.float64) for name in ARGUMENTS)
        without_gate = ((rows @ gate.T) * (rows @ values.T)) @ back.T
        grade.law(
            plus,
            lambda f: f(**plus.arguments) - f(**minus.arguments),
            lambda f: f.array(without_gate),
            "f(W1) - f(-W1) = W2 (W1 x * W3 x)",
        )

    grade.for_all(SIZES, test)


@check("SWIGLU-LINEAR-IN-VALUES", profile="standard")
def test_linear_in_values(grade: Grader) -> None:
    def test(sample: tuple[tuple[int, int, int, int], float, bool]) -> None:
        sizes, factor, on_w2 = sample
        x, w1, w2, w3 = _drawn(sizes, "swiglu linear")
        plain = grade.made(arguments(x, w1, w2, w3), "linear-in-values")
        changed = (factor * w2, w3) if on_w2 else (w2, factor * w3)
        scaled = grade.made(arguments(x, w1, *changed), "linear-in-values")
        name = "W2" if on_w2 else "W3"
        grade.law(
            scaled,
            lambda f: f(**scaled.arguments),
            lambda f: f(**plain.arguments) * factor,
            f"f({factor:g} {name}) = {factor:g} f({name})",
            anchored=True,
        )

    grade.for_all(st.tuples(SIZES, st.sampled_from((-1.0, 8.0, -0.25)), st.booleans()), test)


@check("SWIGLU-HIDDEN-ORDER", profile="standard")
def test_order_of_hidden_features(grade: Grader) -> None:
    def test(sizes: tuple[int, int, int, int]) -> None:
        x, w1, w2, w3 = _drawn(sizes, "swiglu hidden order")
        order = Draw("swiglu hidden order of", sizes).permutation(w1.shape[0])
        plain = grade.made(arguments(x, w1, w2, w3), "hidden-order")
        moved = grade.made(arguments(x, w1[order], w2[:, order], w3[order]), "hidden-order")
        grade.law(
            moved,
            lambda f: f(**moved.arguments),
            lambda f: f(**plain.arguments),
            "the result for reordered hidden features",
            anchored=True,
        )

    grade.for_all(SIZES, test)


@check("SWIGLU-NO-BIAS")
def test_nothing_is_added(grade: Grader) -> None:
    grade.matches_definition(case("zero-rows"))


@check("SWIGLU-SATURATION")
def test_saturated_gates(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SWIGLU-SATURATION"))


@check("SWIGLU-HIDDEN-SIZE")
def test_hidden_size_as_given(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SWIGLU-HIDDEN-SIZE"))


@check("SWIGLU-SIZES")
def test_any_sizes(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SWIGLU-SIZES"))


@check("SWIGLU-LEADING-AXES")
def test_leading_axes(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SWIGLU-LEADING-AXES"))


@check("SWIGLU-VECTOR")
def test_bare_vector(grade: Grader) -> None:
    grade.matches_definition(case("vector"))


@check("SWIGLU-EMPTY")
def test_empty_batch(grade: Grader) -> None:
    grade.matches_definition(case("empty"), case("ordinary"))


@check("SWIGLU-GRADIENT")
def test_gradient(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SWIGLU-GRADIENT"))


@check("SWIGLU-WEIGHT-GRADIENT")
def test_weight_gradient(grade: Grader) -> None:
    grade.matches_definition(case("weight-gradient"))


@check("SWIGLU-BACKWARD-TWICE")
def test_backward_twice(grade: Grader) -> None:
    protocols.backward_twice(grade, case("gradient"))


@check("SWIGLU-PURE")
def test_arguments_unchanged(grade: Grader) -> None:
    protocols.inputs_unchanged(grade, case("gradient"), ARGUMENTS)


@check("SWIGLU-FRESH")
def test_result_is_fresh(grade: Grader) -> None:
    for name in ("ordinary", "equal-axes"):
        protocols.result_is_fresh(grade, case(name), ARGUMENTS)


@check("SWIGLU-STATELESS")
def test_repeats(grade: Grader) -> None:
    protocols.repeats(grade, case("ordinary"))


@check("SWIGLU-STATELESS")
def test_independent_of_other_calls(grade: Grader) -> None:
    names = ("ordinary", "hidden-17", "other-weights", "one-hidden", "rank-4")
    protocols.independent_of_other_calls(grade, *map(case, names))


@check("SWIGLU-LAYOUT")
def test_input_layout(grade: Grader) -> None:
    kinds = ("transposed", "sliced", "expanded")
    protocols.layouts(grade, case("ordinary"), "in_features", kinds)


@check("SWIGLU-LAYOUT")
def test_weights_layout(grade: Grader) -> None:
    for name in ("w1_weight", "w2_weight", "w3_weight"):
        protocols.layouts(grade, case("ordinary"), name, ("transposed",))


@check("SWIGLU-NO-GRAD")
def test_without_gradients(grade: Grader) -> None:
    protocols.without_gradients(grade, case("ordinary"))


@check("SWIGLU-RESULT")
def test_result_dtype(grade: Grader) -> None:
    protocols.result_dtype(grade, case("ordinary"))


@check("SWIGLU-RESULT")
def test_result_device(grade: Grader) -> None:
    protocols.result_device(grade, case("ordinary"))


@check("SWIGLU-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_other_dtypes_are_right_where_answered(grade: Grader) -> None:
    protocols.right_where_answered(grade, case("half"))


@check("SWIGLU-HALF", dtypes=HALF)
def test_half_precision(grade: Grader) -> None:
    protocols.accepted(grade, case("half"))


@check("SWIGLU-FLOAT64", dtypes=("float64",))
def test_float64(grade: Grader) -> None:
    protocols.accepted(grade, case("ordinary"), case("zero-rows"))


@check("SWIGLU-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, case("ordinary"))


# ---------------------------------------------------------------- module form

FORM = modules.ModuleForm(
    "SwiGLU",
    constructor={"d_model": "d_model", "d_ff": "d_ff"},
    parameters={"w1_weight": "w1.weight", "w2_weight": "w2.weight", "w3_weight": "w3.weight"},
    inputs=("in_features",),
)


@check("SWIGLU-MODULE", module=FORM.class_name)
def test_module_is_built(grade: Grader) -> None:
    modules.constructs(grade, FORM, COMPONENT.case("ordinary"))


@check("SWIGLU-MODULE-STATE", module=FORM.class_name)
def test_module_state(grade: Grader) -> None:
    modules.state_dict(grade, FORM, COMPONENT.case("ordinary"))


@check("SWIGLU-MODULE-FORWARD", module=FORM.class_name)
def test_module_forward(grade: Grader) -> None:
    modules.forward_matches(grade, FORM, COMPONENT.case("ordinary"))


@check("SWIGLU-MODULE-DTYPE", dtypes=("float64", "bfloat16"), module=FORM.class_name)
def test_module_dtype(grade: Grader) -> None:
    modules.honours_dtype(grade, FORM, COMPONENT.case("ordinary"))


@check("SWIGLU-MODULE-DEVICE", module=FORM.class_name)
def test_module_device(grade: Grader) -> None:
    placement.honours_device(grade, FORM, COMPONENT.case("ordinary"))


@check("SWIGLU-MODULE-LEARNS", module=FORM.class_name)
def test_module_learns(grade: Grader) -> None:
    modules.learns(grade, FORM, COMPONENT.case("ordinary"))
