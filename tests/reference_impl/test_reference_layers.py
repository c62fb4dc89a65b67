"""Linear, Embedding, RMSNorm, SwiGLU and their functions, against torch's own operators."""

import math

import pytest
import torch
import torch.nn.functional as F

from reference_impl import Embedding, Linear, RMSNorm, SwiGLU, glu, silu, softmax

LEADING_AXES = [(), (3,), (2, 3), (1, 2, 3), (2, 1, 2, 3), (2, 1, 3, 1, 2), (0, 4)]
HALVES = [torch.bfloat16, torch.float16]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("leading", LEADING_AXES)
def test_layers_agree_with_torch_for_any_leading_axes(leading: tuple[int, ...]) -> None:
    x = torch.randn(*leading, 6, dtype=torch.float64)
    linear = Linear(6, 5, dtype=torch.float64)
    norm = RMSNorm(6, eps=1e-2, dtype=torch.float64)
    norm.weight.data = torch.randn(6, dtype=torch.float64)
    w1, w2 = torch.randn(2, 5, 6, dtype=torch.float64)
    torch.testing.assert_close(linear(x), F.linear(x, linear.weight))
    torch.testing.assert_close(norm(x), F.rms_norm(x, (6,), norm.weight, 1e-2))
    torch.testing.assert_close(silu(x), F.silu(x))
    torch.testing.assert_close(softmax(x, -1), F.softmax(x, -1))
    torch.testing.assert_close(glu(x, w1, w2), F.glu(F.linear(x, torch.cat((w2, w1))), -1))


@pytest.mark.parametrize("leading", LEADING_AXES)
def test_swiglu_and_embedding_for_any_leading_axes(leading: tuple[int, ...]) -> None:
    x = torch.randn(*leading, 6)
    ffn = SwiGLU(6, 11)
    hidden = F.silu(F.linear(x, ffn.w1.weight)) * F.linear(x, ffn.w3.weight)
    torch.testing.assert_close(ffn(x), F.linear(hidden, ffn.w2.weight))
    table = Embedding(7, 4)
    ids = torch.randint(7, leading)
    torch.testing.assert_close(table(ids), F.embedding(ids, table.weight), rtol=0, atol=0)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_softmax_along_any_axis(dim: int) -> None:
    x = torch.randn(3, 4, 5) * 10
    torch.testing.assert_close(softmax(x, dim), F.softmax(x, dim))
    torch.testing.assert_close(softmax(x + 1e4, dim), F.softmax(x + 1e4, dim))


def test_softmax_of_ties_has_the_gradient_of_the_definition() -> None:
    x = torch.tensor([2.0, 2.0, -1e4], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: softmax(x, 0), (x,))


def test_softmax_without_entries_or_without_finite_entries() -> None:
    assert softmax(torch.empty(2, 0), -1).shape == (2, 0)
    assert softmax(torch.full((3,), -math.inf), 0).isnan().all()
    assert softmax(torch.tensor([-math.inf, 1.0]), 0).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("value", [-1e4, -200.0, 0.0, 200.0, 1e4])
def test_silu_has_finite_gradients_far_out(value: float) -> None:
    x = torch.tensor(value, requires_grad=True)
    (gradient,) = torch.autograd.grad(silu(x), x)
    assert gradient.item() == {0.0: 0.5}.get(value, float(value > 0))


def test_rmsnorm_keeps_eps_inside_the_root() -> None:
    row = RMSNorm(4, eps=1e-5)(torch.full((4,), 1e-6))
    torch.testing.assert_close(row, torch.full((4,), 1e-6 / math.sqrt(1e-12 + 1e-5)))


def test_rmsnorm_takes_squares_in_float32() -> None:
    x = torch.full((8,), 300.0, dtype=torch.float16)  # 300^2 is more than float16 holds
    assert RMSNorm(8, dtype=torch.float16)(x).tolist() == [1.0] * 8


@pytest.mark.parametrize("gain_dtype", [torch.float32, torch.bfloat16])
def test_rmsnorm_returns_the_dtype_of_its_input(gain_dtype: torch.dtype) -> None:
    x = torch.randn(3, 8, dtype=torch.bfloat16)
    assert RMSNorm(8, dtype=gain_dtype)(x).dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_is_rounded_once(dtype: torch.dtype) -> None:
    x = torch.randn(5, 64).to(dtype) * 4
    norm = RMSNorm(64, dtype=dtype)
    for got, exact in (
        (norm(x), F.rms_norm(x.double(), (64,), None, 1e-5)),
        (silu(x), F.silu(x.double())),
        (softmax(x, 0), F.softmax(x.double(), 0)),
    ):
        assert got.dtype == dtype
        half_a_step = torch.finfo(dtype).eps / 2 * 1.01  # and a trace of float32's own error
        torch.testing.assert_close(got.double(), exact, rtol=half_a_step, atol=1e-7)


def test_gradients_reach_inputs_and_parameters() -> None:
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    for module in (Linear(4, 3), RMSNorm(4), SwiGLU(4, 6)):
        module = module.double()
        assert torch.autograd.gradcheck(module, (x,))
        module(x).sum().backward()
        assert all(p.grad is not None and p.grad.any() for p in module.parameters())


def test_embedding_adds_up_the_gradients_of_repeated_tokens() -> None:
    table = Embedding(4, 2)
    table(torch.tensor([1, 1, 3])).sum().backward()
    assert table.weight.grad is not None
    assert table.weight.grad[:, 0].tolist() == [0, 2, 0, 1]


def test_inputs_are_not_modified_and_not_returned() -> None:
    x = torch.randn(3, 4)
    before = x.clone()
    for result in (RMSNorm(4)(x), Linear(4, 4)(x), silu(x), softmax(x, 0), SwiGLU(4, 5)(x)):
        result.detach().zero_()
        assert torch.equal(x, before)
