"""Checks of the embedding lookup."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from conformance.components.embedding.cases import COMPONENT, HALF, arguments
from conformance.numerics.draw import Draw
from conformance.suite import Grader, check, modules, placement, protocols, transformed

case = COMPONENT.case
cases_of = COMPONENT.cases_of

SIZES = st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(1, 6), st.integers(0, 999))
"""Vocabulary, width, number of ids, seed."""


@check("EMBEDDING-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*cases_of("EMBEDDING-DEFINITION"))


@check("EMBEDDING-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("EMBEDDING-EXACT")
def test_bit_by_bit(grade: Grader) -> None:
    protocols.exactly(grade, case("ordinary"), case("magnitudes"))


@check("EMBEDDING-ONE-HOT", profile="standard")
def test_one_hot_product(grade: Grader) -> None:
    def test(sizes: tuple[int, int, int, int]) -> None:
        vocab_size, d_model, count, seed = sizes
        draw = Draw("embedding one-hot", seed)
        table, ids = draw.normal(vocab_size, d_model), draw.integers(0, vocab_size, count)
        example = grade.made(arguments(table, ids), "one-hot")
        product = np.eye(vocab_size)[ids] @ example.arguments["weights"].astype(np.float64)
        grade.law(
            example,
            lambda f: f(**example.arguments),
            lambda f: f.array(product),
            "the product of one-hot rows with the table",
        )

    grade.for_all(SIZES, test)


@check("EMBEDDING-RELABELLING", profile="standard")
def test_relabelling(grade: Grader) -> None:
    def test(sizes: tuple[int, int, int, int]) -> None:
        vocab_size, d_model, count, seed = sizes
        draw = Draw("embedding relabelling", seed)
        table, ids = draw.normal(vocab_size, d_model), draw.integers(0, vocab_size, count)
        names = draw.permutation(vocab_size)
        plain = grade.made(arguments(table, names[ids]), "relabelling")
        moved = grade.made(arguments(table[names], ids), "relabelling")
        grade.law(
            moved,
            lambda f: f(**moved.arguments),
            lambda f: f(**plain.arguments),
            "the same token under another id",
            anchored=True,
        )

    grade.for_all(SIZES, test)


@check("EMBEDDING-ID-RANGE")
def test_id_range(grade: Grader) -> None:
    protocols.exactly(grade, *cases_of("EMBEDDING-ID-RANGE"))


@check("EMBEDDING-REPEATED-IDS")
def test_repeated_ids(grade: Grader) -> None:
    protocols.exactly(grade, case("repeated"))


@check("EMBEDDING-SIZES")
def test_any_sizes(grade: Grader) -> None:
    grade.matches_definition(*cases_of("EMBEDDING-SIZES"))


@check("EMBEDDING-LEADING-AXES")
def test_leading_axes(grade: Grader) -> None:
    grade.matches_definition(*cases_of("EMBEDDING-LEADING-AXES"))


@check("EMBEDDING-SCALAR")
def test_scalar_id(grade: Grader) -> None:
    grade.matches_definition(case("scalar"))


@check("EMBEDDING-EMPTY")
def test_no_ids(grade: Grader) -> None:
    grade.matches_definition(case("empty"), case("ordinary"))


@check("EMBEDDING-INT32")
def test_int32_ids(grade: Grader) -> None:
    grade.matches_definition(case("int32"))


@check("EMBEDDING-WEIGHT-GRADIENT")
def test_weight_gradient(grade: Grader) -> None:
    grade.matches_definition(case("weight-gradient"))


@check("EMBEDDING-BACKWARD-TWICE")
def test_backward_twice(grade: Grader) -> None:
    protocols.backward_twice(grade, case("weight-gradient"))


@check("EMBEDDING-PURE")
def test_arguments_unchanged(grade: Grader) -> None:
    for name in ("ordinary", "repeated"):
        protocols.inputs_unchanged(grade, case(name), ("weights", "token_ids"))


@check("EMBEDDING-FRESH")
def test_result_is_fresh(grade: Grader) -> None:
    for name in ("ordinary", "one-id", "rank-1"):
        protocols.result_is_fresh(grade, case(name), ("weights", "token_ids"))


@check("EMBEDDING-STATELESS")
def test_repeats(grade: Grader) -> None:
    protocols.repeats(grade, case("ordinary"))


@check("EMBEDDING-STATELESS")
def test_independent_of_other_calls(grade: Grader) -> None:
    names = ("ordinary", "wide", "other-table", "one-feature", "rank-4")
    protocols.independent_of_other_calls(grade, *map(case, names))


@check("EMBEDDING-LAYOUT")
def test_layout_of_ids(grade: Grader) -> None:
    kinds = ("transposed", "sliced", "expanded")
    protocols.layouts(grade, case("ordinary"), "token_ids", kinds)


@check("EMBEDDING-LAYOUT")
def test_layout_of_the_table(grade: Grader) -> None:
    protocols.layouts(grade, case("ordinary"), "weights")


@check("EMBEDDING-NO-GRAD")
def test_without_gradients(grade: Grader) -> None:
    protocols.without_gradients(grade, case("ordinary"))


@check("EMBEDDING-RESULT")
def test_result_dtype(grade: Grader) -> None:
    protocols.result_dtype(grade, case("ordinary"))


@check("EMBEDDING-RESULT")
def test_result_device(grade: Grader) -> None:
    protocols.result_device(grade, case("ordinary"))


@check("EMBEDDING-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_other_dtypes_are_right_where_answered(grade: Grader) -> None:
    protocols.right_where_answered(grade, case("half"))


@check("EMBEDDING-HALF", dtypes=HALF)
def test_half_precision(grade: Grader) -> None:
    protocols.accepted(grade, case("half"))


@check("EMBEDDING-FLOAT64", dtypes=("float64",))
def test_float64(grade: Grader) -> None:
    protocols.accepted(grade, case("ordinary"))
    protocols.exactly(grade, case("ordinary"))


@check("EMBEDDING-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, case("ordinary"))


# ---------------------------------------------------------------- module form

FORM = modules.ModuleForm(
    "Embedding",
    constructor={"num_embeddings": "vocab_size", "embedding_dim": "d_model"},
    parameters={"weights": modules.ONE},
    inputs=("token_ids",),
)


@check("EMBEDDING-MODULE", module=FORM.class_name)
def test_module_is_built(grade: Grader) -> None:
    modules.constructs(grade, FORM, COMPONENT.case("ordinary"))


@check("EMBEDDING-MODULE-STATE", module=FORM.class_name)
def test_module_state(grade: Grader) -> None:
    modules.state_dict(grade, FORM, COMPONENT.case("ordinary"))


@check("EMBEDDING-MODULE-FORWARD", module=FORM.class_name)
def test_module_forward(grade: Grader) -> None:
    modules.forward_matches(grade, FORM, COMPONENT.case("ordinary"))


@check("EMBEDDING-MODULE-DTYPE", dtypes=("float64", "bfloat16"), module=FORM.class_name)
def test_module_dtype(grade: Grader) -> None:
    modules.honours_dtype(grade, FORM, COMPONENT.case("ordinary"))


@check("EMBEDDING-MODULE-DEVICE", module=FORM.class_name)
def test_module_device(grade: Grader) -> None:
    placement.honours_device(grade, FORM, COMPONENT.case("ordinary"))


@check("EMBEDDING-MODULE-LEARNS", module=FORM.class_name)
def test_module_learns(grade: Grader) -> None:
    modules.learns(grade, FORM, COMPONENT.case("ordinary"))


@check("EMBEDDING-MODULE-INIT", module=FORM.class_name)
def test_module_initialisation(grade: Grader) -> None:
    arguments = {"vocab_size": 192, "d_model": 320}
    modules.truncated_normal(grade, FORM, arguments, lambda shape: 1.0)
