"""Checks of multi-head self-attention."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from conformance.components.multihead_self_attention.cases import COMPONENT, X
from conformance.components.multihead_self_attention.form import FORM, ROTATED
from conformance.components.multihead_self_attention.inputs import WEIGHTS, arguments
from conformance.components.multihead_self_attention_with_rope.cases import COMPONENT as rotating
from conformance.numerics.draw import Draw
from conformance.suite import Grader, check, composites, placement, protocols, transformed
from conformance.suite.check import HALF
from conformance.suite.composites import Reading
from conformance.suite.grader import Example

case = COMPONENT.case
ARGUMENTS = (*X, *WEIGHTS)

SIZES = st.tuples(
    st.integers(1, 3),  # batch
    st.integers(2, 5),  # length
    st.integers(1, 3),  # heads
    st.integers(1, 3),  # width of a head
    st.integers(0, 2**20),  # seed
)


def _drawn(grade: Grader, sizes: tuple[int, ...]) -> tuple[Example, Draw]:
    """Arguments of those sizes, and the stream to draw more from."""
    batch, length, heads, width, _ = sizes
    draw = Draw("multihead", *sizes)
    return grade.made(arguments(draw, (batch,), length, heads * width, heads), "drawn"), draw


@check("MHA-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHA-DEFINITION"))


@check("MHA-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("MHA-PROJECTIONS")
def test_each_weight_in_its_role(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHA-PROJECTIONS"))


@check("MHA-HEADS")
def test_heads_are_blocks_of_rows(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHA-HEADS"))


@check("MHA-SCALE")
def test_scale_of_one_head(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHA-SCALE"))


@check("MHA-CAUSAL")
def test_causal(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHA-CAUSAL"))


@check("MHA-LENGTHS")
def test_lengths(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHA-LENGTHS"))


@check("MHA-BATCH")
def test_batch_sizes(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHA-BATCH"))


@check("MHA-STABLE")
def test_extreme_scores(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHA-STABLE"))


# ---------------------------------------------------------------- laws


@check("MHA-FUTURE", profile="standard")
def test_later_tokens_change_nothing(grade: Grader) -> None:
    def law(sizes: tuple[int, ...]) -> None:
        example, draw = _drawn(grade, sizes)
        first = int(draw.integers(1, sizes[1]))
        changed = np.copy(example.arguments["in_features"])
        changed[:, first:] = draw.normal(*changed[:, first:].shape, scale=3.0)
        before = (slice(None), slice(first))
        claim = "before the token that was changed, the result"
        protocols.unaffected(grade, example, {"in_features": changed}, before, before, claim)

    grade.for_all(SIZES, law)


@check("MHA-PREFIX", profile="standard")
def test_prefix(grade: Grader) -> None:
    def law(sizes: tuple[int, ...]) -> None:
        example, draw = _drawn(grade, sizes)
        first = (slice(None), slice(int(draw.integers(1, sizes[1]))))
        prefix = {"in_features": example.arguments["in_features"][first]}
        protocols.unaffected(grade, example, prefix, ..., first, "for a prefix, the result")

    grade.for_all(SIZES, law)


@check("MHA-NO-POSITIONS", profile="standard")
def test_order_of_earlier_tokens(grade: Grader) -> None:
    def law(sizes: tuple[int, ...]) -> None:
        example, draw = _drawn(grade, sizes)
        order = [*draw.permutation(sizes[1] - 1), sizes[1] - 1]
        permuted = {"in_features": example.arguments["in_features"][:, order]}
        last = (slice(None), slice(-1, None))
        claim = "after earlier tokens were permuted, the last result"
        protocols.unaffected(grade, example, permuted, last, last, claim)

    grade.for_all(SIZES, law)


@check("MHA-BATCH", profile="standard")
def test_batch_entries_are_independent(grade: Grader) -> None:
    def law(sizes: tuple[int, ...]) -> None:
        example, draw = _drawn(grade, sizes)
        entry = int(draw.integers(0, sizes[0]))
        own = slice(entry, entry + 1)
        alone = {"in_features": example.arguments["in_features"][own]}
        claim = "for one sequence of the batch alone, the result"
        protocols.unaffected(grade, example, alone, ..., own, claim)

    grade.for_all(SIZES, law)


# ---------------------------------------------------------------- gradients


@check("MHA-GRADIENT")
def test_gradient(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHA-GRADIENT"))


@check("MHA-WEIGHT-GRADIENT")
def test_gradients_of_weights(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHA-WEIGHT-GRADIENT"))


@check("MHA-BACKWARD-TWICE")
def test_backward_twice(grade: Grader) -> None:
    protocols.backward_twice(grade, case("gradient"))


# ---------------------------------------------------------------- shapes that SHOULD work


@check("MHA-LEADING-AXES")
def test_two_leading_axes(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHA-LEADING-AXES"))


@check("MHA-UNBATCHED")
def test_no_leading_axis(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHA-UNBATCHED"))


@check("MHA-EMPTY-BATCH", profile="standard")
def test_empty_batch(grade: Grader) -> None:
    grade.matches_definition(case("ordinary"), case("empty"))


# ---------------------------------------------------------------- a function of its arguments


@check("MHA-STRIDES")
def test_layouts(grade: Grader) -> None:
    protocols.layouts(grade, case("ordinary"), "in_features", ("transposed", "sliced", "expanded"))
    for name in WEIGHTS:
        protocols.layouts(grade, case("ordinary"), name, ("transposed",))


@check("MHA-PURE")
def test_inputs_unchanged(grade: Grader) -> None:
    protocols.inputs_unchanged(grade, case("gradient"), ARGUMENTS)


@check("MHA-FRESH")
def test_result_is_fresh(grade: Grader) -> None:
    protocols.result_is_fresh(grade, case("ordinary"), ARGUMENTS)
    protocols.result_is_fresh(grade, case("one-of-all"), ARGUMENTS)


@check("MHA-STATELESS")
def test_independent_of_other_calls(grade: Grader) -> None:
    protocols.repeats(grade, case("ordinary"))
    names = ("ordinary", "one-head", "square-heads", "long", "permuting-weights")
    protocols.independent_of_other_calls(grade, *map(case, names))


@check("MHA-MODES")
def test_without_gradients(grade: Grader) -> None:
    protocols.without_gradients(grade, case("ordinary"))


@check("MHA-DEVICE")
def test_result_device(grade: Grader) -> None:
    protocols.result_device(grade, case("ordinary"))


# ---------------------------------------------------------------- dtypes


@check("MHA-HALF", dtypes=HALF)
def test_half_is_accepted(grade: Grader) -> None:
    protocols.accepted(grade, case("half"), case("half-gradient"))


@check("MHA-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_values_in_other_dtypes(grade: Grader) -> None:
    protocols.right_where_answered(grade, case("half"))


@check("MHA-FLOAT64", dtypes=("float64",), profile="standard")
def test_float64_is_accepted(grade: Grader) -> None:
    protocols.accepted(grade, case("double"))


@check("MHA-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, case("ordinary"))


# ---------------------------------------------------------------- module form

# Positions of (seq,) from 0 on: what a class takes when it is not given any.
ROTATING = rotating.case("ordinary-vector").arguments("float32")


@check("MHA-MODULE", module=FORM.class_name)
def test_module_is_built(grade: Grader) -> None:
    composites.has_the_parameters(grade, FORM, case("ordinary"))


@check("MHA-MODULE-NAMES", module=FORM.class_name)
def test_module_names(grade: Grader) -> None:
    composites.names_noted(grade, FORM, case("ordinary"))


@check("MHA-MODULE-STATE", module=FORM.class_name)
def test_module_state(grade: Grader) -> None:
    composites.keeps_no_tables(grade, FORM, case("ordinary"))


@check("MHA-MODULE-FORWARD", module=FORM.class_name)
def test_module_forward(grade: Grader) -> None:
    usual = {**ROTATING, "theta": composites.THETA}
    composites.forward_matches(
        grade,
        Reading(FORM, COMPONENT, case("ordinary").arguments("float32")),
        Reading(FORM, rotating, usual, words="rotates by itself, with theta 10000"),
        Reading(ROTATED, rotating, ROTATING, words="always rotates"),
    )


@check("MHA-MODULE-GRADIENT", module=FORM.class_name)
def test_module_gradients(grade: Grader) -> None:
    composites.reaches_every_parameter(grade, FORM, case("ordinary"))


@check("MHA-MODULE-DTYPE", dtypes=("float64", "bfloat16"), module=FORM.class_name)
def test_module_dtype(grade: Grader) -> None:
    composites.honours_dtype(grade, FORM, case("ordinary"))


@check("MHA-MODULE-DEVICE", module=FORM.class_name)
def test_module_device(grade: Grader) -> None:
    placement.honours_device_where_taken(grade, FORM, case("ordinary"))


@check("MHA-MODULE-LEARNS", module=FORM.class_name)
def test_module_learns(grade: Grader) -> None:
    composites.learns(grade, FORM, case("ordinary"))
