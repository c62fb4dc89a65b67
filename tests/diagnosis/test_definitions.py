"""Pieces of definitions, exchanged for the time of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from conformance.components.rmsnorm.oracle import mean_square, normalised_rows, with_gain
from conformance.definitions import Pieces, piece, pieces_used, replaced
from conformance.errors import InternalError
from conformance.numerics import ensemble
from conformance.numerics.arithmetic import Arithmetic
from conformance.numerics.array import Array
from conformance.suite.component import component


def value(name: str, pieces: Pieces | None = None, **changed: Any) -> Any:
    """The result of a component on the first of its cases, with other pieces."""
    owner = component(name)
    arguments = {**owner.cases[0].arguments("float64"), **changed}
    with replaced(pieces or {}):
        question = ensemble.Question(owner.oracle, arguments)
        return ensemble.evaluate(question, Arithmetic())[0]


def same(left: Any, right: Any) -> bool:
    return left.shape == right.shape and bool((np.abs(left - right) < 1e-12).all())


def without_gain(normalised: Array, gain: Array) -> Array:
    return normalised


def doubled(normalised: Array, gain: Array) -> Array:
    """Calls the piece that it stands for."""
    return 2.0 * with_gain(normalised, gain)


def of_doubled_rows(x: Array) -> Array:
    """Calls the piece that it stands for."""
    return mean_square(2.0 * x)


def test_a_piece_is_replaced_while_the_context_lasts() -> None:
    right = value("rmsnorm")
    plain = value("rmsnorm", weights=np.ones(12))
    assert same(value("rmsnorm", {"with_gain": without_gain}), plain)
    assert not same(right, plain)
    assert same(value("rmsnorm"), right)


def test_a_replacement_may_call_the_right_piece() -> None:
    assert same(value("rmsnorm", {"with_gain": doubled}), 2.0 * value("rmsnorm"))


def test_a_replacement_sees_the_other_replacements() -> None:
    """Twice the gain for rows that are taken for twice as large: that is nearly right again."""
    right = value("rmsnorm", eps=0.0)
    both: Mapping[str, Any] = {"with_gain": doubled, "mean_square": of_doubled_rows}
    assert same(value("rmsnorm", both, eps=0.0), right)


def test_one_replacement_inside_another_is_evaluated_too() -> None:
    def twice(x: Array, eps: float) -> Array:
        return normalised_rows(normalised_rows(x, eps), eps)

    nested: Mapping[str, Any] = {"normalised_rows": twice, "mean_square": of_doubled_rows}
    right = value("rmsnorm", eps=0.0)
    assert same(value("rmsnorm", nested, eps=0.0), right / 2.0)
    assert same(value("rmsnorm", {"normalised_rows": twice}, eps=0.0), right)


def test_contexts_nest_and_the_inner_one_wins() -> None:
    right = value("rmsnorm")
    with replaced({"with_gain": without_gain, "mean_square": of_doubled_rows}):
        assert same(value("rmsnorm", {"with_gain": doubled}, eps=0.0), value_without_eps())
        outer = value("rmsnorm")
    assert not same(outer, right)
    assert same(value("rmsnorm"), right)


def value_without_eps() -> Any:
    """What is right with eps 0, whatever is replaced around."""
    pieces = {"with_gain": with_gain.__wrapped__, "mean_square": mean_square.__wrapped__}
    return value("rmsnorm", pieces, eps=0.0)


def test_a_piece_is_replaced_inside_the_components_that_are_built_on_it() -> None:
    def without_sines(first: Array, second: Array, cosine: Array, sine: Array) -> Any:
        return first * cosine, second * cosine

    pieces = {"turned_pairs": without_sines}
    for name in ("rope", "multihead_self_attention_with_rope", "transformer_block"):
        assert not same(value(name, pieces), value(name)), name
    for name in ("rmsnorm", "multihead_self_attention"):
        assert same(value(name, pieces), value(name)), name


def test_a_whole_component_is_a_piece_of_a_larger_one() -> None:
    pieces = {"rmsnorm": lambda **arguments: arguments["in_features"]}
    assert not same(value("transformer_block", pieces), value("transformer_block"))


def test_what_was_in_force_is_restored_after_an_exception() -> None:
    def fails(*arguments: Any) -> Array:
        raise ValueError("no")

    right = value("rmsnorm")
    with pytest.raises(ValueError, match="no"):
        value("rmsnorm", {"mean_square": fails, "with_gain": doubled})
    assert same(value("rmsnorm"), right)
    with replaced({"with_gain": doubled}):
        with pytest.raises(ValueError, match="no"):
            value("rmsnorm", {"mean_square": fails, "with_gain": without_gain})
        assert same(value("rmsnorm"), 2.0 * right)


def test_names_that_no_piece_has_are_refused() -> None:
    with (
        pytest.raises(InternalError, match=r"called no_such_piece, nor_this$"),
        replaced({"with_gain": doubled, "no_such_piece": doubled, "nor_this": doubled}),
    ):
        pass


def test_two_pieces_cannot_have_one_name() -> None:
    def with_gain(normalised: Array, gain: Array) -> Array:
        return normalised

    with pytest.raises(InternalError, match="two pieces of definitions are called with_gain"):
        piece(with_gain)


def test_the_pieces_that_are_evaluated_are_known() -> None:
    with pieces_used() as outer:
        value("rope")
        with pieces_used() as inner:
            value("silu")
    assert {"rope", "joined_pairs", "inverse_frequencies"} <= outer
    assert "silu" in inner
    assert not inner & outer
