"""Checks of the transformer block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from conformance.components.transformer_block.cases import COMPONENT, X
from conformance.components.transformer_block.inputs import NAMES, arguments
from conformance.numerics.draw import Draw
from conformance.suite import Grader, check, composites, placement, protocols, transformed
from conformance.suite.case import Arguments
from conformance.suite.check import HALF
from conformance.suite.composites import Reading

case = COMPONENT.case

SIZES = st.tuples(
    st.integers(1, 2),  # batch
    st.integers(2, 4),  # length
    st.integers(1, 2),  # heads
    st.integers(1, 2),  # pairs of a head
    st.integers(1, 5),  # d_ff
    st.integers(0, 2**20),  # seed
)


@check("BLOCK-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-DEFINITION"))


@check("BLOCK-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("BLOCK-PRE-NORM")
def test_norms_before(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-PRE-NORM"))


@check("BLOCK-RESIDUAL")
def test_residual_paths(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-RESIDUAL"))


@check("BLOCK-IDENTITY")
def test_identity(grade: Grader) -> None:
    grade.matches_definition(case("identity"), case("no-attention"))


@check("BLOCK-NORMS")
def test_two_gains(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-NORMS"))


@check("BLOCK-EPS")
def test_small_streams(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-EPS"))


@check("BLOCK-FEED-FORWARD")
def test_feed_forward(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-FEED-FORWARD"))


@check("BLOCK-CAUSAL")
def test_causal(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-CAUSAL"))


@check("BLOCK-CAUSAL", profile="standard")
def test_later_tokens_change_nothing(grade: Grader) -> None:
    def law(sizes: tuple[int, ...]) -> None:
        batch, length, heads, pairs, d_ff, _ = sizes
        draw = Draw("block", *sizes)
        widths: dict[str, Any] = {"d_model": 2 * pairs * heads, "num_heads": heads, "d_ff": d_ff}
        example = grade.made(arguments(draw, (batch,), length, **widths), "drawn")
        x = example.arguments["in_features"]
        first = int(draw.integers(1, length))
        changed = x.copy()
        changed[:, first:] = draw.normal(*x[:, first:].shape, scale=3.0)
        before = (slice(None), slice(first))
        claim = "before the token that was changed, the result"
        protocols.unaffected(grade, example, {"in_features": changed}, before, before, claim)

    grade.for_all(SIZES, law)


@check("BLOCK-ROTATION")
def test_rotation(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-ROTATION"))


@check("BLOCK-TABLE")
def test_whole_table(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-TABLE"))


@check("BLOCK-SIZES")
def test_sizes(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-SIZES"))


@check("BLOCK-STABLE")
def test_extreme_values(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-STABLE"))


@check("BLOCK-WEIGHT-NAMES")
def test_weights_by_name(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-WEIGHT-NAMES"))


# ---------------------------------------------------------------- gradients


@check("BLOCK-GRADIENT")
def test_gradient(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-GRADIENT"))


@check("BLOCK-WEIGHT-GRADIENT")
def test_gradients_of_weights(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-WEIGHT-GRADIENT"))


@check("BLOCK-BACKWARD-TWICE")
def test_backward_twice(grade: Grader) -> None:
    protocols.backward_twice(grade, case("gradient"))


# ---------------------------------------------------------------- shapes that SHOULD work


@check("BLOCK-LEADING-AXES")
def test_leading_axes(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("BLOCK-LEADING-AXES"))


@check("BLOCK-EMPTY-BATCH", profile="standard")
def test_empty_batch(grade: Grader) -> None:
    grade.matches_definition(case("ordinary"), case("empty"))


# ---------------------------------------------------------------- a function of its arguments


@check("BLOCK-STRIDES")
def test_layouts(grade: Grader) -> None:
    protocols.layouts(grade, case("ordinary"), "in_features", ("transposed", "sliced", "expanded"))


@check("BLOCK-PURE")
def test_inputs_unchanged(grade: Grader) -> None:
    protocols.inputs_unchanged(grade, case("gradient"), (*X, "weights"))


@check("BLOCK-DICTIONARY")
def test_dictionary_unchanged(grade: Grader) -> None:
    protocols.dictionary_unchanged(grade, case("gradient"), "weights")


@check("BLOCK-FRESH")
def test_result_is_fresh(grade: Grader) -> None:
    protocols.result_is_fresh(grade, case("ordinary"), X)
    protocols.result_is_fresh(grade, case("identity"), X)


@check("BLOCK-STATELESS")
def test_independent_of_other_calls(grade: Grader) -> None:
    protocols.repeats(grade, case("ordinary"))
    names = ("ordinary", "theta-small", "theta-large", "narrow-heads", "long")
    protocols.independent_of_other_calls(grade, *map(case, names))


@check("BLOCK-MODES")
def test_without_gradients(grade: Grader) -> None:
    protocols.without_gradients(grade, case("ordinary"))


@check("BLOCK-DEVICE")
def test_result_device(grade: Grader) -> None:
    protocols.result_device(grade, case("ordinary"))


# ---------------------------------------------------------------- dtypes


@check("BLOCK-HALF", dtypes=HALF)
def test_half_is_accepted(grade: Grader) -> None:
    protocols.accepted(grade, case("half"), case("half-gradient"))


@check("BLOCK-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_values_in_other_dtypes(grade: Grader) -> None:
    protocols.right_where_answered(grade, case("half"))


@check("BLOCK-FLOAT64", dtypes=("float64",), profile="standard")
def test_float64_is_accepted(grade: Grader) -> None:
    protocols.accepted(grade, *COMPONENT.cases_of("BLOCK-FLOAT64"))


@check("BLOCK-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, case("ordinary"))


# ---------------------------------------------------------------- module form


def _likely(arguments: Arguments) -> Mapping[int, str]:
    width, hidden = arguments["d_model"], arguments["d_ff"]
    return {
        -width: "a norm has no gain, or both share one",
        4 * width: "the projections of the attention have a bias",
        2 * hidden + width: "the feed-forward network has a bias",
        5 * width + 2 * hidden: "the linear maps have a bias",
        -width * hidden: "a weight of the feed-forward network is missing or not registered",
    }


FORM = composites.Composite(
    "TransformerBlock",
    needed=("d_model", "num_heads", "d_ff"),
    known={"max_seq_len": "max_seq_len", "theta": "theta"},
    parameters=lambda arguments: {name: f"weights.{name}" for name in NAMES},
    likely=_likely,
)


@check("BLOCK-MODULE", module=FORM.class_name)
def test_module_is_built(grade: Grader) -> None:
    composites.has_the_parameters(grade, FORM, case("ordinary"))


@check("BLOCK-MODULE-NAMES", module=FORM.class_name)
def test_module_names(grade: Grader) -> None:
    composites.names_noted(grade, FORM, case("ordinary"))


@check("BLOCK-MODULE-STATE", module=FORM.class_name)
def test_module_state(grade: Grader) -> None:
    composites.keeps_no_tables(grade, FORM, case("ordinary"))


@check("BLOCK-MODULE-FORWARD", module=FORM.class_name)
def test_module_forward(grade: Grader) -> None:
    made = case("ordinary").arguments("float32")
    composites.forward_matches(grade, Reading(FORM, COMPONENT, made), told=True)


@check("BLOCK-MODULE-GRADIENT", module=FORM.class_name)
def test_module_gradients(grade: Grader) -> None:
    composites.reaches_every_parameter(grade, FORM, case("ordinary"))


@check("BLOCK-MODULE-DTYPE", dtypes=("float64", "bfloat16"), module=FORM.class_name)
def test_module_dtype(grade: Grader) -> None:
    composites.honours_dtype(grade, FORM, case("ordinary"))


@check("BLOCK-MODULE-DEVICE", module=FORM.class_name)
def test_module_device(grade: Grader) -> None:
    placement.honours_device_where_taken(grade, FORM, case("ordinary"))


@check("BLOCK-MODULE-TABLE", module=FORM.class_name)
def test_module_over_the_whole_table(grade: Grader) -> None:
    made = case("full-table").arguments("float32")
    composites.forward_matches(grade, Reading(FORM, COMPONENT, made), told=True)


@check("BLOCK-MODULE-CONVERTED", dtypes=("float64", "bfloat16"), module=FORM.class_name)
def test_module_converted(grade: Grader) -> None:
    made = case("ordinary").arguments(grade.dtype)
    composites.converted_matches(grade, Reading(FORM, COMPONENT, made), told=True)


@check("BLOCK-MODULE-LEARNS", module=FORM.class_name)
def test_module_learns(grade: Grader) -> None:
    composites.learns(grade, FORM, case("ordinary"))
