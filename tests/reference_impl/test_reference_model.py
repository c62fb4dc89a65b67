"""Block and language model, written out once more with torch's own operators."""

from typing import TypeVar

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from reference_impl import TransformerBlock, TransformerLM

M = TypeVar("M", bound=nn.Module)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def block_by_torch(weights: dict[str, Tensor], x: Tensor, heads: int, theta: float) -> Tensor:
    """x (B, T, D); rope as a multiplication of complex numbers."""
    batch, length, width = x.shape
    d_k = width // heads
    angles = torch.outer(
        torch.arange(length).double(), theta ** (-torch.arange(0, d_k, 2).double() / d_k)
    )
    turns = torch.polar(torch.ones_like(angles), angles)

    def project(name: str) -> Tensor:
        y = F.linear(F.rms_norm(x, (width,), weights["ln1.weight"], 1e-5), weights[name])
        return y.reshape(batch, length, heads, d_k).transpose(1, 2)

    def turn(y: Tensor) -> Tensor:
        pairs = torch.view_as_complex(y.double().reshape(batch, heads, length, -1, 2).contiguous())
        return torch.view_as_real(pairs * turns).flatten(-2).to(y.dtype)

    q, k = turn(project("attn.q_proj.weight")), turn(project("attn.k_proj.weight"))
    y = F.scaled_dot_product_attention(q, k, project("attn.v_proj.weight"), is_causal=True)
    joined = y.transpose(1, 2).reshape(batch, length, width)
    z = x + F.linear(joined, weights["attn.output_proj.weight"])
    normed = F.rms_norm(z, (width,), weights["ln2.weight"], 1e-5)
    hidden = F.silu(F.linear(normed, weights["ffn.w1.weight"]))
    hidden = hidden * F.linear(normed, weights["ffn.w3.weight"])
    return z + F.linear(hidden, weights["ffn.w2.weight"])


def model_by_torch(model: TransformerLM, ids: Tensor, heads: int, theta: float) -> Tensor:
    weights = model.state_dict()
    x = F.embedding(ids, weights["token_embeddings.weight"])
    for layer in model.layers:
        x = block_by_torch(layer.state_dict(), x, heads, theta)
    x = F.rms_norm(x, (x.shape[-1],), weights["ln_final.weight"], 1e-5)
    return F.linear(x, weights["lm_head.weight"])


def with_random_gains(module: M) -> M:
    for name, parameter in module.named_parameters():
        if "ln" in name:
            nn.init.normal_(parameter, mean=1.0, std=0.5)
    return module


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_block_agrees_with_torch(dtype: torch.dtype) -> None:
    block = with_random_gains(TransformerBlock(12, 3, 20, 9, 50.0, dtype=dtype))
    x = torch.randn(2, 7, 12, dtype=dtype)
    torch.testing.assert_close(block(x), block_by_torch(block.state_dict(), x, 3, 50.0))


@pytest.mark.parametrize("layers", [1, 12])
def test_model_agrees_with_torch(layers: int) -> None:
    model = with_random_gains(TransformerLM(31, 9, 12, layers, 3, 20, 50.0))
    ids = torch.randint(31, (2, 9))
    expected = model_by_torch(model, ids, 3, 50.0)
    torch.testing.assert_close(model(ids), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(ids[0]), expected[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(ids[None])[0], expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(ids[:, :4]), expected[:, :4], rtol=1e-4, atol=1e-5)


def test_block_without_output_projections_is_the_identity() -> None:
    block = TransformerBlock(8, 2, 5, 6, 50.0)
    nn.init.zeros_(block.attn.output_proj.weight)
    nn.init.zeros_(block.ffn.w2.weight)
    x = torch.randn(2, 6, 8)
    assert torch.equal(block(x), x)


def test_block_passes_positions_on() -> None:
    block = TransformerBlock(8, 2, 5, 20, 50.0)
    x = torch.randn(2, 6, 8)
    shifted = torch.arange(6) + 9
    torch.testing.assert_close(block(x, shifted), block(x))  # only distances count
    assert not torch.allclose(block(x, torch.arange(6) * 2), block(x))


def test_gradients_reach_every_parameter() -> None:
    model = TransformerLM(31, 9, 12, 3, 3, 20, 50.0)
    ids = torch.randint(31, (2, 9))
    loss = F.cross_entropy(model(ids).flatten(0, 1), torch.randint(31, (18,)))
    torch.autograd.backward(loss)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_gradient_of_a_block() -> None:
    block = TransformerBlock(4, 2, 3, 4, 50.0, dtype=torch.float64)
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(block, (x,))


def test_a_few_steps_lower_the_loss() -> None:
    model = TransformerLM(7, 9, 8, 1, 2, 16, 50.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    ids = torch.randint(7, (4, 9))
    losses = []
    for _ in range(20):
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_models_of_different_shape_do_not_disturb_each_other() -> None:
    small, large = TransformerLM(7, 5, 8, 1, 2, 16, 50.0), TransformerLM(9, 12, 16, 1, 2, 16, 9.0)
    ids = torch.randint(7, (1, 5))
    before = small(ids)
    large(torch.randint(9, (2, 12)))
    assert torch.equal(small(ids), before)


def test_a_sequence_longer_than_the_context_is_refused() -> None:
    model = TransformerLM(7, 5, 8, 1, 2, 16, 50.0)
    with pytest.raises(ValueError, match="6 tokens, more than the context of 5"):
        model(torch.zeros(1, 6, dtype=torch.long))
    assert model(torch.zeros(0, 5, dtype=torch.long)).shape == (0, 5, 7)
