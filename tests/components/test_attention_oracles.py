"""The definitions of attention, block and model, against plain torch and central differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from conformance.numerics.arithmetic import Arithmetic
from conformance.numerics.draw import Draw
from conformance.numerics.ensemble import Question, bounds, evaluate, members
from conformance.suite.case import Case
from conformance.suite.component import Component, component

NAMES = (
    "scaled_dot_product_attention",
    "multihead_self_attention",
    "multihead_self_attention_with_rope",
    "transformer_block",
    "transformer_lm",
)


# ---------------------------------------------------------------- plain torch, float64


def attention(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None) -> Tensor:
    if mask is not None:
        mask = mask.expand(*Q.shape[:-1], K.shape[-2])
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)


def rotate(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Pairs of neighbours as complex numbers, turned by position * theta^(-2i/d)."""
    d = x.shape[-1]
    frequencies = theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = positions.double()[..., None] * frequencies
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], d // 2, 2))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def multihead(
    d_model: int,
    num_heads: int,
    q_proj_weight: Tensor,
    k_proj_weight: Tensor,
    v_proj_weight: Tensor,
    o_proj_weight: Tensor,
    in_features: Tensor,
    max_seq_len: int = 0,
    theta: float | None = None,
    token_positions: Tensor | None = None,
) -> Tensor:
    """One head after the other."""
    length = in_features.shape[-2]
    if token_positions is None:
        token_positions = torch.arange(length)
    width = d_model // num_heads
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
    heads = []
    for head in range(num_heads):
        rows = slice(head * width, (head + 1) * width)
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = (in_features @ weight[rows].T for weight in weights)
        if theta is not None:
            q, k = rotate(q, token_positions, theta), rotate(k, token_positions, theta)
        scores = (q @ k.mT / width**0.5).masked_fill(hidden, -torch.inf)
        heads.append(scores.softmax(-1) @ v)
    return torch.cat(heads, -1) @ o_proj_weight.T


def block(
    d_model: int,
    num_heads: int,
    d_ff: int,
    max_seq_len: int,
    theta: float,
    weights: Mapping[str, Tensor],
    in_features: Tensor,
) -> Tensor:
    w = {name.removesuffix(".weight"): weight for name, weight in weights.items()}
    x = in_features
    normal = F.rms_norm(x, (d_model,), w["ln1"], 1e-5)
    z = x + multihead(
        d_model,
        num_heads,
        w["attn.q_proj"],
        w["attn.k_proj"],
        w["attn.v_proj"],
        w["attn.output_proj"],
        normal,
        theta=theta,
    )
    normal = F.rms_norm(z, (d_model,), w["ln2"], 1e-5)
    return z + (F.silu(normal @ w["ffn.w1"].T) * (normal @ w["ffn.w3"].T)) @ w["ffn.w2"].T


def model(
    vocab_size: int,
    context_length: int,
    d_model: int,
    num_layers: int,
    num_heads: int,
    d_ff: int,
    rope_theta: float,
    weights: Mapping[str, Tensor],
    in_indices: Tensor,
) -> Tensor:
    x = F.embedding(in_indices, weights["token_embeddings.weight"])
    for number in range(num_layers):
        prefix = f"layers.{number}."
        own = {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)}
        x = block(d_model, num_heads, d_ff, context_length, rope_theta, own, x)
    x = F.rms_norm(x, (d_model,), weights["ln_final.weight"], 1e-5)
    return x @ weights["lm_head.weight"].T


PLAIN: dict[str, Callable[..., Tensor]] = dict(
    zip(NAMES, (attention, multihead, multihead, block, model), strict=True)
)


def to_torch(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: to_torch(entry) for name, entry in value.items()}
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


# ---------------------------------------------------------------- the tests


def all_cases() -> list[Any]:
    return [
        pytest.param(component(name), case, id=f"{name}-{case.name}")
        for name in NAMES
        for case in component(name).cases
        if case.name not in ("nothing-visible", "overlong")
    ]


@pytest.mark.parametrize(("owner", "case"), all_cases())
def test_values_of_every_case(owner: Component, case: Case) -> None:
    arguments = case.arguments("float64")
    (got,) = evaluate(Question(owner.oracle, arguments), Arithmetic())
    expected = PLAIN[owner.name](**to_torch(arguments)).numpy()
    assert got.shape == expected.shape
    scale = np.abs(expected).max(initial=1.0)
    # scores of 1e4 leave 12 digits to the weights, a dozen layers lose some more
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10 * scale)


GRADIENTS = (
    ("scaled_dot_product_attention", "gradient", ()),
    ("scaled_dot_product_attention", "gradient-mask", ()),
    ("scaled_dot_product_attention", "hidden-for-all", ()),
    ("multihead_self_attention", "weight-gradient", ()),
    ("multihead_self_attention_with_rope", "weight-gradient", ()),
    ("transformer_block", "weight-gradient", ()),
    ("transformer_block", "gradient-tiny", ()),
    ("transformer_lm", "weight-gradient", ("weights.token_embeddings.weight",)),
    ("transformer_lm", "weight-gradient", ("weights.layers.1.attn.k_proj.weight",)),
    ("transformer_lm", "weight-gradient", ("weights.layers.0.ln1.weight",)),
    ("transformer_lm", "weight-gradient", ("weights.lm_head.weight",)),
)


@pytest.mark.parametrize(("name", "case_name", "wrt"), GRADIENTS)
def test_gradients_are_central_differences(name: str, case_name: str, wrt: tuple[str, ...]) -> None:
    """Along one random direction for each argument."""
    owner = component(name)
    case = owner.case(case_name)
    arguments = case.arguments("float64")
    (result,) = evaluate(Question(owner.oracle, arguments), Arithmetic())
    cotangent = Draw("cotangent", name, case_name).normal(*result.shape)
    wrt = wrt or case.wrt
    question = Question(owner.oracle, arguments, wrt=wrt, cotangent=cotangent)
    _, *gradients = evaluate(question, Arithmetic())
    for argument, gradient in zip(wrt, gradients, strict=True):
        direction = Draw("direction", name, argument).normal(*gradient.shape)
        direction *= np.abs(entry(arguments, argument))
        slope = along(owner, arguments, argument, direction, cotangent)
        expected = float((gradient * direction).sum())
        assert slope == pytest.approx(expected, rel=1e-6, abs=1e-7), argument


def entry(arguments: Mapping[str, Any], name: str) -> Any:
    holder, _, inner = name.partition(".")
    return arguments[holder][inner] if inner else arguments[holder]


def moved(arguments: Mapping[str, Any], name: str, step: Any) -> dict[str, Any]:
    holder, _, inner = name.partition(".")
    value = arguments[holder]
    changed = {**value, inner: value[inner] + step} if inner else value + step
    return {**arguments, holder: changed}


def along(
    owner: Component, arguments: Mapping[str, Any], name: str, direction: Any, cotangent: Any
) -> float:
    """Derivative of sum(result * cotangent) along a direction, by central differences."""
    step = 1e-5

    def value(sign: float) -> float:
        shifted = moved(arguments, name, sign * step * direction)
        (result,) = evaluate(Question(owner.oracle, shifted), Arithmetic())
        return float((result * cotangent).sum())

    return (value(1.0) - value(-1.0)) / (2.0 * step)


@pytest.mark.parametrize("name", NAMES)
def test_all_forms_are_the_same_function(name: str) -> None:
    """The algebraic forms and orders that the ensemble goes through differ by rounding only."""
    owner = component(name)
    question = Question(owner.oracle, owner.case("ordinary").arguments("float64"))
    (exact,) = evaluate(question, Arithmetic())
    for arithmetic in members():
        (result,) = evaluate(question, arithmetic)
        np.testing.assert_allclose(result, exact, rtol=0, atol=1e-13 * np.abs(exact).max())
        assert not np.array_equal(result, exact)


def test_hidden_keys_have_no_gradient() -> None:
    owner = component("scaled_dot_product_attention")
    arguments = owner.case("hidden-for-all").arguments("float64")
    hidden = ~arguments["mask"].any(axis=-2)
    assert hidden.any()
    for arithmetic in (Arithmetic(), *members()):
        question = Question(
            owner.oracle, arguments, wrt=("K", "V"), cotangent=np.ones((2, 3, 4, 3))
        )
        _, keys, values = evaluate(question, arithmetic)
        assert not keys[..., hidden, :].any()
        assert not values[..., hidden, :].any()


def test_tolerances_grow_with_the_roundoff() -> None:
    """Bounds in bfloat16 are wider than in float32 by about the ratio of the unit roundoffs."""
    owner = component("multihead_self_attention")
    case = owner.case("half")
    wide = bounds(Question(owner.oracle, case.arguments("float32"))).result
    half = bounds(Question(owner.oracle, case.arguments("bfloat16"))).result
    ratio = np.median(half.tolerance) / np.median(wide.tolerance)
    assert 2**13 < ratio < 2**19
