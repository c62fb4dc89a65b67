"""Checks of softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from conformance.components.softmax.cases import COMPONENT, HALF, arguments
from conformance.numerics import array as m
from conformance.numerics.draw import Draw
from conformance.suite import Grader, check, protocols, transformed

case = COMPONENT.case
cases_of = COMPONENT.cases_of

SHAPES = st.tuples(
    st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(-3, 2), st.integers(0, 999)
)
"""Lengths of the axes, the axis to normalise (before it is taken modulo their number), seed."""


def _place(sample: tuple[list[int], int, int], law: str) -> tuple[list[int], int, Draw]:
    """Shape, a valid axis of it (counted from either end) and a stream of random numbers."""
    lengths, dim, seed = sample
    count = len(lengths)
    valid = -1 - (-1 - dim) % count if dim < 0 else dim % count
    lengths = [*lengths]
    lengths[valid] += 1  # a law about a single entry says little
    return lengths, valid, Draw(law, seed)


@check("SOFTMAX-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SOFTMAX-DEFINITION"))


@check("SOFTMAX-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("SOFTMAX-DIM")
def test_any_axis(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SOFTMAX-DIM"))


@check("SOFTMAX-SUM", profile="standard")
def test_sums_to_one(grade: Grader) -> None:
    def test(sample: tuple[list[int], int, int]) -> None:
        shape, dim, draw = _place(sample, "softmax sum")
        example = grade.made(arguments(draw.normal(*shape, scale=5.0), dim), "sum")
        grade.law(
            example,
            lambda f: m.total(f(**example.arguments), dim),
            lambda f: f.array(1.0),
            "the sum of probabilities",
        )
        grade.example_matches(example)  # the uniform distribution keeps the law as well

    grade.for_all(SHAPES, test)


@check("SOFTMAX-SHIFT")
def test_shift_invariance(grade: Grader) -> None:
    def test(sample: tuple[list[int], int, int]) -> None:
        shape, dim, draw = _place(sample, "softmax shift")
        x = draw.integers(-40, 41, *shape) / 8.0
        per_slice = [1 if axis == dim % len(shape) else n for axis, n in enumerate(shape)]
        shift: Any = draw.integers(-2000, 2001, *per_slice)
        plain, shifted = (grade.made(arguments(value, dim), "shift") for value in (x, x + shift))
        grade.law(
            shifted,
            lambda f: f(**shifted.arguments),
            lambda f: f(**plain.arguments),
            "f(x + c) = f(x)",
            anchored=True,
        )

    grade.for_all(SHAPES, test)


@check("SOFTMAX-ORDER", profile="standard")
def test_order_is_kept(grade: Grader) -> None:
    def test(sample: tuple[list[int], int, int]) -> None:
        shape, dim, draw = _place(sample, "softmax order")
        steps = draw.integers(1, 60, *shape) / 16.0
        x = np.cumsum(steps, axis=dim) + draw.integers(-300, 300)
        example = grade.made(arguments(x, dim), "order")
        reply = grade.example_matches(example)
        rises = np.diff(reply.outputs[0].astype(np.float64), axis=dim)
        grade.holds(
            bool((rises > 0).all() and (reply.outputs[0] >= 0).all()),
            "a larger entry does not have a larger probability",
            example,
            reply,
        )

    grade.for_all(SHAPES, test)


@check("SOFTMAX-PERMUTATION", profile="standard")
def test_permutation(grade: Grader) -> None:
    def test(sample: tuple[list[int], int, int]) -> None:
        shape, dim, draw = _place(sample, "softmax permutation")
        x = draw.normal(*shape, scale=3.0)
        order = draw.permutation(shape[dim])
        plain = grade.made(arguments(x, dim), "permutation")
        moved = grade.made(arguments(np.take(x, order, axis=dim), dim), "permutation")
        index = (slice(None),) * (dim % len(shape)) + (order,)
        grade.law(
            moved,
            lambda f: f(**moved.arguments),
            lambda f: m.take(f(**plain.arguments), index),
            "the result for reordered entries",
            anchored=True,
        )

    grade.for_all(SHAPES, test)


@check("SOFTMAX-EXTREME")
def test_extreme_entries(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SOFTMAX-EXTREME"))


@check("SOFTMAX-SLICES")
def test_slices_apart(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SOFTMAX-SLICES"))


@check("SOFTMAX-MINUS-INFINITY")
def test_minus_infinity(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SOFTMAX-MINUS-INFINITY"))


@check("SOFTMAX-CONSTANT")
def test_constant_slices(grade: Grader) -> None:
    grade.matches_definition(case("constant"))


@check("SOFTMAX-LONG-SLICES")
def test_long_slices(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SOFTMAX-LONG-SLICES"))


@check("SOFTMAX-SIZES")
def test_any_shape(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SOFTMAX-SIZES"))


@check("SOFTMAX-EMPTY")
def test_empty_batch(grade: Grader) -> None:
    grade.matches_definition(case("empty"), case("ordinary"))


@check("SOFTMAX-NOTHING-LEFT")
def test_nothing_left(grade: Grader) -> None:
    def describe(p: Any) -> str:
        return f"a row of minus infinity becomes {[float(number) for number in p[0]]}"

    protocols.observe(grade, case("nothing-left"), describe)


@check("SOFTMAX-GRADIENT")
def test_gradient(grade: Grader) -> None:
    grade.matches_definition(*cases_of("SOFTMAX-GRADIENT"))


@check("SOFTMAX-BACKWARD-TWICE")
def test_backward_twice(grade: Grader) -> None:
    protocols.backward_twice(grade, case("gradient"))


@check("SOFTMAX-PURE")
def test_input_unchanged(grade: Grader) -> None:
    for name in ("gradient", "gradient-middle-axis", "minus-infinity"):
        protocols.inputs_unchanged(grade, case(name), ("in_features",))


@check("SOFTMAX-FRESH")
def test_result_is_fresh(grade: Grader) -> None:
    for name in ("ordinary", "one-entry", "one-left"):
        protocols.result_is_fresh(grade, case(name), ("in_features",))


@check("SOFTMAX-STATELESS")
def test_repeats(grade: Grader) -> None:
    protocols.repeats(grade, case("ordinary"))


@check("SOFTMAX-STATELESS")
def test_independent_of_other_calls(grade: Grader) -> None:
    names = ("ordinary", "axis-0", "other-numbers", "equal-axes-1", "rank-4", "equal-axes-0")
    protocols.independent_of_other_calls(grade, *map(case, names))


@check("SOFTMAX-LAYOUT")
def test_layout(grade: Grader) -> None:
    kinds = ("transposed", "sliced", "expanded")
    protocols.layouts(grade, case("ordinary"), "in_features", kinds)
    protocols.layouts(grade, case("axis-1"), "in_features", ("transposed",))


@check("SOFTMAX-NO-GRAD")
def test_without_gradients(grade: Grader) -> None:
    protocols.without_gradients(grade, case("ordinary"))


@check("SOFTMAX-RESULT")
def test_result_dtype(grade: Grader) -> None:
    protocols.result_dtype(grade, case("ordinary"))


@check("SOFTMAX-RESULT")
def test_result_device(grade: Grader) -> None:
    protocols.result_device(grade, case("ordinary"))


@check("SOFTMAX-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_other_dtypes_are_right_where_answered(grade: Grader) -> None:
    protocols.right_where_answered(grade, *cases_of("SOFTMAX-HALF-VALUES"))


@check("SOFTMAX-HALF", dtypes=HALF)
def test_half_precision(grade: Grader) -> None:
    protocols.accepted(grade, *cases_of("SOFTMAX-HALF-VALUES"))


@check("SOFTMAX-HALF-SUM", dtypes=HALF)
def test_long_half_sum(grade: Grader) -> None:
    grade.matches_definition(case("half-long"))


@check("SOFTMAX-FLOAT64", dtypes=("float64",))
def test_float64(grade: Grader) -> None:
    protocols.accepted(grade, case("ordinary"), case("extreme"))


@check("SOFTMAX-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, case("ordinary"))
