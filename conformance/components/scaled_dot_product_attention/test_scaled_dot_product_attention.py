"""Checks of scaled dot-product attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from conformance.components.scaled_dot_product_attention.cases import ALL, COMPONENT
from conformance.components.scaled_dot_product_attention.inputs import operands, random_mask
from conformance.numerics.array import Array
from conformance.numerics.draw import Draw
from conformance.suite import Grader, check, protocols, transformed
from conformance.suite.check import HALF
from conformance.suite.grader import Example, Subject

case = COMPONENT.case

SIZES = st.tuples(
    st.integers(1, 2),  # batch
    st.integers(1, 4),  # queries
    st.integers(1, 6),  # keys
    st.integers(1, 5),  # d_k
    st.integers(1, 4),  # d_v
    st.integers(0, 2**20),  # seed
)


def _drawn(grade: Grader, sizes: tuple[int, ...], masked: bool) -> tuple[Example, Draw]:
    """Operands of those sizes, and the stream to draw more from."""
    batch, queries, keys, d_k, d_v, _ = sizes
    draw = Draw("attention", *sizes)
    arguments = operands(draw, (batch,), queries, keys, d_k, d_v)
    if masked:
        arguments["mask"] = random_mask(draw, queries, keys)
    return grade.made(arguments, "drawn"), draw


def _apply(f: Subject, example: Example, **changed: Any) -> Array:
    return f(**{**example.arguments, **changed})


@check("SDPA-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-DEFINITION"))


@check("SDPA-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("SDPA-SCALE")
def test_scale(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-SCALE"))


@check("SDPA-MASK")
def test_mask(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-MASK"))


@check("SDPA-MASK-BROADCAST")
def test_mask_is_broadcast(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-MASK-BROADCAST"))


@check("SDPA-MASK-ONE-ROW")
def test_mask_of_one_row(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-MASK-ONE-ROW"))


@check("SDPA-NO-MASK")
def test_no_mask_hides_nothing(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-NO-MASK"))


@check("SDPA-MASK-DOMINANT")
def test_dominant_hidden_keys_get_nothing(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-MASK-DOMINANT"))


@check("SDPA-MASK-ANY-SCORE")
def test_hidden_below_any_score(grade: Grader) -> None:
    """One visible key each: its value comes back, at scores around 0 and at -2.5e11 alike."""
    example = grade.bounded(grade.example(case("mask-single")))
    assert example.bounds is not None
    mask = example.arguments["mask"]
    q, k = np.copy(example.arguments["Q"]), np.copy(example.arguments["K"])
    q[..., 0], k[..., 0] = 5e5, -1e6
    hidden_from_all = ~mask.any(axis=-2)
    k[hidden_from_all, 0] = 0
    low = replace(example, arguments={**example.arguments, "Q": q, "K": k})
    reply = grade.answer(low)
    grade.within(reply.outputs[0], example.bounds.result, low, reply, "the result")


@check("SDPA-STABLE")
def test_extreme_scores(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-STABLE"))


@check("SDPA-LENGTHS")
def test_lengths_and_widths(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-LENGTHS"))


@check("SDPA-LONG")
def test_long_rows(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-LONG"))


@check("SDPA-LEADING-AXES")
def test_leading_axes(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-LEADING-AXES"))


@check("SDPA-EQUAL-AXES")
def test_equal_axes(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-EQUAL-AXES"))


@check("SDPA-UNBATCHED")
def test_no_leading_axis(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-UNBATCHED"))


@check("SDPA-EMPTY-BATCH", profile="standard")
def test_empty_batch(grade: Grader) -> None:
    grade.matches_definition(case("ordinary"), case("empty"))


# ---------------------------------------------------------------- laws


@check("SDPA-UNSEEN")
def test_hidden_contents_are_not_seen(grade: Grader) -> None:
    """Other hidden keys and values, even large ones, leave the result as it is."""
    example = grade.example(case("hidden-for-all"))
    k, v = (np.copy(example.arguments[name]) for name in "KV")
    k[..., [1, 4], :] *= -3
    v[..., [1, 4], :] = 1e4
    claim = "after hidden keys and values were replaced, the result"
    protocols.unaffected(grade, example, {"K": k, "V": v}, ..., ..., claim)


@check("SDPA-CONVEX", profile="standard")
def test_equal_values_come_back(grade: Grader) -> None:
    def law(sizes: tuple[int, ...]) -> None:
        example, draw = _drawn(grade, sizes, masked=True)
        batch, queries, keys, _, d_v, _ = sizes
        values = draw.normal(batch, 1, d_v).astype(example.arguments["V"].dtype)
        equal = np.repeat(values, keys, axis=1)
        grade.law(
            example,
            lambda f: _apply(f, example, V=equal),
            lambda f: f.array(np.repeat(values, queries, axis=1)),
            "the result for equal values",
            anchored=True,
        )

    grade.matches_definition(case("mask-weights"))
    grade.for_all(SIZES, law)


@check("SDPA-PERMUTATION", profile="standard")
def test_order_of_keys_and_queries(grade: Grader) -> None:
    def law(sizes: tuple[int, ...]) -> None:
        example, draw = _drawn(grade, sizes, masked=True)
        q, k, v, mask = (example.arguments[name] for name in (*ALL, "mask"))
        rows, columns = draw.permutation(sizes[1]), draw.permutation(sizes[2])
        moved = {
            "Q": q[:, rows],
            "K": k[:, columns],
            "V": v[:, columns],
            "mask": mask[rows][:, columns],
        }
        claim = "for permuted queries and keys, the result"
        protocols.unaffected(grade, example, moved, ..., (slice(None), rows), claim)

    grade.for_all(SIZES, law)


@check("SDPA-SUPERPOSITION", profile="standard")
def test_linear_in_the_values(grade: Grader) -> None:
    def law(sizes: tuple[int, ...]) -> None:
        example, draw = _drawn(grade, sizes, masked=False)
        first = example.arguments["V"]
        second = draw.normal(*first.shape).astype(first.dtype)
        grade.law(
            example,
            lambda f: _apply(f, example, V=first + second),
            lambda f: _apply(f, example) + _apply(f, example, V=second),
            "the result for a sum of values",
            anchored=True,
        )

    grade.for_all(SIZES, law)


@check("SDPA-COMMON-SHIFT", profile="standard")
def test_common_shift_of_the_keys(grade: Grader) -> None:
    def law(sizes: tuple[int, ...]) -> None:
        example, draw = _drawn(grade, sizes, masked=True)
        keys = example.arguments["K"]
        moved = keys + draw.normal(1, 1, sizes[3], scale=8.0).astype(keys.dtype)
        shifted = replace(example, arguments={**example.arguments, "K": moved})
        shifted = grade.bounded(shifted)
        grade.example_matches(shifted)
        claim = "before a common shift of all keys, the result"
        protocols.unaffected(grade, shifted, {"K": keys}, ..., ..., claim)

    grade.for_all(SIZES, law)


# ---------------------------------------------------------------- gradients


@check("SDPA-GRADIENT")
def test_gradients(grade: Grader) -> None:
    grade.matches_definition(*COMPONENT.cases_of("SDPA-GRADIENT"))


@check("SDPA-GRADIENT-HIDDEN")
def test_hidden_keys_get_no_gradient(grade: Grader) -> None:
    grade.matches_definition(case("hidden-for-all"))


@check("SDPA-BACKWARD-TWICE")
def test_backward_twice(grade: Grader) -> None:
    protocols.backward_twice(grade, case("gradient-mask"))


# ---------------------------------------------------------------- a function of its arguments


@check("SDPA-STRIDES")
def test_layouts(grade: Grader) -> None:
    for name in ALL:
        protocols.layouts(grade, case("mask-per-batch"), name)
        protocols.layouts(grade, case("ordinary"), name, ("expanded",))
    protocols.layouts(grade, case("mask"), "mask")


@check("SDPA-PURE")
def test_inputs_unchanged(grade: Grader) -> None:
    protocols.inputs_unchanged(grade, case("gradient-mask"), (*ALL, "mask"))
    protocols.inputs_unchanged(grade, case("ordinary"), ALL)


@check("SDPA-FRESH")
def test_result_is_fresh(grade: Grader) -> None:
    protocols.result_is_fresh(grade, case("mask-2d"), (*ALL, "mask"))
    protocols.result_is_fresh(grade, case("one-key"), ALL)
    protocols.result_is_fresh(grade, case("all-one"), ALL)


@check("SDPA-STATELESS")
def test_independent_of_other_calls(grade: Grader) -> None:
    protocols.repeats(grade, case("mask"))
    names = ("ordinary", "mask-causal", "mask-anti-causal", "axes-3", "no-mask")
    protocols.independent_of_other_calls(grade, *map(case, names))


@check("SDPA-MODES")
def test_without_gradients(grade: Grader) -> None:
    protocols.without_gradients(grade, case("mask-2d"))


@check("SDPA-DEVICE")
def test_result_device(grade: Grader) -> None:
    protocols.result_device(grade, case("ordinary"))


# ---------------------------------------------------------------- dtypes


@check("SDPA-HALF", dtypes=HALF)
def test_half_is_accepted(grade: Grader) -> None:
    protocols.accepted(grade, *COMPONENT.cases_of("SDPA-HALF-VALUES"), case("half-gradient"))


@check("SDPA-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_values_in_other_dtypes(grade: Grader) -> None:
    protocols.right_where_answered(grade, *COMPONENT.cases_of("SDPA-HALF-VALUES"))


@check("SDPA-FLOAT64", dtypes=("float64",), profile="standard")
def test_float64_is_accepted(grade: Grader) -> None:
    protocols.accepted(grade, *COMPONENT.cases_of("SDPA-FLOAT64"))


# ---------------------------------------------------------------- left open


@check("SDPA-NOTHING-VISIBLE")
def test_query_that_sees_nothing(grade: Grader) -> None:
    def describe(result: np.ndarray) -> str:
        row = result[:, 2]
        if np.isnan(row).all():
            return "a query that sees no key gets NaN"
        if (row == 0).all():
            return "a query that sees no key gets zeros"
        return "a query that sees no key gets finite numbers other than zero"

    protocols.observe(grade, case("nothing-visible"), describe)


@check("SDPA-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, case("mask-2d"))
