"""Checks of multi-head self-attention with rotary positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from conformance.components.multihead_self_attention.cases import COMPONENT as without_positions
from conformance.components.multihead_self_attention.form import ROTATED
from conformance.components.multihead_self_attention.inputs import WEIGHTS
from conformance.components.multihead_self_attention_with_rope.cases import COMPONENT, X
from conformance.components.multihead_self_attention_with_rope.inputs import arguments
from conformance.numerics.draw import Draw
from conformance.suite import Grader, check, composites, protocols, transformed
from conformance.suite.case import Arguments
from conformance.suite.check import HALF
from conformance.suite.composites import Reading
from conformance.suite.grader import Example

case = COMPONENT.case
ARGUMENTS = (*X, *WEIGHTS, "token_positions")
TABLE = 40

SIZES = st.tuples(
    st.integers(1, 3),  # batch
    st.integers(2, 5),  # length
    st.integers(1, 3),  # heads
    st.integers(1, 2),  # pairs of a head
    st.sampled_from((3.0, 50.0, 1e4)),  # theta
    st.integers(0, 2**20),  # seed
)


def _drawn(grade: Grader, sizes: tuple[Any, ...]) -> tuple[Example, Draw]:
    """Arguments of those sizes at positions below 20, and the stream to draw more from."""
    batch, length, heads, pairs, theta, _ = sizes
    draw = Draw("multihead-with-rope", *sizes)
    made = arguments(
        draw,
        (batch,),
        draw.integers(0, TABLE // 2, length),
        d_model=2 * pairs * heads,
        num_heads=heads,
        theta=theta,
        max_seq_len=TABLE,
    )
    return grade.made(made, "drawn"), draw


@check("MHAROPE-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-DEFINITION"))


@check("MHAROPE-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("MHAROPE-POSITIONS")
def test_positions_are_used(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-POSITIONS"))


@check("MHAROPE-PER-HEAD")
def test_rotation_per_head(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-PER-HEAD"))


@check("MHAROPE-VALUES")
def test_values_are_not_rotated(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-VALUES"))


@check("MHAROPE-PAIRS")
def test_neighbours_are_paired(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-PAIRS"))


@check("MHAROPE-THETA")
def test_theta(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-THETA"))


@check("MHAROPE-TABLE")
def test_whole_table(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-TABLE"))


@check("MHAROPE-EQUAL-POSITIONS")
def test_equal_positions(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-EQUAL-POSITIONS"))


@check("MHAROPE-CAUSAL")
def test_causal(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-CAUSAL"))


@check("MHAROPE-SIZES")
def test_sizes(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-SIZES"))


@check("MHAROPE-STABLE")
def test_extreme_scores(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-STABLE"))


# ---------------------------------------------------------------- laws


@check("MHAROPE-RELATIVE", profile="standard")
def test_common_shift_of_positions(grade: Grader) -> None:
    def law(sizes: tuple[Any, ...]) -> None:
        example, draw = _drawn(grade, sizes)
        original = {"token_positions": example.arguments["token_positions"]}
        far = original["token_positions"] + draw.integers(1, TABLE // 2 + 1)
        shifted = replace(example, arguments={**example.arguments, "token_positions": far})
        shifted = grade.bounded(shifted)
        grade.example_matches(shifted)
        claim = "before a common shift of all positions, the result"
        protocols.unaffected(grade, shifted, original, ..., ..., claim)

    grade.for_all(SIZES, law)


@check("MHAROPE-FUTURE", profile="standard")
def test_later_tokens_change_nothing(grade: Grader) -> None:
    def law(sizes: tuple[Any, ...]) -> None:
        example, draw = _drawn(grade, sizes)
        first = int(draw.integers(1, sizes[1]))
        x, positions = (np.copy(example.arguments[name]) for name in (*X, "token_positions"))
        x[:, first:] = draw.normal(*x[:, first:].shape, scale=3.0)
        positions[first:] = draw.integers(0, TABLE, sizes[1] - first)
        changed = {"in_features": x, "token_positions": positions}
        before = (slice(None), slice(first))
        claim = "before the token that was changed, the result"
        protocols.unaffected(grade, example, changed, before, before, claim)

    grade.for_all(SIZES, law)


# ---------------------------------------------------------------- what SHOULD work


@check("MHAROPE-BATCH-POSITIONS")
def test_positions_per_sequence(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-BATCH-POSITIONS"))


@check("MHAROPE-NO-POSITIONS")
def test_positions_left_out(grade: Grader) -> None:
    grade.matches_definition(case("none"))
    example = grade.example(case("none"))
    without = {k: v for k, v in example.arguments.items() if k != "token_positions"}
    grade.example_matches(replace(example, arguments=without))


@check("MHAROPE-LEADING-AXES")
def test_leading_axes(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-LEADING-AXES"))


@check("MHAROPE-EMPTY-BATCH", profile="standard")
def test_empty_batch(grade: Grader) -> None:
    grade.matches_definition(case("ordinary"), case("empty"))


# ---------------------------------------------------------------- gradients


@check("MHAROPE-GRADIENT")
def test_gradient(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-GRADIENT"))


@check("MHAROPE-WEIGHT-GRADIENT")
def test_gradients_of_weights(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("MHAROPE-WEIGHT-GRADIENT"))


@check("MHAROPE-BACKWARD-TWICE")
def test_backward_twice(grade: Grader) -> None:
    protocols.backward_twice(grade, case("gradient"))


# ---------------------------------------------------------------- a function of its arguments


@check("MHAROPE-STRIDES")
def test_layouts(grade: Grader) -> None:
    protocols.layouts(grade, case("irregular"), "in_features", ("transposed", "sliced", "expanded"))
    protocols.layouts(grade, case("irregular"), "token_positions", ("sliced",))
    for name in WEIGHTS:
        protocols.layouts(grade, case("irregular"), name, ("transposed",))


@check("MHAROPE-PURE")
def test_inputs_unchanged(grade: Grader) -> None:
    protocols.inputs_unchanged(grade, case("gradient"), ARGUMENTS)


@check("MHAROPE-FRESH")
def test_result_is_fresh(grade: Grader) -> None:
    protocols.result_is_fresh(grade, case("irregular"), ARGUMENTS)


@check("MHAROPE-STATELESS")
def test_independent_of_other_calls(grade: Grader) -> None:
    protocols.repeats(grade, case("irregular"))
    names = ("irregular", "theta-small", "narrow-heads", "last-position", "one-head")
    protocols.independent_of_other_calls(grade, *map(case, names))


@check("MHAROPE-MODES")
def test_without_gradients(grade: Grader) -> None:
    protocols.without_gradients(grade, case("irregular"))


@check("MHAROPE-DEVICE")
def test_result_device(grade: Grader) -> None:
    protocols.result_device(grade, case("irregular"))


# ---------------------------------------------------------------- dtypes


@check("MHAROPE-HALF", dtypes=HALF)
def test_half_is_accepted(grade: Grader) -> None:
    protocols.accepted(grade, *COMPONENT.cases_of("MHAROPE-HALF-VALUES"), case("half-gradient"))


@check("MHAROPE-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_values_in_other_dtypes(grade: Grader) -> None:
    protocols.right_where_answered(grade, *COMPONENT.cases_of("MHAROPE-HALF-VALUES"))


@check("MHAROPE-FLOAT64", dtypes=("float64",), profile="standard")
def test_float64_is_accepted(grade: Grader) -> None:
    protocols.accepted(grade, *COMPONENT.cases_of("MHAROPE-FLOAT64"))


@check("MHAROPE-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, case("irregular"))


# ---------------------------------------------------------------- module form

# Positions of (seq,) from 0 on: what a class takes when it is not given any.
FIRST = case("ordinary-vector")


def _readings(arguments: Arguments, positions: str = "") -> tuple[Reading, Reading]:
    """What a class is that was told how to rotate: it does, or, which is reported, it does not."""
    words = "does not rotate although it was told how to"
    return (
        Reading(ROTATED, COMPONENT, arguments, positions=positions),
        Reading(ROTATED, without_positions, arguments, composites.POSITIONS, words),
    )


@check("MHAROPE-MODULE-FORWARD", module=ROTATED.class_name)
def test_module_forward(grade: Grader) -> None:
    composites.forward_matches(grade, *_readings(FIRST.arguments("float32")), told=True)


@check("MHAROPE-MODULE-STATE", module=ROTATED.class_name)
def test_module_state(grade: Grader) -> None:
    composites.keeps_no_tables(grade, ROTATED, FIRST)


@check("MHAROPE-MODULE-TABLE", module=ROTATED.class_name)
def test_module_over_the_whole_table(grade: Grader) -> None:
    made = case("full-table").arguments("float32")
    composites.forward_matches(grade, *_readings(made), told=True)


@check("MHAROPE-MODULE-POSITIONS", module=ROTATED.class_name)
def test_module_uses_its_positions(grade: Grader) -> None:
    for name in ("last-position", "irregular"):
        made = case(name).arguments("float32")
        composites.forward_matches(grade, *_readings(made, "token_positions"), told=True)
