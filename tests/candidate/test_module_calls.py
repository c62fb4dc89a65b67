"""What a use of a module class tells of signatures, and objects as arguments of a constructor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from conformance.candidate import frames
from conformance.candidate.frames import MalformedFrame
from conformance.candidate.inprocess import LocalCaller, local_caller
from conformance.candidate.messages import Argument, Built, ModuleCall, Outcome
from conformance.suite.signatures import match, spelled, ways_to_call

X = np.ones((2, 3, 4), dtype=np.float32)


class Gain(nn.Module):
    def __init__(self, size: int, *, dtype: Any = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((size,), 2.0, dtype=dtype))


class Scaled(nn.Module):
    def __init__(self, gain: nn.Module, /, *args: Any, **more: Any) -> None:
        super().__init__()
        self.gain = gain

    def forward(self, x: Tensor, token_positions: Tensor | None = None, *, scale: float) -> Tensor:
        return x * self.gain.weight


class Handed(nn.Module):
    def __init__(self, gain: Gain, table: int = 3) -> None:
        super().__init__()
        self.gain = gain
        self.register_buffer("table", torch.zeros(table))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gain.weight


@pytest.fixture(scope="module")
def caller() -> LocalCaller:
    return local_caller({"Gain": Gain, "Scaled": Scaled, "Handed": Handed})


def test_the_signature_alone_constructs_nothing(caller: LocalCaller) -> None:
    reply = caller.call(ModuleCall("Gain", {}, signature_only=True))
    assert reply.outcome is Outcome.PASSED
    assert reply.module["signature"] == (
        Argument("size", required=True, positional=True, keyword=True),
        Argument("dtype", required=False, positional=False, keyword=True),
    )
    assert "parameters" not in reply.module
    reply = caller.call(ModuleCall("Scaled", {}, signature_only=True))
    expected = Argument("gain", required=True, positional=True, keyword=False)
    assert reply.module["signature"] == (expected,)


def test_an_argument_may_be_an_object_of_another_class(caller: LocalCaller) -> None:
    gain = Built("Gain", {"size": 4, "dtype": "float32"})
    reply = caller.call(ModuleCall("Handed", {"gain": gain}, inputs=(X,)))
    np.testing.assert_array_equal(reply.outputs[0], 2 * X)
    [taken] = reply.module["forward"]
    assert taken.name == "x"
    missing = caller.call(ModuleCall("Handed", {"gain": Built("Nothing", {})}))
    assert missing.outcome is Outcome.NOT_IMPLEMENTED
    assert "no class named Nothing" in missing.message


def test_a_state_may_leave_tables_out(caller: LocalCaller) -> None:
    state = {"gain.weight": np.full(4, 5.0, dtype=np.float32)}
    keywords = {"gain": Built("Gain", {"size": 4})}
    reply = caller.call(ModuleCall("Handed", keywords, state=state, strict=False, inputs=(X,)))
    np.testing.assert_array_equal(reply.outputs[0], 5 * X)
    assert caller.call(ModuleCall("Handed", keywords, state=state)).outcome is Outcome.RAISED


@pytest.mark.parametrize(
    "entry",
    [
        "x",
        {"name": "x"},
        {"name": "x", "required": 1, "positional": True, "keyword": True},
        {"name": "x", "required": True, "positional": True, "keyword": True, "more": True},
    ],
)
def test_a_signature_that_is_none_is_malformed(entry: Any) -> None:
    header = {"outcome": "passed", "module": {"signature": [entry]}}
    with pytest.raises(MalformedFrame):
        frames.decode_reply(header, b"", ModuleCall("Gain", {}))


def arguments(*names: str) -> list[Argument]:
    """Parameters of those names, required unless they end in `?`."""
    return [Argument(name.rstrip("?"), not name.endswith("?"), True, True) for name in names]


def test_exact_names_go_before_other_spellings() -> None:
    assert spelled(("d_model", "d_ff"), ("hidden_dim", "dim")) == {
        "d_model": "dim",
        "d_ff": "hidden_dim",
    }
    assert spelled(("theta", "d_model"), ("hidden_dim", "theta")) == {
        "theta": "theta",
        "d_model": "hidden_dim",
    }


def test_spare_values_are_given_only_where_they_are_asked_for() -> None:
    needed, known, spare = {"d_model": 8}, {"theta": 3.0}, {"eps": 1e-5, "bias": False}
    found = match(arguments("d_model", "eps", "bias?"), needed, known, spare)
    assert found.keywords == {"d_model": 8, "eps": 1e-5}
    found = match(arguments("dim", "rope_theta?", "other?"), needed, known, spare)
    assert found.keywords == {"dim": 8, "rope_theta": 3.0}


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        (None, "cannot be inspected"),
        (arguments("width"), "does not take d_model"),
        (arguments("d_model", "config"), "more than is known: config"),
        ([Argument("d_model", True, True, False)], "does not take d_model"),
    ],
)
def test_a_constructor_that_is_not_known_is_left_alone(signature: Any, words: str) -> None:
    assert words in match(signature, {"d_model": 8}, {}, {}).problem


@pytest.mark.parametrize(
    ("forward", "shapes"),
    [
        (None, [None]),
        (arguments("x"), [None]),
        (arguments("x", "mask?"), [None]),
        (arguments("x", "token_positions?"), [None, (3,), (1, 3), (2, 3)]),
        (arguments("x", "pos"), [(3,), (1, 3), (2, 3)]),
        (arguments("x", "start_pos"), []),
        (arguments("x", "rope", "token_positions"), []),
        ([*arguments("x"), Argument("mask", True, False, True)], []),
    ],
)
def test_positions_are_given_where_forward_takes_them(forward: Any, shapes: list[Any]) -> None:
    ways = ways_to_call(forward, X)
    assert [way[1].shape if len(way) > 1 else None for way in ways] == shapes
