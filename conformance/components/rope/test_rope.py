"""Checks of rotary position embedding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from conformance.components.rope.cases import COMPONENT, X
from conformance.components.rope.inputs import arguments
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.numerics.draw import Draw
from conformance.suite import Grader, check, modules, protocols, transformed
from conformance.suite.check import HALF
from conformance.suite.grader import Example, Subject

BOTH = (*X, "token_positions")
LENGTH = 512
LONGEST = 131072


def _of(requirement: str) -> Any:
    return COMPONENT.cases_of(requirement)


# ---------------------------------------------------------------- values


@check("ROPE-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-DEFINITION"))


@check("ROPE-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("ROPE-PAIRS")
def test_neighbours_are_paired(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-PAIRS"))


@check("ROPE-DIRECTION")
def test_direction(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-DIRECTION"))


@check("ROPE-FREQUENCIES")
def test_frequencies(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-FREQUENCIES"))


@check("ROPE-THETA")
def test_theta(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-THETA"))


@check("ROPE-POSITIONS")
def test_positions(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-POSITIONS"))


@check("ROPE-POSITIONS-PER-ROW")
def test_positions_per_row(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-POSITIONS-PER-ROW"))


@check("ROPE-TABLE-END")
def test_end_of_table(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-TABLE-END"))


@check("ROPE-FAR-POSITIONS")
def test_far_positions(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-FAR-POSITIONS"))


@check("ROPE-IDENTITY")
def test_identity_at_position_zero(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-IDENTITY"))


@check("ROPE-LEADING-AXES")
def test_leading_axes(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-LEADING-AXES"))


@check("ROPE-SIZES")
def test_sizes(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-SIZES"))


@check("ROPE-ONE-SEQUENCE")
def test_one_sequence(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-ONE-SEQUENCE"))


@check("ROPE-EMPTY")
def test_empty_batch(grade: Grader) -> None:
    grade.matches_definition(COMPONENT.case("ordinary"), COMPONENT.case("empty"))


@check("ROPE-INT32-POSITIONS")
def test_int32_positions(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-INT32-POSITIONS"))


# ---------------------------------------------------------------- laws


def _rows(example: tuple[int, int, float], count: int) -> Any:
    """Random rows (1, count, 2 * pairs) in the format of an example (seed, pairs, theta)."""
    seed, pairs, _ = example
    return Draw("rope-law", seed).normal(1, count, 2 * pairs).astype(np.float32)


# A width of 2 is a matter of ROPE-SIZES; here it would hide what else goes wrong.
shapes = st.tuples(
    st.integers(0, 2**20), st.integers(2, 4), st.sampled_from((100.0, 10000.0, 1.5, 500000.0))
)
places = st.integers(0, LENGTH // 2 - 1)


def _made(grade: Grader, x: Any, positions: Any, theta: float, length: int = LENGTH) -> Example:
    return grade.made(arguments(x, positions, theta, length), "law", "rows and positions at random")


def _turned_by_position(grade: Grader, example: Example) -> None:
    """A law holds emptily where the position changes nothing, or where rows lose their features."""
    here = grade.answer(example)
    flat = np.ptp(here.outputs[0].astype(np.float64), axis=-1) == 0
    grade.holds(not flat.all(), "all features of a row are the same", example, here)
    positions = example.arguments["token_positions"]
    moved = {**example.arguments, "token_positions": (positions + 1) % LENGTH}
    there = grade.answer(replace(example, arguments=moved))
    grade.holds(
        not np.array_equal(here.outputs[0], there.outputs[0]),
        "the result is the same one position further on: rows are not turned at all",
        example,
        here,
    )


@check("ROPE-NORM")
def test_keeps_length(grade: Grader) -> None:
    def test(drawn: Any) -> None:
        shape, first, second = drawn
        x = _rows(shape, 2)
        example = _made(grade, x, [first, second], shape[2])
        grade.law(
            example,
            lambda f: m.total(m.square(f(**example.arguments))),
            lambda f: m.total(m.square(f.array(x))),
            "the squared length of the turned rows",
        )
        _turned_by_position(grade, example)

    grade.for_all(st.tuples(shapes, places, places), test)


def _score(f: Subject, example: Example, shift: Any) -> Array:
    """Score of the first row (query) and the second (key), both moved on by `shift`."""
    positions = example.arguments["token_positions"] + np.asarray(shift)
    turned = f(**{**example.arguments, "token_positions": positions})
    return m.total(turned[:, 0] * turned[:, 1])


@check("ROPE-RELATIVE")
def test_scores_depend_on_distance(grade: Grader) -> None:
    def test(drawn: Any) -> None:
        shape, query, key, shift = drawn
        example = _made(grade, _rows(shape, 2), [query, key], shape[2])
        grade.law(
            example,
            lambda f: _score(f, example, shift),
            lambda f: _score(f, example, 0),
            f"the score at positions {query + shift} and {key + shift}, against {query} and {key},",
        )
        _score_changes_with_distance(grade, example)

    grade.for_all(st.tuples(shapes, places, places, st.integers(1, LENGTH // 2)), test)


def _score_changes_with_distance(grade: Grader, example: Example) -> None:
    def score(further: int) -> float:
        positions = example.arguments["token_positions"] + np.array([0, further])
        moved = replace(example, arguments={**example.arguments, "token_positions": positions})
        turned = grade.answer(moved).outputs[0].astype(np.float64)
        return float((turned[0, 0] * turned[0, 1]).sum())

    grade.holds(
        score(0) != score(1),
        "the score is the same at another distance: it does not depend on positions at all",
        example,
        grade.answer(example),
    )


@check("ROPE-COMPOSITION", profile="standard")
def test_composition(grade: Grader) -> None:
    def test(drawn: Any) -> None:
        shape, first, second = drawn
        example = _made(grade, _rows(shape, 2), [first, 0], shape[2])

        def at(f: Subject, x: Any, position: int) -> Array:
            where = np.array([position, 0])
            return f(**{**example.arguments, "in_query_or_key": x, "token_positions": where})

        def twice(f: Subject) -> Array:
            once = at(f, example.arguments["in_query_or_key"], first)
            return at(f, once.value.astype(np.float32), second)

        grade.law(
            example,
            twice,
            lambda f: at(f, example.arguments["in_query_or_key"], first + second),
            f"turned by {first} and then by {second}, against {first + second} at once: the result",
        )
        _turned_by_position(grade, example)

    grade.for_all(st.tuples(shapes, places, places), test)


@check("ROPE-LINEARITY", profile="standard")
def test_linearity(grade: Grader) -> None:
    def test(drawn: Any) -> None:
        shape, first, second = drawn
        x, y = _rows(shape, 2), _rows((shape[0] + 1, *shape[1:]), 2)
        example = _made(grade, 2 * x - 3 * y, [first, second], shape[2])

        def turned(f: Subject, rows: Any) -> Array:
            return f(**{**example.arguments, "in_query_or_key": rows})

        grade.law(
            example,
            lambda f: turned(f, 2 * x - 3 * y),
            lambda f: 2.0 * turned(f, x) - 3.0 * turned(f, y),
            "2x - 3y turned, against 2 (x turned) - 3 (y turned): the result",
        )
        _turned_by_position(grade, example)

    grade.for_all(st.tuples(shapes, places, places), test)


@check("ROPE-LONG-CONTEXT", profile="standard")
def test_long_context(grade: Grader) -> None:
    for theta in (100.0, 10000.0, 500000.0):
        _far_from_the_start(grade, theta)


def _far_from_the_start(grade: Grader, theta: float) -> None:
    x = _rows((0, 2, 0.0), 2)
    example = _made(grade, x, [100, 71], theta, LONGEST)
    far = LONGEST - 1 - 100

    def moved(f: Subject) -> Array:
        positions = example.arguments["token_positions"] + far
        return f(**{**example.arguments, "token_positions": positions})

    grade.law(
        example,
        lambda f: m.total(m.square(moved(f))),
        lambda f: m.total(m.square(f.array(x))),
        f"the squared length at positions {LONGEST - 1} and {LONGEST - 30}",
    )
    grade.law(
        example,
        lambda f: _score(f, example, far),
        lambda f: _score(f, example, 0),
        f"the score at positions {LONGEST - 1} and {LONGEST - 30}, against 100 and 71,",
    )
    _score_changes_with_distance(grade, example)


# ---------------------------------------------------------------- gradients


@check("ROPE-GRADIENT")
def test_gradient(grade: Grader) -> None:
    grade.matches_definition(*_of("ROPE-GRADIENT"))


# ---------------------------------------------------------------- dtypes and devices


@check("ROPE-DTYPE")
def test_dtype(grade: Grader) -> None:
    protocols.result_dtype(grade, COMPONENT.case("ordinary"))


@check("ROPE-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_other_formats_where_answered(grade: Grader) -> None:
    protocols.right_where_answered(grade, *_of("ROPE-HALF-VALUES"))


@check("ROPE-HALF", dtypes=HALF)
def test_half(grade: Grader) -> None:
    protocols.accepted(grade, *_of("ROPE-HALF"))


@check("ROPE-FLOAT64", dtypes=("float64",))
def test_float64(grade: Grader) -> None:
    protocols.accepted(grade, *_of("ROPE-FLOAT64"))


@check("ROPE-DEVICE")
def test_device(grade: Grader) -> None:
    protocols.result_device(grade, COMPONENT.case("ordinary"))


# ---------------------------------------------------------------- memory and state


@check("ROPE-INPUTS-UNCHANGED")
def test_inputs_unchanged(grade: Grader) -> None:
    protocols.inputs_unchanged(grade, COMPONENT.case("gradient"), BOTH)
    protocols.inputs_unchanged(grade, COMPONENT.case("ordinary"), BOTH)


@check("ROPE-FRESH-RESULT")
def test_fresh_result(grade: Grader) -> None:
    protocols.result_is_fresh(grade, COMPONENT.case("ordinary"), BOTH)
    protocols.result_is_fresh(grade, COMPONENT.case("table-of-one"), BOTH)


@check("ROPE-NO-STATE")
def test_no_state(grade: Grader) -> None:
    protocols.repeats(grade, COMPONENT.case("ordinary"))
    protocols.independent_of_other_calls(grade, *_of("ROPE-NO-STATE"))


@check("ROPE-MEMORY-LAYOUT")
def test_memory_layout(grade: Grader) -> None:
    protocols.layouts(grade, COMPONENT.case("axes-2"), *X, ("swapped", "expanded"))
    protocols.layouts(grade, COMPONENT.case("axes-3"), *X, ("swapped",))
    kinds = ("transposed", "sliced", "expanded")
    protocols.layouts(grade, COMPONENT.case("row-by-row"), "token_positions", kinds)


@check("ROPE-STRIDED-FEATURES")
def test_strided_features(grade: Grader) -> None:
    protocols.layouts(grade, COMPONENT.case("axes-2"), *X, ("transposed", "sliced"))


@check("ROPE-AUTOGRAD-MODES")
def test_autograd_modes(grade: Grader) -> None:
    protocols.without_gradients(grade, COMPONENT.case("ordinary"))
    protocols.backward_twice(grade, COMPONENT.case("gradient"))


# ---------------------------------------------------------------- left open


@check("ROPE-BEYOND-TABLE")
def test_beyond_the_table(grade: Grader) -> None:
    protocols.observe(
        grade,
        COMPONENT.case("beyond"),
        lambda result: f"positions beyond max_seq_len are answered, with norm {_norm(result):.3g}",
    )


def _norm(values: Any) -> float:
    return float(np.sqrt(np.square(values).sum()))


@check("ROPE-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, COMPONENT.case("ordinary"))


# ---------------------------------------------------------------- module form

FORM = modules.ModuleForm(
    "RotaryPositionalEmbedding",
    constructor={"theta": "theta", "d_k": "d_k", "max_seq_len": "max_seq_len"},
    parameters={},
    inputs=("in_query_or_key", "token_positions"),
)


@check("ROPE-MODULE", module=FORM.class_name)
def test_module_is_built(grade: Grader) -> None:
    modules.constructs(grade, FORM, COMPONENT.case("ordinary"))


@check("ROPE-MODULE-STATE", module=FORM.class_name)
def test_module_state(grade: Grader) -> None:
    modules.state_dict(grade, FORM, COMPONENT.case("ordinary"))


@check("ROPE-MODULE-TABLE", module=FORM.class_name)
def test_module_over_the_whole_table(grade: Grader) -> None:
    for name in ("last-position", "whole-table", "short-sequence"):
        modules.forward_matches(grade, FORM, COMPONENT.case(name))


@check("ROPE-MODULE-FORWARD", module=FORM.class_name)
def test_module_forward(grade: Grader) -> None:
    modules.forward_matches(grade, FORM, COMPONENT.case("ordinary"))
