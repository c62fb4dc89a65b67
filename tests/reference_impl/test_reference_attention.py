"""Attention against torch's fused operators."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from reference_impl import (
    MultiheadSelfAttention,
    RotaryPositionalEmbedding,
    causal_mask,
    scaled_dot_product_attention,
)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3), (1, 2, 3), (2, 1, 3, 1), (0, 3)])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_agrees_with_torch(leading: tuple[int, ...], masked: bool) -> None:
    q = torch.randn(*leading, 5, 8)
    k = torch.randn(*leading, 7, 8)
    v = torch.randn(*leading, 7, 6)
    mask = torch.rand(5, 7) > 0.4
    mask[:, 2] = True
    given = mask if masked else None
    expected = F.scaled_dot_product_attention(q, k, v, given)
    torch.testing.assert_close(scaled_dot_product_attention(q, k, v, given), expected)
    full = mask.expand(*leading, 5, 7)
    expected = F.scaled_dot_product_attention(q, k, v, full)
    torch.testing.assert_close(scaled_dot_product_attention(q, k, v, full), expected)


def test_masked_keys_have_no_weight_and_no_gradient() -> None:
    q, k, v = (torch.randn(2, 3, 4, requires_grad=True) for _ in range(3))
    mask = torch.tensor([True, False, True]).expand(3, 3)
    torch.autograd.backward(scaled_dot_product_attention(q, k, v, mask).sum())
    assert k.grad is not None
    assert v.grad is not None
    assert not k.grad[:, 1].any()
    assert not v.grad[:, 1].any()
    assert k.grad[:, 0].any()


def test_a_row_that_sees_nothing_is_nan_and_the_others_are_not() -> None:
    q, k, v = torch.randn(3, 2, 4)
    mask = torch.tensor([[False, False], [True, False]])
    result = scaled_dot_product_attention(q, k, v, mask)
    assert result[0].isnan().all()
    torch.testing.assert_close(result[1], v[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_scores_neither_overflow_nor_lose_digits(dtype: torch.dtype) -> None:
    q, k, v = (torch.randn(2, 5, 64).to(dtype) for _ in range(3))
    q, k = q * 30, k * 30 + 100  # products of rows are beyond 65504
    result = scaled_dot_product_attention(q, k, v)
    assert result.dtype == dtype
    exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double())
    torch.testing.assert_close(result.double(), exact, rtol=0.02, atol=0.02)


def test_values_decide_the_dtype_of_the_result() -> None:
    q, k, v = torch.randn(3, 2, 4)
    assert scaled_dot_product_attention(q.bfloat16(), k, v.half()).dtype == torch.float16


@pytest.mark.parametrize("heads", [1, 2, 6])
def test_heads_agree_with_torch(heads: int) -> None:
    ours = MultiheadSelfAttention(d_model=12, num_heads=heads)
    theirs = nn.MultiheadAttention(12, heads, bias=False, batch_first=True)
    projections = (ours.q_proj.weight, ours.k_proj.weight, ours.v_proj.weight)
    theirs.in_proj_weight.data = torch.cat(projections).detach()
    theirs.out_proj.weight.data = ours.output_proj.weight.detach()
    x = torch.randn(3, 5, 12)
    forbidden = torch.triu(torch.ones(5, 5, dtype=torch.bool), diagonal=1)
    expected, _ = theirs(x, x, x, attn_mask=forbidden, need_weights=False)
    torch.testing.assert_close(ours(x), expected)


def one_head_at_a_time(module: MultiheadSelfAttention, x: Tensor, positions: Tensor) -> Tensor:
    """x (T, D), with rope: slices of the projections, one torch call for each head."""
    assert module.rope is not None
    d_k = x.shape[-1] // module.num_heads
    heads = []
    for h in range(module.num_heads):
        rows = slice(h * d_k, (h + 1) * d_k)
        q = module.rope(F.linear(x, module.q_proj.weight[rows]), positions)
        k = module.rope(F.linear(x, module.k_proj.weight[rows]), positions)
        v = F.linear(x, module.v_proj.weight[rows])
        heads.append(F.scaled_dot_product_attention(q, k, v, is_causal=True))
    return F.linear(torch.cat(heads, dim=-1), module.output_proj.weight)


@pytest.mark.parametrize("batch", [1, 2, 3])  # 3 heads: no size may hide a swapped axis
def test_rope_turns_every_head_by_the_positions_of_its_sequence(batch: int) -> None:
    module = MultiheadSelfAttention(12, 3, max_seq_len=20, theta=30.0)
    x = torch.randn(batch, 5, 12)
    per_row = torch.randint(20, (batch, 5))
    expected = [one_head_at_a_time(module, x[b], per_row[b]) for b in range(batch)]
    torch.testing.assert_close(module(x, per_row), torch.stack(expected))
    in_order = torch.arange(5)
    expected = [one_head_at_a_time(module, x[b], in_order) for b in range(batch)]
    torch.testing.assert_close(module(x), torch.stack(expected))
    torch.testing.assert_close(module(x, in_order), torch.stack(expected))
    torch.testing.assert_close(module(x, in_order.unsqueeze(0)), torch.stack(expected))
    torch.testing.assert_close(module(x[0], in_order), expected[0])
    torch.testing.assert_close(module(x[None])[0], torch.stack(expected))


def test_attention_is_causal() -> None:
    module = MultiheadSelfAttention(8, 2, max_seq_len=6, theta=30.0)
    x = torch.randn(2, 6, 8)
    changed = x.clone()
    changed[:, 4:] = torch.randn(2, 2, 8)
    torch.testing.assert_close(module(x)[:, :4], module(changed)[:, :4])
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True] * 3]


@pytest.mark.parametrize("theta", [None, 30.0])
def test_gradients_of_attention(theta: float | None) -> None:
    module = MultiheadSelfAttention(4, 2, 3, theta, dtype=torch.float64)
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(module, (x,))
    module(x).square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in module.parameters())


@pytest.mark.parametrize("shape", [(0, 3, 8), (2, 0, 8), (1, 1, 8)])
def test_empty_batches_and_sequences(shape: tuple[int, ...]) -> None:
    module = MultiheadSelfAttention(8, 2, max_seq_len=6, theta=30.0)
    assert module(torch.randn(shape)).shape == shape


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="d_model 10 cannot be divided among 3 heads"):
        MultiheadSelfAttention(10, 3)
    with pytest.raises(ValueError, match="even, not 3"):
        MultiheadSelfAttention(6, 2, max_seq_len=4, theta=10.0)
    with pytest.raises(ValueError, match="max_seq_len is needed"):
        MultiheadSelfAttention(8, 2, theta=10.0)
    with pytest.raises(ValueError, match="5 tokens, more than max_seq_len 4"):
        MultiheadSelfAttention(8, 2, max_seq_len=4, theta=10.0)(torch.randn(1, 5, 8))


def test_positions_may_reach_the_last_entry_of_the_table() -> None:
    rope = RotaryPositionalEmbedding(10.0, 4, 6)
    module = MultiheadSelfAttention(8, 2, max_seq_len=6, theta=10.0)
    assert rope(torch.randn(6, 4), torch.arange(6)).isfinite().all()
    assert module(torch.randn(6, 8)).isfinite().all()
