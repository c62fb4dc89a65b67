"""Initial values, devices, dtypes and names of parameters."""

import math
from typing import Any

import pytest
import torch

from reference_impl import (
    Embedding,
    Linear,
    MultiheadSelfAttention,
    RMSNorm,
    RotaryPositionalEmbedding,
    SinusoidalEncoding,
    SwiGLU,
    TransformerBlock,
    TransformerLM,
)

#: Standard deviation of a normal distribution cut at three of its own, in units of its own.
CUT_AT_3 = math.sqrt(1 - 6 * math.exp(-4.5) / math.sqrt(2 * math.pi) / math.erf(3 / math.sqrt(2)))

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
BLOCK_SHAPES = {
    "ln1.weight": (8,),
    "attn.q_proj.weight": (8, 8),
    "attn.k_proj.weight": (8, 8),
    "attn.v_proj.weight": (8, 8),
    "attn.output_proj.weight": (8, 8),
    "ln2.weight": (8,),
    "ffn.w1.weight": (11, 8),
    "ffn.w2.weight": (8, 11),
    "ffn.w3.weight": (11, 8),
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_linear_draws_a_truncated_normal(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    weight = Linear(300, 500, dtype=dtype).weight.detach().double()
    std = math.sqrt(2 / 800)
    n = weight.numel()
    assert weight.abs().max() <= 3 * std * (1 + torch.finfo(dtype).eps)
    assert weight.abs().max() > 2.9 * std
    assert abs(weight.mean()) < 5 * std / math.sqrt(n)
    assert abs(weight.std() / (std * CUT_AT_3) - 1) < 5 / math.sqrt(2 * n)
    # the share within one standard deviation tells a normal from, say, a uniform distribution
    within = math.erf(1 / math.sqrt(2)) / math.erf(3 / math.sqrt(2))
    assert abs((weight.abs() < std).double().mean() - within) < 0.006


@pytest.mark.parametrize("dtype", DTYPES)
def test_embedding_draws_a_truncated_normal(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    weight = Embedding(300, 500, dtype=dtype).weight.detach().double()
    assert 2.9 < weight.abs().max() <= 3
    assert abs(weight.mean()) < 5 / math.sqrt(weight.numel())
    assert abs(weight.std() / CUT_AT_3 - 1) < 5 / math.sqrt(2 * weight.numel())


def test_gain_starts_at_one() -> None:
    assert RMSNorm(3).weight.tolist() == [1, 1, 1]
    assert RMSNorm(3).eps == 1e-5


def test_initial_values_follow_the_seed() -> None:
    def draw() -> torch.Tensor:
        torch.manual_seed(3)
        return Linear(4, 5).weight

    assert torch.equal(draw(), draw())
    assert not torch.equal(draw(), Linear(4, 5).weight)


def test_state_dict_of_a_block_and_of_the_model() -> None:
    def shapes(module: torch.nn.Module) -> dict[str, tuple[int, ...]]:
        return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}

    block = TransformerBlock(d_model=8, num_heads=2, d_ff=11, max_seq_len=5, theta=100.0)
    assert shapes(block) == BLOCK_SHAPES
    layers = {f"layers.{i}.{k}": shape for i in range(11) for k, shape in BLOCK_SHAPES.items()}
    ends = {
        "token_embeddings.weight": (13, 8),
        "ln_final.weight": (8,),
        "lm_head.weight": (13, 8),
    }
    model = TransformerLM(13, 5, 8, 11, 2, 11, 100.0)
    assert shapes(model) == layers | ends
    assert {name for name, _ in model.named_parameters()} == set(layers | ends)


def test_tables_are_buffers_that_are_not_saved() -> None:
    for module in (RotaryPositionalEmbedding(10.0, 4, 6), SinusoidalEncoding(4, 6)):
        assert not module.state_dict()
        assert not list(module.parameters())
        assert list(module.buffers())


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_and_device_are_honoured(dtype: torch.dtype) -> None:
    model = TransformerLM(13, 5, 8, 2, 2, 11, 100.0, device="cpu", dtype=dtype)
    assert {p.dtype for p in model.parameters()} == {dtype}
    assert model(torch.tensor([[1, 2, 3]])).dtype == dtype
    on_meta = TransformerLM(13, 5, 8, 2, 2, 11, 100.0, device="meta", dtype=dtype)
    tensors = [*on_meta.parameters(), *on_meta.buffers()]
    assert {t.device.type for t in tensors} == {"meta"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_module_takes_device_and_dtype_by_keyword(dtype: torch.dtype) -> None:
    where: dict[str, Any] = {"device": torch.device("cpu"), "dtype": dtype}
    modules = [
        Linear(in_features=3, out_features=2, **where),
        Embedding(num_embeddings=3, embedding_dim=2, **where),
        RMSNorm(d_model=3, eps=1e-5, **where),
        SwiGLU(d_model=3, d_ff=2, **where),
        MultiheadSelfAttention(d_model=4, num_heads=2, max_seq_len=3, theta=10.0, **where),
    ]
    assert {p.dtype for module in modules for p in module.parameters()} == {dtype}


def test_a_converted_model_computes_in_the_new_dtype() -> None:
    torch.manual_seed(0)
    model = TransformerLM(13, 6, 8, 2, 2, 11, 100.0)
    ids = torch.randint(13, (2, 6))
    logits = model(ids)
    exact = model.double()(ids)
    torch.testing.assert_close(logits.double(), exact, rtol=1e-4, atol=1e-5)
    assert model.bfloat16()(ids).dtype == torch.bfloat16
    torch.testing.assert_close(model(ids).double(), exact, rtol=0.1, atol=0.1)
