"""Checks of the sinusoidal position encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from conformance.components.sinusoidal.cases import COMPONENT, arguments
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.numerics.draw import Draw
from conformance.suite import Grader, check, protocols, transformed
from conformance.suite.grader import Example, Subject

POSITIONS = ("token_positions",)
LENGTH = 512
TABLE = 300


def _of(requirement: str) -> Any:
    return COMPONENT.cases_of(requirement)


# ---------------------------------------------------------------- values


@check("SINUSOIDAL-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*_of("SINUSOIDAL-DEFINITION"))


@check("SINUSOIDAL-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("SINUSOIDAL-INTERLEAVED")
def test_interleaved(grade: Grader) -> None:
    grade.matches_definition(*_of("SINUSOIDAL-INTERLEAVED"))


@check("SINUSOIDAL-FREQUENCIES")
def test_frequencies(grade: Grader) -> None:
    grade.matches_definition(*_of("SINUSOIDAL-FREQUENCIES"))


@check("SINUSOIDAL-POSITION-ZERO")
def test_position_zero(grade: Grader) -> None:
    grade.matches_definition(*_of("SINUSOIDAL-POSITION-ZERO"))


@check("SINUSOIDAL-POSITIONS")
def test_positions(grade: Grader) -> None:
    grade.matches_definition(*_of("SINUSOIDAL-POSITIONS"))


@check("SINUSOIDAL-TABLE-END")
def test_end_of_table(grade: Grader) -> None:
    grade.matches_definition(*_of("SINUSOIDAL-TABLE-END"))


@check("SINUSOIDAL-FAR-POSITIONS")
def test_far_positions(grade: Grader) -> None:
    grade.matches_definition(*_of("SINUSOIDAL-FAR-POSITIONS"))


@check("SINUSOIDAL-SHAPES")
def test_shapes(grade: Grader) -> None:
    grade.matches_definition(*_of("SINUSOIDAL-SHAPES"))


@check("SINUSOIDAL-ONE-OR-NONE")
def test_one_or_none(grade: Grader) -> None:
    grade.matches_definition(*_of("SINUSOIDAL-ONE-OR-NONE"))


@check("SINUSOIDAL-INT32-POSITIONS")
def test_int32_positions(grade: Grader) -> None:
    grade.matches_definition(*_of("SINUSOIDAL-INT32-POSITIONS"))


# ---------------------------------------------------------------- laws

widths = st.integers(1, 4).map(lambda pairs: 2 * pairs)
places = st.integers(0, LENGTH // 2 - 1)
distances = st.integers(1, LENGTH // 4)


def _made(grade: Grader, width: int, *positions: int) -> Example:
    return grade.made(arguments(positions, width, LENGTH), "law", "positions at random")


def _differ(grade: Grader, example: Example) -> None:
    """A law holds emptily where the position changes nothing; the first and last are not equal."""
    reply = grade.answer(example)
    first, last = reply.outputs[0][0], reply.outputs[0][-1]
    message = "different positions have the same encoding"
    grade.holds(not np.array_equal(first, last), message, example, reply)


@check("SINUSOIDAL-NORM")
def test_norm(grade: Grader) -> None:
    def test(drawn: Any) -> None:
        width, first, step = drawn
        example = _made(grade, width, first, first + step)
        _equally_long(grade, example)
        _differ(grade, example)

    grade.for_all(st.tuples(widths, places, distances), test)


@check("SINUSOIDAL-SHIFT")
def test_shift_is_a_rotation(grade: Grader) -> None:
    def test(drawn: Any) -> None:
        width, first, step = drawn
        example = _made(grade, width, first, step, first + step)

        def turned(f: Subject) -> Array:
            rows = f(**example.arguments)
            sine, cosine = rows[0, 0::2], rows[0, 1::2]
            by_sine, by_cosine = rows[1, 0::2], rows[1, 1::2]
            return m.stack(
                (sine * by_cosine + cosine * by_sine, cosine * by_cosine - sine * by_sine)
            )

        def further(f: Subject) -> Array:
            row = f(**example.arguments)[2]
            return m.stack((row[0::2], row[1::2]))

        grade.law(
            example,
            further,
            turned,
            f"the encoding of {first + step}, against that of {first} turned by that of {step},",
        )
        _differ(grade, example)

    grade.for_all(st.tuples(widths, places, distances), test)


def _products(f: Subject, example: Example) -> Array:
    """Scores of the encodings of neighbours in the list: first with second, third with fourth."""
    rows = f(**example.arguments)
    return m.total(rows[0::2] * rows[1::2])


@check("SINUSOIDAL-OWN-SCORE", profile="standard")
def test_own_score_depends_on_distance(grade: Grader) -> None:
    def test(drawn: Any) -> None:
        width, first, step, shift = drawn
        pair = (first, first + step)
        example = _made(grade, width, *pair, first + shift, first + step + shift)
        grade.law(
            example,
            lambda f: _products(f, example)[0],
            lambda f: _products(f, example)[1],
            f"the product of the encodings of {pair}, against both moved on by {shift},",
        )
        _differ(grade, example)

    grade.for_all(st.tuples(widths, places, distances, distances), test)


@check("SINUSOIDAL-CROSS-TERMS", profile="standard")
def test_cross_terms(grade: Grader) -> None:
    """The difference is compared with that of the definition, so that it cannot be nil."""

    def test(drawn: Any) -> None:
        width, first, step, shift = drawn
        example = _made(grade, width, first, first + step, first + shift, first + step + shift)
        x, y = Draw("content", width, first).signs(2, width) * 4.0
        content = np.stack((x, y))

        def change(f: Subject) -> Array:
            rows = f(**example.arguments)
            here, there = rows[:2] + f.array(content), rows[2:] + f.array(content)
            return m.total(there[0] * there[1]) - m.total(here[0] * here[1])

        grade.law(
            example,
            change,
            lambda f: f.array([_cross_terms(content, example)]),
            f"the change of the score of content plus encoding when both move on by {shift}",
        )

    grade.for_all(st.tuples(widths, places, distances, distances), test)


def _cross_terms(content: Any, example: Example) -> float:
    """x . (PE(n+s) - PE(n)) + y . (PE(m+s) - PE(m)) in float64."""
    positions = example.arguments["token_positions"].astype(np.float64)
    width = example.arguments["d_model"]
    angles = positions[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
    rows = np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(4, width)
    return float(content[0] @ (rows[3] - rows[1]) + content[1] @ (rows[2] - rows[0]))


@check("SINUSOIDAL-DISTINCT")
def test_distinct(grade: Grader) -> None:
    """Different points, all on one sphere: anything else would be different by accident."""
    example = grade.made(arguments(np.arange(TABLE), 6, TABLE), "whole table", "all positions")
    reply = grade.answer(example)
    rows = reply.outputs[0].reshape(TABLE, -1)
    count = len(np.unique(rows, axis=0))
    message = f"{TABLE} positions have only {count} different encodings"
    grade.holds(count == TABLE, message, example, reply)
    _equally_long(grade, example)


def _equally_long(grade: Grader, example: Example) -> None:
    wanted = np.full((*example.arguments["token_positions"].shape, 1), 0.5)
    grade.law(
        example,
        lambda f: m.total(m.square(f(**example.arguments))),
        lambda f: f.array(wanted * example.arguments["d_model"]),
        "the squared length of the encodings",
    )


# ---------------------------------------------------------------- dtype, memory, state


@check("SINUSOIDAL-DTYPE")
def test_dtype(grade: Grader) -> None:
    protocols.result_dtype(grade, COMPONENT.case("ordinary"))


@check("SINUSOIDAL-DEVICE")
def test_device(grade: Grader) -> None:
    protocols.result_device(grade, COMPONENT.case("ordinary"))


@check("SINUSOIDAL-INPUTS-UNCHANGED")
def test_inputs_unchanged(grade: Grader) -> None:
    protocols.inputs_unchanged(grade, COMPONENT.case("ordinary"), POSITIONS)
    protocols.inputs_unchanged(grade, COMPONENT.case("in-order"), POSITIONS)


@check("SINUSOIDAL-FRESH-RESULT")
def test_fresh_result(grade: Grader) -> None:
    for name in ("ordinary", "in-order", "whole-table"):
        protocols.result_is_fresh(grade, COMPONENT.case(name), POSITIONS)


@check("SINUSOIDAL-NO-STATE")
def test_no_state(grade: Grader) -> None:
    protocols.repeats(grade, COMPONENT.case("ordinary"))
    protocols.independent_of_other_calls(grade, *_of("SINUSOIDAL-NO-STATE"))


@check("SINUSOIDAL-MEMORY-LAYOUT")
def test_memory_layout(grade: Grader) -> None:
    kinds = ("transposed", "sliced", "expanded")
    protocols.layouts(grade, COMPONENT.case("shape-3x5"), *POSITIONS, kinds)


@check("SINUSOIDAL-AUTOGRAD-MODES")
def test_autograd_modes(grade: Grader) -> None:
    protocols.without_gradients(grade, COMPONENT.case("ordinary"))


# ---------------------------------------------------------------- left open


@check("SINUSOIDAL-ODD-WIDTH")
def test_odd_width(grade: Grader) -> None:
    protocols.observe(
        grade,
        COMPONENT.case("odd"),
        lambda result: f"width 5 is answered with shape {tuple(result.shape)}",
    )


@check("SINUSOIDAL-BEYOND-TABLE")
def test_beyond_the_table(grade: Grader) -> None:
    protocols.observe(
        grade,
        COMPONENT.case("beyond"),
        lambda result: f"positions beyond max_seq_len are answered, shape {tuple(result.shape)}",
    )


@check("SINUSOIDAL-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, COMPONENT.case("ordinary"))
