"""The doctor on candidates that are written here, in forms of their own."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parent))

from asking import Candidate, adapting, parts

from conformance.candidate.messages import Outcome
from conformance.diagnosis.catalogue import fault_of
from conformance.report import Diagnosis
from conformance.suite.check import checks
from conformance.suite.failure import CheckResult

RIGHT = adapting.CORRECT
MHA_ROPE = "multihead_self_attention_with_rope"

# --- candidates ---------------------------------------------------------------------------------


def rope_of_halves(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    """The halves of the features as real and imaginary parts."""
    first, second = x.double().chunk(2, -1)
    exponents = torch.arange(x.shape[-1] // 2, dtype=torch.float64) / (x.shape[-1] // 2)
    angles = positions.unsqueeze(-1) * torch.exp(-math.log(theta) * exponents)
    turned = torch.complex(first, second) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat((turned.real, turned.imag), -1).to(x.dtype)


def rope_of_halves_and_one_base(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    return rope_of_halves(x, positions, 10000.0, limit)


def rope_of_roots(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
    """Nobody's mistake: angles grow with the root of the position."""
    return parts.turn(x, parts.angles(positions.double().sqrt(), x.shape[-1], theta))


def norm_with_two_mistakes(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    y = parts.wide(x)
    length = torch.linalg.vector_norm(y, dim=-1, keepdim=True)
    y = y / (length / math.sqrt(x.shape[-1]) + eps)
    return (y + y * gain).to(x.dtype)


def block_with(rope: Any) -> Any:
    """A block that is right but for its rope."""
    return adapting.block_by(parts.Block(attention=parts.Attention(rotate_q=rope, rotate_k=rope)))


def post_norm(x: Tensor, norm1: Any, attend: Any, norm2: Any, feed: Any) -> Tensor:
    z = norm1(x + attend(x))
    return norm2(z + feed(z))


def bounded_sublayers(x: Tensor, norm1: Any, attend: Any, norm2: Any, feed: Any) -> Tensor:
    """Nobody's mistake."""
    z = x + torch.tanh(attend(norm1(x)))
    return z + torch.tanh(feed(norm2(z)))


def dropout_after(y: Tensor, x: Tensor) -> Tensor:
    return functional.dropout(y, 0.1)


# --- naming -------------------------------------------------------------------------------------


def named(said: Diagnosis) -> list[str]:
    """The mistakes that are named together, in any order."""
    return sorted(said.fault.split(" + "))


def test_rope_of_halves_is_named_for_certain() -> None:
    said = Candidate(rope=adapting.rope_by(rope_of_halves)).diagnosis("rope")
    fault = fault_of("rope-half-split")
    assert (said.fault, said.component, said.certainty) == (fault.id, "rope", "certain")
    assert (said.sentence, said.hint, said.others) == (fault.sentence, fault.hint, ())


def test_every_failure_of_one_mistake_is_explained_by_it() -> None:
    candidate = Candidate(rope=adapting.rope_by(rope_of_halves))
    failures = list(candidate.failures("rope"))
    assert len(failures) > 20
    assert {f.diagnosis.fault for f in failures if f.diagnosis} == {"rope-half-split"}
    assert all(f.diagnosis for f in failures)


@pytest.mark.parametrize(
    ("component", "function", "faults"),
    [
        (
            "rope",
            adapting.rope_by(rope_of_halves_and_one_base),
            ["rope-half-split", "rope-theta-always-10000"],
        ),
        (
            "rmsnorm",
            adapting.rmsnorm_by(norm_with_two_mistakes),
            ["rmsnorm-eps-outside-root", "rmsnorm-gain-plus-one"],
        ),
    ],
)
def test_two_mistakes_at_once_are_named_as_a_pair(
    component: str, function: Any, faults: list[str]
) -> None:
    said = Candidate(**{component: function}).diagnosis(component)
    assert named(said) == faults
    for fault in faults:
        assert fault_of(fault).sentence in said.sentence
        assert fault_of(fault).hint in said.hint
    assert " And: " in said.sentence


def test_mistakes_that_look_the_same_are_all_named() -> None:
    """That three axes are demanded shows from outside, not whether the product in it does so."""

    def three_axes_only(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
        batch, seq, width = x.shape
        return parts.swiglu(x.view(batch, seq, width), w1, w2, w3)

    candidate = Candidate(swiglu=adapting.swiglu_by(three_axes_only))
    failures = list(candidate.failures("swiglu"))
    assert len(failures) > 5
    for failure in failures:
        said = failure.diagnosis
        assert said is not None
        assert {said.fault, *said.others} == {"swiglu-three-axes-only", "linear-three-axes-only"}
        assert said.certainty == "one of several"
        assert said.sentence.count("three axes") == 1  # both are told by the same words: once


# --- parts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (adapting.rope_by(rope_of_halves), "Its rope is wrong: "),
        (RIGHT["rope"], "Its rope is wrong, though the one graded by itself is right: "),
        (None, "Its rope is wrong: "),
    ],
    ids=["wrong by itself", "right by itself", "not provided"],
)
def test_a_wrong_rope_is_found_inside_a_block(own: Any, words: str) -> None:
    functions = {"transformer_block": block_with(rope_of_halves)}
    if own is not None:
        functions["rope"] = own
    said = Candidate(**functions).diagnosis("transformer_block")
    assert (said.fault, said.component) == ("rope-half-split", "rope")
    assert said.sentence.startswith(words + fault_of("rope-half-split").sentence)
    assert set(said.others) <= {"rope-halves-interleaved"}, "their order does not show in scores"


def test_a_part_that_is_wrong_in_an_unknown_way_is_found_in_all_failures() -> None:
    rope = adapting.rope_by(rope_of_roots)
    candidate = Candidate(transformer_block=block_with(rope_of_roots), rope=rope)
    said = [failure.diagnosis for failure in candidate.failures("transformer_block")]
    told = [one for one in said if one is not None and one.component == "rope"]
    assert len(told) > 0.8 * len(said)
    words = "It is built on rope, which is wrong by itself; the rest is right."
    assert {(one.fault, one.sentence) for one in told} == {("", words)}


def test_a_part_in_an_unknown_way_and_a_mistake_of_its_own_beside_it() -> None:
    pieces = parts.Block(
        attention=parts.Attention(rotate_q=rope_of_roots, rotate_k=rope_of_roots), wire=post_norm
    )
    candidate = Candidate(
        transformer_block=adapting.block_by(pieces), rope=adapting.rope_by(rope_of_roots)
    )
    said = candidate.diagnosis("transformer_block")
    assert (said.fault, said.component) == ("block-post-norm", "transformer_block")
    assert said.sentence.startswith("It is built on rope, which is wrong by itself. And: ")
    assert said.certainty == "likely"


def test_a_part_that_takes_a_dictionary_of_weights_is_asked_too() -> None:
    pieces = parts.Block(wire=bounded_sublayers)
    candidate = Candidate(
        transformer_block=adapting.block_by(pieces),
        transformer_lm=adapting.lm_by(parts.Model(block=pieces)),
    )
    said = candidate.diagnosis("transformer_lm")
    assert said.component == "transformer_block"
    assert said.sentence.startswith("It is built on transformer_block, which is wrong by itself")


def test_the_mistake_of_a_part_is_told_with_the_part() -> None:
    """The part is explained first; what is built on it repeats its mistake."""
    rope = adapting.rope_by(rope_of_halves_and_one_base)
    candidate = Candidate(transformer_block=block_with(rope_of_halves_and_one_base), rope=rope)
    alone = candidate.diagnosis("rope")
    inside = candidate.diagnosis("transformer_block")
    assert named(alone) == named(inside) == ["rope-half-split", "rope-theta-always-10000"]
    assert inside.component == "rope"


def test_a_part_that_is_right_is_not_blamed() -> None:
    functions = {**RIGHT, "transformer_block": adapting.block_by(parts.Block(wire=post_norm))}
    said = Candidate(**functions).diagnosis("transformer_block")
    assert (said.fault, said.component) == ("block-post-norm", "transformer_block")
    assert said.sentence == fault_of("block-post-norm").sentence


def test_an_unknown_mistake_in_the_wiring_is_not_blamed_on_right_parts() -> None:
    block = adapting.block_by(parts.Block(wire=bounded_sublayers))
    functions = {**RIGHT, "transformer_block": block}
    failures = list(Candidate(**functions).failures("transformer_block"))
    assert failures
    for failure in failures:
        said = failure.diagnosis
        assert said is None or (said.fault, said.component) == ("", "transformer_block")
        assert said is None or said.certainty != "certain"


# --- exceptions ---------------------------------------------------------------------------------


def test_an_exception_for_single_tokens_is_told_with_that_condition() -> None:
    def squeezed(x: Tensor, weights: Any, heads: int, *others: Any) -> Tensor:
        y = parts.self_attention(x, weights, heads, parts.Attention(), *others)
        return y if x.shape[-2] > 1 else y.squeeze(-2).transpose(-3, -2)

    candidate = Candidate(**{MHA_ROPE: adapting.mha_rope_by(squeezed)})
    failures = list(candidate.failures(MHA_ROPE))
    assert failures
    for failure in failures:
        said = failure.diagnosis
        assert said is not None
        assert (said.fault, said.certainty) == ("", "described")
        assert said.sentence.startswith(
            "It raises only where the last but one axis of in_features has length 1: axis -3"
        )


def test_tensors_of_two_dtypes_are_read_out_of_an_exception() -> None:
    """Everything is right in float32: no mistake that shows there may be named."""

    def always_float32(x: Tensor, *weights: Tensor) -> Tensor:
        return parts.swiglu(x.float(), *weights)

    failures = list(Candidate(swiglu=adapting.swiglu_by(always_float32)).failures("swiglu"))
    assert {failure.check.dtype for failure in failures} == {"bfloat16", "float16", "float64"}
    for failure in failures:
        said = failure.diagnosis
        assert said is not None
        assert said.fault == ""
        assert f"a product of float32 and {failure.check.dtype}" in said.sentence


# --- memory and chance --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("component", "function", "fault"),
    [
        (
            "glu",
            adapting.glu_by(lambda *given: functional.dropout(parts.glu(*given), 0.2)),
            "glu-dropout-active",
        ),
        (
            "multihead_self_attention",
            adapting.mha_by(parts.Attention(after=dropout_after)),
            "mha-dropout-active",
        ),
        ("silu", adapting.silu_by(lambda x: functional.dropout(parts.silu(x), 0.2)), ""),
    ],
)
def test_answers_that_change_are_told(component: str, function: Any, fault: str) -> None:
    said = Candidate(**{component: function}).diagnosis(component)
    assert said.fault == fault
    assert said.sentence.startswith("It answers the same input in different ways.")
    assert said.certainty != "certain"


def test_an_answer_that_depends_on_strides_does_not_change_from_call_to_call() -> None:
    """The same input is asked again in the layout in which it failed."""

    def in_order_of_storage(x: Tensor) -> Tensor:
        flat = x.as_strided((x.numel(),), (1,), x.storage_offset())
        return parts.silu(flat).view(x.shape)

    candidate = Candidate(silu=adapting.silu_by(in_order_of_storage))
    failures = list(candidate.failures("silu"))
    assert failures
    for failure in failures:
        assert failure.diagnosis is not None
        assert failure.diagnosis.fault == "silu-storage-order"


def test_a_gain_that_is_kept_from_the_first_call_is_told() -> None:
    kept: dict[Any, Tensor] = {}

    def norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
        first = kept.setdefault((gain.shape, gain.dtype), gain.detach().clone())
        return parts.rmsnorm(x, first, eps)

    said = Candidate(rmsnorm=adapting.rmsnorm_by(norm)).diagnosis("rmsnorm")
    assert said.fault == "rmsnorm-first-gain-kept"
    assert "as if weights were that of an earlier call" in said.sentence


def test_what_does_not_depend_on_eps_keeps_no_eps() -> None:
    def without_eps(x: Tensor, gain: Tensor, eps: float) -> Tensor:
        root = parts.wide(x).square().mean(-1, keepdim=True).sqrt().clamp_min(1e-30)
        return (parts.wide(x) / root * gain).to(x.dtype)

    def too_wide(x: Tensor, dim: int) -> Tensor:
        """Off by a share of 1e-6, which only the tightest tolerances notice."""
        return parts.softmax(x, dim) * (1 - 1e-6)

    for candidate, component in (
        (Candidate(rmsnorm=adapting.rmsnorm_by(without_eps)), "rmsnorm"),
        (Candidate(softmax=adapting.softmax_by(too_wide)), "softmax"),
    ):
        for failure in candidate.failures(component):
            said = failure.diagnosis
            assert said is None or "earlier call" not in said.sentence, said


def test_an_exception_for_no_sequences_is_not_blamed_on_a_part() -> None:
    def viewed(x: Tensor, weights: Any, heads: int, *others: Any) -> Tensor:
        return parts.self_attention(x, weights, heads, parts.Attention(), *others).reshape(
            x.shape[0], -1, x.shape[-1]
        )

    candidate = Candidate(
        scaled_dot_product_attention=RIGHT["scaled_dot_product_attention"],
        **{MHA_ROPE: adapting.mha_rope_by(viewed)},
    )
    failures = candidate.failures(MHA_ROPE, "MHAROPE-EMPTY-BATCH", "standard")
    said = [failure.diagnosis for failure in failures]
    assert said
    for one in said:
        assert one is not None
        assert one.fault == ""
        assert "-1 in a shape cannot be worked out where another axis has length 0" in one.sentence


# --- nothing to say -----------------------------------------------------------------------------


@pytest.mark.parametrize("component", ["silu", "rope", "softmax"])
def test_checks_that_pass_are_not_diagnosed(component: str) -> None:
    candidate = Candidate(**{component: RIGHT[component]})
    for check, result in candidate.results(component):
        assert result.outcome is Outcome.PASSED
        before = candidate.caller.calls
        assert candidate.doctor.explain(check, result) is None
        assert candidate.caller.calls == before, "nothing is asked for it"


@pytest.mark.parametrize(
    "outcome", [Outcome.NOT_IMPLEMENTED, Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY]
)
def test_outcomes_that_explain_themselves_are_not_diagnosed(outcome: Outcome) -> None:
    candidate = Candidate(silu=RIGHT["silu"])
    check = next(checks("silu"))
    assert candidate.doctor.explain(check, CheckResult(outcome, "words")) is None
    assert candidate.caller.calls == 0


# --- unknown mistakes ---------------------------------------------------------------------------


def median_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return x / torch.sqrt(x.square().median(-1, keepdim=True).values + eps) * gain


def softplus_share(x: Tensor, dim: int) -> Tensor:
    y = functional.softplus(x)
    return y / y.sum(dim, keepdim=True)


def gate_of_both(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    return parts.linear(parts.silu(x @ w1.mT + x @ w3.mT) * (x @ w3.mT), w2)


def near_keys(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = -torch.cdist(q, k)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return parts.softmax(scores, -1) @ v


def less_far(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    places = torch.arange(q.shape[-2])
    scores = q @ k.mT / math.sqrt(q.shape[-1]) - 0.1 * (places[:, None] - places).abs()
    return parts.softmax(scores.masked_fill(~mask, -math.inf), -1) @ v


def squared(logits: Tensor, temperature: float, top_p: float | None) -> Tensor:
    p = parts.next_token(logits, temperature, top_p).square()
    return p / p.sum(-1, keepdim=True)


def norm_in_float32_only(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """Raises for every other dtype, as mistakes that refuse everything do for all of them."""
    return parts.rmsnorm(x, gain, eps) @ torch.eye(x.shape[-1])


UNKNOWN: dict[str, tuple[str, Callable[..., Any]]] = {
    "median of squares": ("rmsnorm", adapting.rmsnorm_by(median_norm)),
    "gate of an arc tangent": (
        "silu",
        adapting.silu_by(lambda x: x * (torch.arctan(x) / math.pi + 0.5)),
    ),
    "shares of softplus": ("softmax", adapting.softmax_by(softplus_share)),
    "root of positions": ("rope", adapting.rope_by(rope_of_roots)),
    "mean weight added": ("linear", adapting.linear_by(lambda x, w: x @ w.mT + w.mean())),
    "rows drawn to the mean": (
        "embedding",
        adapting.embedding_by(lambda w, ids: 0.75 * w[ids] + 0.25 * w.mean(0)),
    ),
    "gate of both": ("swiglu", adapting.swiglu_by(gate_of_both)),
    "scores by distance": ("scaled_dot_product_attention", adapting.attention_by(near_keys)),
    "distance penalty": (
        "multihead_self_attention",
        adapting.mha_by(parts.Attention(attend=less_far)),
    ),
    "positions that converge": (
        "sinusoidal",
        adapting.sinusoidal_by(lambda d, p, limit: parts.sinusoidal(d, p / (1 + p))),
    ),
    "bounded angles": ("rotation", adapting.rotation_by(lambda t: parts.rotation(torch.tanh(t)))),
    "squared probabilities": ("next_token", adapting.next_token_by(squared)),
    "float32 only": ("rmsnorm", adapting.rmsnorm_by(norm_in_float32_only)),
}
"""Mistakes that stand in no catalogue."""


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_mistake_is_never_called_certain(name: str) -> None:
    component, function = UNKNOWN[name]
    failures = list(Candidate(**{component: function}).failures(component))
    assert failures
    for failure in failures:
        said = failure.diagnosis
        assert said is None or said.certainty != "certain", said


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("median of squares", "each row is off by a factor of its own"),
        ("mean weight added", "every number is off by the same amount"),
        ("distance penalty", "only the entries from 1 on along the last axis but one are wrong"),
    ],
)
def test_an_unknown_mistake_is_described(name: str, words: str) -> None:
    component, function = UNKNOWN[name]
    said = Candidate(**{component: function}).diagnosis(component)
    assert (said.fault, said.component, said.certainty) == ("", component, "described")
    assert said.sentence.startswith(f"No known mistake explains it: {words}")
    assert said.others == ()
