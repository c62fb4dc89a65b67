"""Rotary embedding against complex numbers, the sinusoidal encoding against its formula."""

import math

import pytest
import torch
from torch import Tensor

from reference_impl import RotaryPositionalEmbedding, SinusoidalEncoding, rotation_matrix


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def complex_rope(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Each pair as one complex number, multiplied by exp(i * angle); x is float64."""
    d_k = x.shape[-1]
    frequencies = torch.tensor([theta ** (-2 * i / d_k) for i in range(d_k // 2)])
    turns = torch.exp(1j * positions[..., None].double() * frequencies.double())
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], d_k // 2, 2).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2)


@pytest.mark.parametrize(
    ("shape", "positions_shape"),
    [
        ((5, 6), (5,)),
        ((2, 5, 6), (5,)),
        ((2, 3, 5, 6), (5,)),
        ((2, 3, 5, 6), (1, 5)),
        ((2, 3, 5, 6), (2, 1, 5)),
        ((2, 1, 2, 3, 5, 2), (5,)),
        ((3, 5, 6), (3, 5)),
        ((1, 1, 2), (1,)),
        ((0, 3, 5, 6), (5,)),
        ((2, 0, 6), (0,)),
    ],
)
def test_rope_agrees_with_complex_numbers(
    shape: tuple[int, ...], positions_shape: tuple[int, ...]
) -> None:
    rope = RotaryPositionalEmbedding(theta=700.0, d_k=shape[-1], max_seq_len=50)
    x = torch.randn(shape, dtype=torch.float64)
    positions = torch.randint(50, positions_shape)
    # the frequencies of `complex_rope` pass through float32, hence 1e-5
    expected = complex_rope(x, positions, 700.0)
    torch.testing.assert_close(rope(x, positions), expected, rtol=1e-5, atol=1e-5)


def test_rope_keeps_the_shape_of_its_input() -> None:
    rope = RotaryPositionalEmbedding(100.0, 4, 8)
    assert rope(torch.randn(3, 4), torch.tensor([[0, 1, 2]])).shape == (3, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("position", [0, 1, 4095, 131071])
def test_rope_is_accurate_up_to_the_last_position(dtype: torch.dtype, position: int) -> None:
    rope = RotaryPositionalEmbedding(theta=1e4, d_k=8, max_seq_len=position + 1)
    x = torch.randn(1, 8).to(dtype)
    rotated = rope(x, torch.tensor([position]))
    assert rotated.dtype == dtype
    expected = []
    for i, (a, b) in enumerate(x[0].double().reshape(-1, 2).tolist()):
        angle = position * 1e4 ** (-2 * i / 8)
        cos, sin = math.cos(angle), math.sin(angle)
        expected += [a * cos - b * sin, a * sin + b * cos]
    error = (rotated[0].double() - torch.tensor(expected, dtype=torch.float64)).abs().max()
    roundoff = max(torch.finfo(dtype).eps / 2, 1e-12)  # at 1e5 radians, 1e-11 is left of float64
    assert error <= 3 * roundoff * x.abs().max().double() + 1e-10 * (dtype == torch.float64)


def test_scores_of_rotated_rows_depend_on_the_distance_only() -> None:
    rope = RotaryPositionalEmbedding(theta=50.0, d_k=8, max_seq_len=100)
    q, k = torch.randn(2, 1, 8, dtype=torch.float64)

    def score(m: int, n: int) -> Tensor:
        product: Tensor = rope(q, torch.tensor([m])) * rope(k, torch.tensor([n]))
        return product.sum()

    torch.testing.assert_close(score(3, 7), score(90, 94))
    torch.testing.assert_close(score(5, 5), (q * k).sum())
    assert not torch.isclose(score(3, 7), score(3, 8))


def test_rope_has_the_gradient_of_a_rotation() -> None:
    rope = RotaryPositionalEmbedding(theta=50.0, d_k=4, max_seq_len=10)
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: rope(x, torch.tensor([7, 0, 3])), (x,))


def test_tables_are_not_shared_between_modules() -> None:
    x, last = torch.randn(1, 4), torch.tensor([5])
    first = RotaryPositionalEmbedding(10.0, 4, 6)(x, last)
    assert not torch.equal(first, RotaryPositionalEmbedding(20.0, 4, 6)(x, last))
    assert torch.equal(first, RotaryPositionalEmbedding(10.0, 4, 60)(x, last))


def test_odd_widths_and_positions_beyond_the_table_are_refused() -> None:
    with pytest.raises(ValueError, match="even, not 3"):
        RotaryPositionalEmbedding(10.0, 3, 6)
    with pytest.raises(ValueError, match="even, not 5"):
        SinusoidalEncoding(5, 6)
    with pytest.raises(IndexError):
        RotaryPositionalEmbedding(10.0, 4, 6)(torch.randn(1, 4), torch.tensor([6]))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3, 1, 2), (0,)])
def test_sinusoidal_encoding(shape: tuple[int, ...]) -> None:
    positions = torch.randint(90, shape)
    encoding = SinusoidalEncoding(d_model=6, max_seq_len=90)(positions)
    assert encoding.shape == (*shape, 6)
    assert encoding.dtype == torch.float32
    for p, row in zip(positions.flatten().tolist(), encoding.reshape(-1, 6).tolist(), strict=True):
        for i in range(3):
            angle = p / 10000 ** (2 * i / 6)
            assert row[2 * i] == pytest.approx(math.sin(angle), abs=1e-7)
            assert row[2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-7)


def test_rotation_matrices_compose_and_transpose() -> None:
    a, b = torch.randn(2, 3, 4, dtype=torch.float64)
    assert rotation_matrix(a).shape == (3, 4, 2, 2)
    torch.testing.assert_close(rotation_matrix(a) @ rotation_matrix(b), rotation_matrix(a + b))
    torch.testing.assert_close(rotation_matrix(a).mT, rotation_matrix(-a))
    quarter = rotation_matrix(torch.tensor(math.pi / 2, dtype=torch.float64))
    torch.testing.assert_close(quarter, torch.tensor([[0.0, -1], [1, 0]], dtype=torch.float64))
    assert rotation_matrix(torch.zeros(1, dtype=torch.bfloat16)).dtype == torch.bfloat16
