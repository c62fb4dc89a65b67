"""The definitions of positions and of the next token, against torch, mpmath and differences."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import torch

from conformance.components.next_token.cases import COMPONENT as NEXT_TOKEN
from conformance.components.next_token.oracle import distance_from_cut, next_token
from conformance.components.rope.cases import COMPONENT as ROPE
from conformance.components.rope.oracle import inverse_frequencies, rope
from conformance.components.rotation.oracle import rotation
from conformance.components.sinusoidal.oracle import sinusoidal
from conformance.numerics import array as m
from conformance.numerics import ensemble
from conformance.numerics.arithmetic import Arithmetic, Honest, Perturbed
from conformance.numerics.array import Array
from conformance.numerics.draw import Draw
from conformance.numerics.dtypes import FLOAT32
from conformance.numerics.ensemble import Question

ROUNDINGS = 2.0**-43
"""Agreement of two float64 evaluations of sines: four roundoffs of an angle of 300 radians."""


def value(oracle: Callable[..., Array], **arguments: Any) -> Any:
    return ensemble.evaluate(Question(oracle, arguments), Arithmetic())[0]


def gradient(oracle: Callable[..., Array], name: str, cotangent: Any, **arguments: Any) -> Any:
    question = Question(oracle, arguments, wrt=(name,), cotangent=cotangent)
    return ensemble.evaluate(question, Arithmetic())[1]


def central_difference(f: Callable[[Any], Any], x: Any, cotangent: Any, step: float = 1e-5) -> Any:
    """Derivative of sum(f(x) * cotangent), entry by entry."""
    slopes = np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        move = np.zeros_like(x)
        move[index] = step
        slopes[index] = ((f(x + move) - f(x - move)) * cotangent).sum() / (2 * step)
    return slopes


def agree(left: Any, right: Any, roundings: float = ROUNDINGS) -> None:
    left, right = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    assert left.shape == right.shape
    assert np.abs(left - right).max() <= roundings * max(1.0, np.abs(right).max())


# ---------------------------------------------------------------- rope


def turned_by_torch(x: Any, positions: Any, theta: float) -> Any:
    """Pairs as complex numbers times exp(i angle), in complex128."""
    d = x.shape[-1]
    frequency = theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = torch.from_numpy(positions)[..., None] * frequency
    pairs = torch.view_as_complex(torch.from_numpy(x).reshape(*x.shape[:-1], d // 2, 2))
    return torch.view_as_real(pairs * torch.exp(1j * angle)).flatten(-2).numpy()


@pytest.mark.parametrize("theta", [1.5, 100.0, 10000.0, 500000.0])
@pytest.mark.parametrize(
    ("shape", "positions"),
    [((2, 5, 8), (5,)), ((3, 5, 2), (3, 5)), ((2, 3, 4, 6), (2, 1, 4)), ((3, 4, 10), (1, 4))],
)
def test_rope_is_a_complex_product(
    theta: float, shape: tuple[int, ...], positions: tuple[int, ...]
) -> None:
    draw = Draw("rope", theta, shape)
    x, where = draw.normal(*shape), draw.integers(0, 200, *positions)
    mine = value(
        rope,
        d_k=shape[-1],
        theta=theta,
        max_seq_len=200,
        in_query_or_key=x,
        token_positions=where,
    )
    agree(mine, turned_by_torch(x, where, theta))


@pytest.mark.parametrize(("position", "pair"), [(1, 0), (4096, 0), (4095, 3), (131071, 2)])
def test_rope_at_fifty_digits(position: int, pair: int) -> None:
    x = np.zeros((1, 8))
    x[0, 2 * pair : 2 * pair + 2] = (0.5, -1.25)
    mine = value(
        rope,
        d_k=8,
        theta=500000.0,
        max_seq_len=position + 1,
        in_query_or_key=x,
        token_positions=np.array([position]),
    )
    with mpmath.workdps(50):
        angle = position * mpmath.mpf(500000) ** (-mpmath.mpf(2 * pair) / 8)
        cosine, sine = mpmath.cos(angle), mpmath.sin(angle)
        wanted = [0.5 * cosine + 1.25 * sine, 0.5 * sine - 1.25 * cosine]
    got = mine[0, 2 * pair : 2 * pair + 2]
    agree(got, [float(number) for number in wanted], roundings=2.0**-52 * (4 + position))


def test_rope_gradient_turns_back() -> None:
    draw = Draw("rope-gradient")
    x, cotangent = draw.normal(2, 3, 4), draw.normal(2, 3, 4)
    arguments: dict[str, Any] = {
        "d_k": 4,
        "theta": 100.0,
        "max_seq_len": 60,
        "token_positions": np.array([[7, 0, 50], [3, 3, 1]]),
    }
    mine = gradient(rope, "in_query_or_key", cotangent, **arguments, in_query_or_key=x)
    differences = central_difference(
        lambda rows: value(rope, **arguments, in_query_or_key=rows), x, cotangent
    )
    agree(mine, differences, roundings=1e-9)
    arguments["token_positions"] = -arguments["token_positions"]
    agree(mine, value(rope, **arguments, in_query_or_key=cotangent))


@pytest.mark.parametrize("base", [1.5, 100.0, 10000.0, 500000.0])
def test_frequencies_in_float32_have_float32_accuracy(base: float) -> None:
    """All forms of all members, against float64; the exponent costs about its own size more."""

    def frequencies(arithmetic: Arithmetic) -> Any:
        return inverse_frequencies(m.fresh(np.zeros(1), FLOAT32, arithmetic), 16, base).value

    exact = frequencies(Arithmetic())
    agree(exact, base ** (-np.arange(0, 16, 2) / 16))
    allowed = (4 + 4 * np.log(base)) * FLOAT32.unit
    forms = set()
    for member in ensemble.members():
        found = frequencies(member)
        assert (np.abs(found / exact - 1) <= allowed).all()
        forms.add(type(member))
    assert forms == {Perturbed, Honest}


def test_only_two_requirements_reach_the_end_of_a_table() -> None:
    """A table that is one row short is then told apart from other mistakes."""
    expected = {"ROPE-TABLE-END", "ROPE-BEYOND-TABLE"}
    for case in ROPE.cases:
        for seed in range(5):
            arguments = case.arguments("float32", seed)
            last = arguments["token_positions"].max(initial=0)
            if last >= arguments["max_seq_len"] - 1:
                assert case.requirement in expected, case.name


# ---------------------------------------------------------------- sinusoidal and rotation


@pytest.mark.parametrize("shape", [(), (7,), (2, 3)])
@pytest.mark.parametrize("width", [2, 6, 64])
def test_sinusoidal_is_a_complex_exponential(width: int, shape: tuple[int, ...]) -> None:
    positions = np.asarray(Draw("sinusoidal", width, shape).integers(0, 300, *shape))
    frequency = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    turns = torch.exp(1j * (torch.from_numpy(positions)[..., None] * frequency))
    wanted = torch.stack((turns.imag, turns.real), dim=-1).flatten(-2)
    mine = value(sinusoidal, d_model=width, max_seq_len=300, token_positions=positions)
    agree(mine, wanted.numpy())


def test_sinusoidal_at_fifty_digits() -> None:
    positions = np.array([1, 301, 4096])
    mine = value(sinusoidal, d_model=6, max_seq_len=5000, token_positions=positions)
    with mpmath.workdps(50):
        for row, position in zip(mine, positions.tolist(), strict=True):
            for j, entry in enumerate(row):
                angle = position / mpmath.mpf(10000) ** (mpmath.mpf(2 * (j // 2)) / 6)
                wanted = mpmath.cos(angle) if j % 2 else mpmath.sin(angle)
                assert abs(entry - wanted) <= 2.0**-52 * (4 + position)


def test_rotation_is_the_exponential_of_the_quarter_turn() -> None:
    angles = Draw("rotation").uniform(3, 4, low=-7.0, high=7.0)
    generator = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    wanted = torch.linalg.matrix_exp(torch.from_numpy(angles)[..., None, None] * generator)
    agree(value(rotation, angles=angles), wanted.numpy())
    agree(value(rotation, angles=np.array(np.pi / 2)), [[0.0, -1.0], [1.0, 0.0]])


def test_rotation_gradient() -> None:
    draw = Draw("rotation-gradient")
    angles, cotangent = draw.uniform(5, low=-7.0, high=7.0), draw.normal(5, 2, 2)
    mine = gradient(rotation, "angles", cotangent, angles=angles)
    differences = central_difference(lambda t: value(rotation, angles=t), angles, cotangent)
    agree(mine, differences, roundings=1e-8)


# ---------------------------------------------------------------- next token


def next_by_torch(logits: Any, temperature: float, top_p: float | None) -> Any:
    """Ranks one after the other, in float64."""
    p = torch.softmax(torch.from_numpy(logits)[..., -1, :] / temperature, dim=-1)
    if top_p is None:
        return p.numpy()
    rows = []
    for row in p.reshape(-1, p.shape[-1]):
        kept, mass = torch.zeros_like(row), 0.0
        for token in row.argsort(descending=True, stable=True).tolist():
            if mass >= top_p:
                break
            kept[token] = row[token]
            mass += float(row[token])
        rows.append(kept / kept.sum())
    return torch.stack(rows).reshape(p.shape).numpy()


@pytest.mark.parametrize("top_p", [None, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
def test_next_token_against_torch(temperature: float, top_p: float | None) -> None:
    logits = Draw("next", temperature).normal(2, 3, 2, 11, scale=2.0)
    mine = value(next_token, logits=logits, temperature=temperature, top_p=top_p)
    agree(mine, next_by_torch(logits, temperature, top_p))


@pytest.mark.parametrize(
    ("top_p", "wanted"),
    [
        (0.3, (0, 1, 0, 0)),
        (0.6, (0, 2 / 3, 0, 1 / 3)),
        (0.8, (0, 5 / 9, 1.5 / 9, 2.5 / 9)),
        (0.95, (0.1, 0.5, 0.15, 0.25)),
        (1.0, (0.1, 0.5, 0.15, 0.25)),
        (None, (0.1, 0.5, 0.15, 0.25)),
        (1e-9, (0, 1, 0, 0)),
    ],
)
def test_next_token_by_hand(top_p: float | None, wanted: tuple[float, ...]) -> None:
    logits = np.log(np.array([[9.0, 9.0, 1.0, 1.0], [0.1, 0.5, 0.15, 0.25]]))
    agree(value(next_token, logits=logits, top_p=top_p), wanted)


def test_temperature_zero_takes_the_first_largest() -> None:
    logits = np.array([[[0.0, 3.0, 3.0, 1.0]], [[-5.0, -7.0, -6.0, -9.0]]])
    mine = value(next_token, logits=logits, temperature=0.0)
    assert mine.tolist() == [[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]


@pytest.mark.parametrize("top_p", [None, 0.6])
def test_next_token_gradient(top_p: float | None) -> None:
    logits = np.log(np.array([[[1.0, 1.0, 2.0, 3.0], [0.1, 0.5, 0.15, 0.25]]]))
    settings = {"temperature": 0.7, "top_p": top_p}
    cotangent = Draw("next-gradient").normal(1, 4)
    mine = gradient(next_token, "logits", cotangent, logits=logits, **settings)
    differences = central_difference(
        lambda changed: value(next_token, logits=changed, **settings), logits, cotangent
    )
    agree(mine, differences, roundings=1e-8)


def test_no_case_cuts_close_to_a_jump() -> None:
    """Otherwise a correct implementation could keep another token than the definition."""
    for case in NEXT_TOKEN.cases:
        for dtype in case.dtypes:
            for seed in range(5):
                assert _distance(case.arguments(dtype, seed)) >= 0.04, (case.name, dtype, seed)


def _distance(arguments: dict[str, Any]) -> float:
    top_p, temperature = arguments.get("top_p"), arguments.get("temperature", 1.0)
    last = arguments["logits"][..., -1, :]
    if top_p in (None, 0.0, 1.0) or temperature == 0 or last.shape[-1] == 1:
        return 1.0
    return distance_from_cut(last, temperature, top_p)
