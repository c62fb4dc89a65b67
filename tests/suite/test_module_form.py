"""The checks of the module form: right classes pass, each kind of wrong one fails its own check."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import reference_impl as reference
from conformance.candidate.inprocess import local_caller
from conformance.suite.check import checks
from conformance.suite.failure import CheckResult
from conformance.suite.grader import Context
from conformance.suite.profile import PROFILE
from conformance.suite.run import run_check


def asked(
    component: str, kind: type, *others: type, requirement: str = ""
) -> list[tuple[str, CheckResult]]:
    """Requirements of the module form with how their checks end; `others` are classes beside it."""
    caller = local_caller({}, classes={each.__name__: each for each in (kind, *others)})
    context = Context(caller, PROFILE["quick"])
    found = [check for check in checks(component) if check.module]
    found = [check for check in found if requirement in ("", check.requirement.id)]
    assert found
    return [(check.requirement.id, run_check(check, context)) for check in found]


def missed(component: str, kind: type, *others: type) -> set[str]:
    """Requirements of the module form that a class does not meet."""
    results = asked(component, kind, *others)
    return {name for name, result in results if result.outcome != "passed"}


class Linear(nn.Module):
    """Right; the others are made from it."""

    def __init__(
        self, in_features: int, out_features: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(
            torch.empty(out_features, in_features, device=device, dtype=dtype)
        )
        self.reset()

    def reset(self) -> None:
        sigma = (2 / sum(self.weight.shape)) ** 0.5
        nn.init.trunc_normal_(self.weight, 0.0, sigma, -3 * sigma, 3 * sigma)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.T


def named(base: type, **members: Any) -> type:
    """A class of the same name with other members."""
    return type(base.__name__, (base,), members)


def untruncated(self: Any) -> None:
    nn.init.normal_(self.weight, 0.0, (2 / sum(self.weight.shape)) ** 0.5)


def truncated_earlier(self: Any) -> None:
    sigma = (2 / sum(self.weight.shape)) ** 0.5
    nn.init.trunc_normal_(self.weight, 0.0, sigma, -2 * sigma, 2 * sigma)


def xavier_uniform(self: Any) -> None:
    nn.init.xavier_uniform_(self.weight)


def always_the_same(self: Any) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        Linear.reset(self)


class WithBias(Linear):
    def __init__(self, in_features: int, out_features: int, device: Any = None, dtype: Any = None):
        super().__init__(in_features, out_features, device, dtype)
        self.bias = nn.Parameter(torch.zeros(out_features, device=device, dtype=dtype))


class DtypeIgnored(Linear):
    def __init__(self, in_features: int, out_features: int, device: Any = None, dtype: Any = None):
        super().__init__(in_features, out_features, device)


class DeviceIgnored(Linear):
    def __init__(self, in_features: int, out_features: int, device: Any = None, dtype: Any = None):
        super().__init__(in_features, out_features, dtype=dtype)


class Frozen(Linear):
    def __init__(self, in_features: int, out_features: int, device: Any = None, dtype: Any = None):
        super().__init__(in_features, out_features, device, dtype)
        self.weight.requires_grad_(False)


def test_a_right_class_passes() -> None:
    assert missed("linear", Linear) == set()


@pytest.mark.parametrize(
    ("kind", "requirement"),
    [
        (named(Linear, reset=untruncated), "LINEAR-MODULE-INIT"),
        (named(Linear, reset=truncated_earlier), "LINEAR-MODULE-INIT"),
        (named(Linear, reset=xavier_uniform), "LINEAR-MODULE-INIT"),
        (named(Linear, reset=always_the_same), "LINEAR-MODULE-INIT"),
        (named(WithBias), "LINEAR-MODULE"),
        (named(DtypeIgnored), "LINEAR-MODULE-DTYPE"),
        (named(DeviceIgnored), "LINEAR-MODULE-DEVICE"),
        (named(Frozen), "LINEAR-MODULE"),
        (
            named(Linear, forward=lambda self, x: x @ self.weight.detach().T),
            "LINEAR-MODULE-FORWARD",
        ),
        (named(Linear, forward=lambda self, x: x @ self.weight.T + 1), "LINEAR-MODULE-FORWARD"),
    ],
)
def test_a_wrong_class_misses_its_requirement(kind: type, requirement: str) -> None:
    kind.__name__ = "Linear"
    assert requirement in missed("linear", kind)


class RMSNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5, device: Any = None, dtype: Any = None):
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.full((d_model,), 0.1, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        mean_square = x.float().pow(2).mean(-1, keepdim=True)
        return (x.float() * torch.rsqrt(mean_square + self.eps) * self.gain).to(x.dtype)


def test_a_gain_that_does_not_start_at_one_is_found() -> None:
    assert missed("rmsnorm", RMSNorm) == {"RMSNORM-MODULE-INIT"}


class RotaryPositionalEmbedding(nn.Module):
    def __init__(self, theta: float, d_k: int, max_seq_len: int, device: Any = None):
        super().__init__()
        rate = theta ** (-torch.arange(0, d_k, 2, device=device) / d_k)
        angles = torch.arange(max_seq_len, device=device)[:, None] * rate
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x: Tensor, token_positions: Tensor) -> Tensor:
        cos, sin = self.cos[token_positions], self.sin[token_positions]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def test_tables_in_the_state_dict_are_found() -> None:
    assert missed("rope", RotaryPositionalEmbedding) == {"ROPE-MODULE-STATE"}


# ---------------------------------------------------------------- attention, block and model
# Made from the reference, each with one change.

MHA = "multihead_self_attention"
WITH_ROPE = "multihead_self_attention_with_rope"
BLOCK = "transformer_block"
LM = "transformer_lm"
COMPOSITES = (
    (MHA, reference.MultiheadSelfAttention),
    (WITH_ROPE, reference.MultiheadSelfAttention),
    (BLOCK, reference.TransformerBlock),
    (LM, reference.TransformerLM),
)


def changed(base: type, change: Callable[[Any], object]) -> type:
    """The class with something done to each object after its construction."""

    def init(self: Any, *args: Any, **keywords: Any) -> None:
        base.__init__(self, *args, **keywords)  # type: ignore[misc]
        change(self)

    init.__signature__ = inspect.signature(base.__init__)  # type: ignore[attr-defined, misc]
    return named(base, __init__=init)


def notes(component: str, kind: type, *others: type) -> set[str]:
    """What the checks of a class that passes all of them note."""
    results = [result for _, result in asked(component, kind, *others)]
    assert {result.outcome for result in results} == {"passed"}
    assert all((result.margin or 0) <= 1 for result in results)
    return {note for result in results for note in result.notes}


@pytest.mark.parametrize(("component", "kind"), COMPOSITES)
def test_the_reference_passes_without_a_note(component: str, kind: type) -> None:
    assert notes(component, kind) == set()


class FusedAttention(nn.Module):
    """One matrix for queries, keys and values, and a mask that is not saved; no dtype."""

    def __init__(self, embed_dim: int, n_heads: int) -> None:
        super().__init__()
        self.heads = n_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=False)
        self.out = nn.Linear(embed_dim, embed_dim, bias=False)
        self.register_buffer("mask", torch.ones(64, 64).tril().bool(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(-3, -2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(-3, -2).flatten(-2))


class PositionsIgnored(reference.MultiheadSelfAttention):
    """Rotates as it was told, at 0, 1, 2 and so on whatever positions it is given."""

    def forward(self, x: Tensor, token_positions: Tensor | None = None) -> Tensor:
        return super().forward(x, None)


class WithoutPositions(reference.MultiheadSelfAttention):
    """Rotates as it was told and takes no positions."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


class AlwaysRotating(reference.MultiheadSelfAttention):
    """Takes no theta, and is asked with positions."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__(d_model, num_heads, 64, 10000.0)

    def forward(self, x: Tensor, token_positions: Tensor) -> Tensor:
        return super().forward(x, token_positions)


class HandedRope(reference.MultiheadSelfAttention):
    """Takes a module that rotates, and other names."""

    def __init__(self, d_model: int, num_heads: int, rope: nn.Module, dropout: float) -> None:
        super().__init__(d_model, num_heads)
        assert dropout == 0
        self.rope = rope
        self.o_proj = self.output_proj
        del self.output_proj

    def forward(self, x: Tensor) -> Tensor:
        self.__dict__["output_proj"] = self.o_proj
        return super().forward(x)


class RopeByFlag(reference.MultiheadSelfAttention):
    """Rotates by default, as it was told or not; keywords only."""

    def __init__(
        self, *, d_model: int, num_heads: int, theta: float = 1e4, use_rope: bool = True
    ) -> None:
        super().__init__(d_model, num_heads, *((64, theta) if use_rope else ()))


class OnlyByConfig(reference.MultiheadSelfAttention):
    def __init__(self, config: Any) -> None:
        super().__init__(config.d_model, config.num_heads)


class ThetaForNothing(reference.MultiheadSelfAttention):
    def __init__(self, d_model: int, num_heads: int, theta: float | None = None) -> None:
        super().__init__(d_model, num_heads)


@pytest.mark.parametrize(
    ("component", "kind", "words"),
    [
        (MHA, FusedAttention, "d_model as embed_dim, num_heads as n_heads"),
        (MHA, FusedAttention, "than in the course: qkv.weight, out.weight"),
        (MHA, FusedAttention, "the constructor takes no dtype"),
        (WITH_ROPE, FusedAttention, "not compared"),
        (MHA, AlwaysRotating, "rotates by itself, with theta 10000"),
        (WITH_ROPE, AlwaysRotating, "not told how to rotate"),
        (MHA, HandedRope, "rotates by itself, with theta 10000"),
        (WITH_ROPE, RopeByFlag, ""),
        (MHA, OnlyByConfig, "does not take d_model, num_heads"),
        (WITH_ROPE, ThetaForNothing, "does not rotate although it was told how to"),
        (WITH_ROPE, WithoutPositions, "its forward takes no positions"),
        (MHA, FusedAttention, "the constructor takes no device"),
    ],
)
def test_an_attention_of_another_form_is_right(component: str, kind: type, words: str) -> None:
    kind = named(kind)
    kind.__name__ = "MultiheadSelfAttention"
    found = notes(component, kind, reference.RotaryPositionalEmbedding)
    assert any(words in note for note in found) or (not words and not found)


def test_a_rotation_that_is_handed_over_is_used() -> None:
    kind = named(HandedRope)
    kind.__name__ = "MultiheadSelfAttention"
    [note] = notes(WITH_ROPE, kind, reference.RotaryPositionalEmbedding)
    assert "its forward takes no positions" in note  # the values of the others are compared


class OtherKeywords(reference.TransformerBlock):
    """Another order and other spellings; asks for eps, and for positions of each sequence."""

    def __init__(
        self, dim: int, hidden_dim: int, n_heads: int, eps: float, rope_theta: float, seq_len: int
    ) -> None:
        super().__init__(dim, n_heads, hidden_dim, seq_len, rope_theta)
        self.ln1.eps = self.ln2.eps = eps

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        assert positions.shape == x.shape[:2]
        return super().forward(x, positions)


def test_a_block_with_other_keywords_is_right() -> None:
    kind = named(OtherKeywords)
    kind.__name__ = "TransformerBlock"
    assert any("d_ff as hidden_dim" in note for note in notes(BLOCK, kind))


class OptionsByKeyword(reference.TransformerLM):
    """Further options; no dtype that it would know of."""

    def __init__(self, vocab_size: int, num_layers: int, max_context_length: int, **more: Any):
        sizes = (more.pop(name) for name in ("d_model", "num_heads", "d_ff", "rope_theta"))
        d_model, num_heads, d_ff, theta = sizes
        super().__init__(
            vocab_size, max_context_length, d_model, num_layers, num_heads, d_ff, theta
        )


def test_a_model_whose_constructor_hides_its_keywords_is_observed() -> None:
    kind = named(OptionsByKeyword)
    kind.__name__ = "TransformerLM"
    assert any("does not take d_model, num_heads, d_ff" in note for note in notes(LM, kind))


def plain_list(self: Any) -> None:
    layers = list(self.layers)
    del self.layers
    self.layers = layers


def one_layer_for_all(self: Any) -> None:
    self.layers = nn.ModuleList([self.layers[0]] * len(self.layers))


def tied(self: Any) -> None:
    self.lm_head.weight = self.token_embeddings.weight


def no_final_gain(self: Any) -> None:
    del self.ln_final.weight
    self.ln_final.weight = 1.0


def frozen(self: Any) -> None:
    next(self.parameters()).requires_grad_(False)


def biased(self: Any) -> None:
    self.bias = nn.Parameter(torch.zeros(12))


def saved_tables(self: Any) -> None:
    self.register_buffer("mask", torch.ones(9, 9).tril())


def saved_rotation(self: Any) -> None:
    if self.rope is not None:
        self.rope.register_buffer("table", torch.ones(9, 9))


def stays_here(self: Any) -> None:
    for module in self.modules():
        if isinstance(module, reference.RMSNorm | reference.Linear):
            module.weight = nn.Parameter(torch.ones_like(module.weight, device="cpu"))


def last_row_missing(self: Any) -> None:
    for module in self.modules():
        if isinstance(module, reference.RotaryPositionalEmbedding):
            module.cos, module.sin = module.cos[:-1], module.sin[:-1]


def zeros(self: Any) -> None:
    self.register_forward_hook(lambda module, inputs, output: output * 0)


def ones(self: Any) -> None:
    self.register_forward_hook(lambda module, inputs, output: output * 0 + 1)


def average(self: Any) -> None:
    self.register_forward_hook(lambda module, inputs, output: output * 0 + output.mean())


def answers_float32(self: Any) -> None:
    self.register_forward_hook(lambda module, inputs, output: output.float())


def left_behind(self: Any) -> None:
    self.gain = torch.ones(12)  # no buffer: .to() does not see it
    self.ffn.register_forward_hook(
        lambda module, inputs, output: nn.functional.linear(output, torch.diag(self.gain))
    )


def stays_float32(self: Any) -> None:
    for module in self.modules():
        if isinstance(module, reference.RMSNorm | reference.Linear):
            module.weight = nn.Parameter(module.weight.float())


def shared_norm(self: Any) -> None:
    self.ln2 = self.ln1


def reversed_layers(self: Any) -> None:
    self.forward = lambda ids: self.lm_head(
        self.ln_final(
            functools.reduce(lambda x, f: f(x), self.layers[::-1], self.token_embeddings(ids))
        )
    )


def post_norm(self: Any) -> None:
    def forward(x: Tensor) -> Tensor:
        z = self.ln1(x + self.attn(x))
        return self.ln2(z + self.ffn(z))

    self.forward = forward


def queries_detached(self: Any) -> None:
    self.q_proj.register_forward_hook(lambda module, inputs, output: output.detach())


def layer_detached(self: Any) -> None:
    self.layers[0].register_forward_hook(lambda module, inputs, output: output.detach())


def nothing_learned(self: Any) -> None:
    self.register_forward_hook(lambda module, inputs, output: output * 0)


def scaled_by_model(self: Any) -> None:
    self.q_proj.register_forward_hook(lambda module, inputs, output: output / 2)


@pytest.mark.parametrize(
    ("component", "kind", "change", "requirement"),
    [
        (MHA, reference.MultiheadSelfAttention, biased, "MHA-MODULE"),
        (MHA, reference.MultiheadSelfAttention, frozen, "MHA-MODULE"),
        (MHA, reference.MultiheadSelfAttention, saved_tables, "MHA-MODULE-STATE"),
        (WITH_ROPE, reference.MultiheadSelfAttention, saved_rotation, "MHAROPE-MODULE-STATE"),
        (MHA, reference.MultiheadSelfAttention, scaled_by_model, "MHA-MODULE-FORWARD"),
        (WITH_ROPE, reference.MultiheadSelfAttention, scaled_by_model, "MHAROPE-MODULE-FORWARD"),
        (MHA, reference.MultiheadSelfAttention, queries_detached, "MHA-MODULE-GRADIENT"),
        (MHA, reference.MultiheadSelfAttention, queries_detached, "MHA-MODULE-FORWARD"),
        (MHA, reference.MultiheadSelfAttention, nothing_learned, "MHA-MODULE-LEARNS"),
        (MHA, reference.MultiheadSelfAttention, stays_float32, "MHA-MODULE-DTYPE"),
        (MHA, reference.MultiheadSelfAttention, stays_here, "MHA-MODULE-DEVICE"),
        (WITH_ROPE, reference.MultiheadSelfAttention, last_row_missing, "MHAROPE-MODULE-TABLE"),
        (WITH_ROPE, reference.MultiheadSelfAttention, last_row_missing, "MHAROPE-MODULE-POSITIONS"),
        (BLOCK, reference.TransformerBlock, stays_here, "BLOCK-MODULE-DEVICE"),
        (BLOCK, reference.TransformerBlock, last_row_missing, "BLOCK-MODULE-TABLE"),
        (LM, reference.TransformerLM, stays_here, "LM-MODULE-DEVICE"),
        (LM, reference.TransformerLM, last_row_missing, "LM-MODULE-CONTEXT"),
        (LM, reference.TransformerLM, answers_float32, "LM-MODULE-CONVERTED"),
        (BLOCK, reference.TransformerBlock, answers_float32, "BLOCK-MODULE-CONVERTED"),
        (BLOCK, reference.TransformerBlock, left_behind, "BLOCK-MODULE-CONVERTED"),
        (BLOCK, reference.TransformerBlock, shared_norm, "BLOCK-MODULE"),
        (BLOCK, reference.TransformerBlock, biased, "BLOCK-MODULE"),
        (BLOCK, reference.TransformerBlock, saved_tables, "BLOCK-MODULE-STATE"),
        (BLOCK, reference.TransformerBlock, post_norm, "BLOCK-MODULE-FORWARD"),
        (BLOCK, reference.TransformerBlock, stays_float32, "BLOCK-MODULE-DTYPE"),
        (BLOCK, reference.TransformerBlock, nothing_learned, "BLOCK-MODULE-LEARNS"),
        (BLOCK, reference.TransformerBlock, nothing_learned, "BLOCK-MODULE-GRADIENT"),
        (LM, reference.TransformerLM, plain_list, "LM-MODULE"),
        (LM, reference.TransformerLM, one_layer_for_all, "LM-MODULE"),
        (LM, reference.TransformerLM, tied, "LM-MODULE"),
        (LM, reference.TransformerLM, no_final_gain, "LM-MODULE"),
        (LM, reference.TransformerLM, frozen, "LM-MODULE"),
        (LM, reference.TransformerLM, saved_tables, "LM-MODULE-STATE"),
        (LM, reference.TransformerLM, reversed_layers, "LM-MODULE-FORWARD"),
        (LM, reference.TransformerLM, layer_detached, "LM-MODULE-GRADIENT"),
        (LM, reference.TransformerLM, stays_float32, "LM-MODULE-DTYPE"),
        (LM, reference.TransformerLM, nothing_learned, "LM-MODULE-LEARNS"),
    ],
)
def test_a_wrong_composite_misses_its_requirement(
    component: str, kind: type, change: Callable[[Any], object], requirement: str
) -> None:
    results = asked(component, changed(kind, change), requirement=requirement)
    assert {"failed", "raised"} & {result.outcome for _, result in results}


def test_positions_that_are_not_used_are_found() -> None:
    kind = named(PositionsIgnored)
    kind.__name__ = "MultiheadSelfAttention"
    assert missed(WITH_ROPE, kind) == {"MHAROPE-MODULE-POSITIONS"}


def test_a_rotary_table_that_is_one_short_is_found() -> None:
    kind = changed(reference.RotaryPositionalEmbedding, last_row_missing)
    assert missed("rope", kind) == {"ROPE-MODULE-TABLE"}


SMALL = (
    ("linear", reference.Linear),
    ("embedding", reference.Embedding),
    ("rmsnorm", reference.RMSNorm),
    ("swiglu", reference.SwiGLU),
    ("rope", reference.RotaryPositionalEmbedding),
)
NULLS = [
    *((*each, null) for each in SMALL for null in (zeros, ones, average)),
    *((*each, average) for each in COMPOSITES),  # a comparison takes a second with these
]
VALUES = ("FORWARD", "TABLE", "CONTEXT", "POSITIONS", "CONVERTED")
"""How requirements end whose checks compare what a class answers."""


@pytest.mark.parametrize(("component", "kind", "null"), NULLS)
def test_no_class_that_computes_nothing_passes_a_value_check(
    component: str, kind: type, null: Callable[[Any], object]
) -> None:
    results = asked(component, changed(kind, null))
    compared = [result for name, result in results if name.endswith(VALUES)]
    assert compared
    assert {result.outcome for result in compared} == {"failed"}


def test_the_number_of_scalars_names_the_likely_mistake() -> None:
    for change, words in (
        (plain_list, "a plain list"),
        (one_layer_for_all, "share the weights of one"),
        (tied, "with the embedding"),
        (no_final_gain, "no gain"),
    ):
        kind = changed(reference.TransformerLM, change)
        [(_, result)] = asked(LM, kind, requirement="LM-MODULE")
        assert words in result.message
