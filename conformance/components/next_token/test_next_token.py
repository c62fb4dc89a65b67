"""Checks of the next token's distribution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from conformance.components.next_token.cases import COMPONENT, LOGITS
from conformance.components.next_token.inputs import SIX, in_full
from conformance.components.next_token.oracle import nucleus
from conformance.numerics import array as m
from conformance.numerics.array import Array
from conformance.numerics.draw import Draw
from conformance.suite import Grader, check, protocols, transformed
from conformance.suite.check import HALF
from conformance.suite.grader import Example, Subject


def _of(requirement: str) -> Any:
    return COMPONENT.cases_of(requirement)


# ---------------------------------------------------------------- values


@check("NEXT-DEFINITION")
def test_definition(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-DEFINITION"))


@check("NEXT-DEFINITION")
def test_stored_inputs_in_other_forms(grade: Grader) -> None:
    transformed.asked_in_other_forms(grade)


@check("NEXT-LAST-POSITION")
def test_last_position(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-LAST-POSITION"))


@check("NEXT-DEFAULTS")
def test_defaults(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-DEFAULTS"))


@check("NEXT-TEMPERATURE")
def test_temperature(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-TEMPERATURE"))


@check("NEXT-GREEDY")
def test_greedy(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-GREEDY"))


@check("NEXT-GREEDY")
def test_greedy_ties_are_a_distribution(grade: Grader) -> None:
    """Which of several largest logits is taken is another requirement's matter."""
    example = grade.example(COMPONENT.case("greedy-ties"))
    reply = grade.answer(example)
    last = example.arguments["logits"][..., -1, :]
    below = last < last.max(axis=-1, keepdims=True)
    right = reply.outputs[0].shape == last.shape and not reply.outputs[0][below].any()
    message = "with several largest logits a smaller one has a probability that is not 0"
    grade.holds(right, message, example, reply)
    _sums_to_one(grade, example)


@check("NEXT-GREEDY-TIES")
def test_greedy_ties(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-GREEDY-TIES"))


@check("NEXT-TOP-P")
def test_top_p(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-TOP-P"))


@check("NEXT-CROSSING-TOKEN")
def test_crossing_token(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-CROSSING-TOKEN"))


@check("NEXT-RENORMALISED")
def test_renormalised(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-RENORMALISED"))


@check("NEXT-OUTSIDE-NUCLEUS")
def test_outside_the_nucleus(grade: Grader) -> None:
    for case in (*_of("NEXT-OUTSIDE-NUCLEUS"), COMPONENT.case("six-70")):
        for example in grade.examples(case):
            _zero_outside(grade, example)


def _zero_outside(grade: Grader, example: Example) -> None:
    last = example.arguments["logits"][..., -1, :]
    kept = nucleus(last, example.arguments["temperature"], example.arguments["top_p"])
    reply = grade.answer(example)
    got = reply.outputs[0]
    right = got.shape == kept.shape and bool(((got > 0) == kept).all() and (got >= 0).all())
    message = "other tokens than those of the nucleus have a probability that is not 0"
    grade.holds(right, message, example, reply)


@check("NEXT-TOP-P-ALL")
def test_top_p_one(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-TOP-P-ALL"))


@check("NEXT-TOP-P-TINY")
def test_top_p_tiny(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-TOP-P-TINY"))


@check("NEXT-TEMPERATURE-FIRST")
def test_temperature_before_top_p(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-TEMPERATURE-FIRST"))


@check("NEXT-ROWS")
def test_rows(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-ROWS"))


@check("NEXT-EXTREME")
def test_extreme(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-EXTREME"))


@check("NEXT-FORBIDDEN-TOKENS")
def test_forbidden_tokens(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-FORBIDDEN-TOKENS"))


@check("NEXT-LEADING-AXES")
def test_leading_axes(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-LEADING-AXES"))


@check("NEXT-SIZES")
def test_sizes(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-SIZES"))


@check("NEXT-EMPTY", profile="standard")
def test_empty_batch(grade: Grader) -> None:
    grade.matches_definition(COMPONENT.case("nothing-given"), *_of("NEXT-EMPTY"))


# ---------------------------------------------------------------- laws

seeds = st.integers(0, 2**20)
sizes = st.integers(2, 8)
temperatures = st.sampled_from((1.0, 0.5, 2.0, 0.8))


def _made(grade: Grader, last: Any, **settings: Any) -> Example:
    """One sequence of two positions that ends in `last` (vocab,)."""
    logits = np.stack((last[::-1], last))[None].astype(np.float32)
    arguments = in_full({"logits": logits, **settings})
    return grade.made(arguments, "law", "logits at random")


def _depends_on_logits(grade: Grader, example: Example) -> None:
    """A law holds emptily where the logits change nothing."""
    reply = grade.answer(example)
    rolled = np.roll(example.arguments["logits"], 1, axis=-1)
    other = grade.answer(replace(example, arguments={**example.arguments, "logits": rolled}))
    grade.holds(
        not np.array_equal(reply.outputs[0], other.outputs[0]),
        "the distribution is the same for other logits",
        example,
        reply,
    )


@check("NEXT-SUM")
def test_sum_is_one(grade: Grader) -> None:
    def test(drawn: Any) -> None:
        seed, vocab, temperature = drawn
        last = Draw("next-law", seed).normal(vocab, scale=3.0)
        example = _made(grade, last, temperature=temperature)
        _sums_to_one(grade, example)
        _nothing_negative(grade, example)
        _depends_on_logits(grade, example)

    grade.for_all(st.tuples(seeds, sizes, temperatures), test)


def _sums_to_one(grade: Grader, example: Example) -> None:
    rows = example.arguments["logits"].shape[:-2]
    grade.law(
        example,
        lambda f: m.total(f(**example.arguments)),
        lambda f: f.array(np.ones((*rows, 1))),
        "the sum of the probabilities",
    )


def _nothing_negative(grade: Grader, example: Example) -> None:
    """Logits below 0 do not come back as they are."""
    reply = grade.answer(example)
    least = float(reply.outputs[0].min())
    grade.holds(least >= 0.0, f"a probability is negative: {least:.6g}", example, reply)


@check("NEXT-SHIFT")
def test_shift(grade: Grader) -> None:
    def test(drawn: Any) -> None:
        seed, vocab, temperature, shift = drawn
        example = _made(grade, Draw("next-law", seed).normal(vocab), temperature=temperature)
        moved = {**example.arguments, "logits": example.arguments["logits"] + np.float32(shift)}
        grade.law(
            example,
            lambda f: f(**moved),
            lambda f: f(**example.arguments),
            f"the distribution with {shift} added to all logits, against that without,",
        )
        _depends_on_logits(grade, example)

    grade.for_all(st.tuples(seeds, sizes, temperatures, st.integers(-500, 500)), test)


@check("NEXT-VOCABULARY-ORDER")
def test_vocabulary_order(grade: Grader) -> None:
    grade.matches_definition(*_of("NEXT-VOCABULARY-ORDER"))


@check("NEXT-VOCABULARY-ORDER", profile="standard")
def test_reordered_vocabulary(grade: Grader) -> None:
    def test(seed: int) -> None:
        draw = Draw("next-law", seed)
        last = np.log(np.array(SIX))[draw.permutation(6)]
        example = _made(grade, last, temperature=1.0, top_p=0.7)
        order = draw.permutation(6)
        other = {**example.arguments, "logits": example.arguments["logits"][..., order]}

        def reordered(f: Subject) -> Array:
            return f(**example.arguments)[..., order]

        claim = "the distribution over a vocabulary in another order"
        grade.law(example, lambda f: f(**other), reordered, claim)
        _nothing_negative(grade, example)
        _depends_on_logits(grade, example)

    grade.for_all(seeds, test)


@check("NEXT-LAST-POSITION", profile="standard")
def test_other_positions_change_nothing(grade: Grader) -> None:
    def test(drawn: Any) -> None:
        seed, vocab, temperature = drawn
        draw = Draw("next-law", seed)
        example = _made(grade, draw.normal(vocab) - 10.0, temperature=temperature)
        logits = example.arguments["logits"].copy()
        logits[:, 0] = draw.normal(1, vocab, scale=20.0)
        other = {**example.arguments, "logits": logits}
        grade.law(
            example,
            lambda f: f(**other),
            lambda f: f(**example.arguments),
            "the distribution after another earlier position",
        )
        _nothing_negative(grade, example)
        _depends_on_logits(grade, example)

    grade.for_all(st.tuples(seeds, sizes, temperatures), test)


# ---------------------------------------------------------------- dtypes and devices


@check("NEXT-DTYPE")
def test_dtype(grade: Grader) -> None:
    for name in ("ordinary", "greedy", "six-70"):
        protocols.result_dtype(grade, COMPONENT.case(name))


@check("NEXT-HALF-VALUES", dtypes=(*HALF, "float64"))
def test_other_formats_where_answered(grade: Grader) -> None:
    protocols.right_where_answered(grade, *_of("NEXT-HALF-VALUES"))


@check("NEXT-HALF", dtypes=HALF)
def test_half(grade: Grader) -> None:
    protocols.accepted(grade, *_of("NEXT-HALF-VALUES"))


@check("NEXT-FLOAT64", dtypes=("float64",))
def test_float64(grade: Grader) -> None:
    protocols.accepted(grade, *_of("NEXT-FLOAT64"))


@check("NEXT-DEVICE")
def test_device(grade: Grader) -> None:
    protocols.result_device(grade, COMPONENT.case("ordinary"))


# ---------------------------------------------------------------- memory and state


@check("NEXT-INPUTS-UNCHANGED")
def test_inputs_unchanged(grade: Grader) -> None:
    for name in ("temperature-half", "six-70", "greedy"):
        protocols.inputs_unchanged(grade, COMPONENT.case(name), LOGITS)


@check("NEXT-FRESH-RESULT")
def test_fresh_result(grade: Grader) -> None:
    for name in ("ordinary", "six-70", "greedy"):
        protocols.result_is_fresh(grade, COMPONENT.case(name), LOGITS)


@check("NEXT-NO-STATE")
def test_no_state(grade: Grader) -> None:
    protocols.repeats(grade, COMPONENT.case("six-70"))
    protocols.independent_of_other_calls(grade, *_of("NEXT-NO-STATE"))


@check("NEXT-MEMORY-LAYOUT")
def test_memory_layout(grade: Grader) -> None:
    kinds = ("transposed", "sliced", "expanded")
    protocols.layouts(grade, COMPONENT.case("ordinary"), *LOGITS, kinds)
    protocols.layouts(grade, COMPONENT.case("six-70"), *LOGITS, kinds)


@check("NEXT-AUTOGRAD-MODES")
def test_autograd_modes(grade: Grader) -> None:
    protocols.without_gradients(grade, COMPONENT.case("ordinary"))
    protocols.without_gradients(grade, COMPONENT.case("six-70"))


# ---------------------------------------------------------------- left open


@check("NEXT-CUT-TIES")
def test_ties_at_the_cut(grade: Grader) -> None:
    protocols.observe(
        grade,
        COMPONENT.case("ties-at-the-cut"),
        lambda result: f"of three equal tokens at the cut {int((result > 0).sum())} are kept",
    )


@check("NEXT-OUT-OF-RANGE")
def test_out_of_range(grade: Grader) -> None:
    for name in ("negative-temperature", "top-p-zero"):
        protocols.observe(
            grade,
            COMPONENT.case(name),
            lambda result, name=name: f"{name} is answered, with sum {result.sum():.3g}",
        )


@check("NEXT-INFERENCE-MODE")
def test_inference_mode(grade: Grader) -> None:
    protocols.in_inference_mode(grade, COMPONENT.case("ordinary"))
