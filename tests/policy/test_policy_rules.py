"""A policy as a table: which rule decides, and what is said about a bad one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.config import read_config
from conformance.errors import UsageError
from conformance.options import GradeOptions
from conformance.policy import Effect, Policy
from conformance.policy.names import canonical, definition, judged

WHERE = "course.toml: [policy]"


def forbids(policy: Policy, name: str, component: str = "") -> bool:
    rule = policy.rule(name, component)
    return rule is not None and not rule.allows


def test_from_scratch_allows_what_the_course_text_allows() -> None:
    policy = Policy.named("from-scratch")
    for name in ("Parameter", "Module", "Module.__call__", "ModuleList", "Sequential.forward"):
        assert not forbids(policy, f"torch.nn.{name}", "linear")
    for name in ("torch.optim.Optimizer", "torch.nn.init.trunc_normal_", "torch.sigmoid"):
        assert not forbids(policy, name, "silu")
    for name in ("torch.nn.Linear", "torch.nn.ModuleLister", "torch.nn.functional.pad"):
        assert forbids(policy, name, "rope")
    assert forbids(policy, "torch.optim.AdamW")
    assert (policy.effect, policy.unexecuted) == (Effect.FAIL, Effect.REPORT)


def test_parts_bring_their_rules_along() -> None:
    policy = Policy.named("from-scratch")
    for component in ("softmax", "scaled_dot_product_attention", "transformer_lm", "next_token"):
        assert forbids(policy, "torch.softmax", component)
    assert not forbids(policy, "torch.softmax", "linear")
    assert forbids(policy, "aten._scaled_dot_product_flash_attention_for_cpu", "transformer_block")
    assert forbids(policy, "torch.embedding", "transformer_lm")
    assert not forbids(policy, "torch.embedding", "transformer_block")


def test_the_file_goes_before_what_it_extends() -> None:
    policy = Policy.from_mapping(
        {
            "extends": "from-scratch",
            "effect": "zero",
            "allow": ["torch.nn.functional.pad", "torch.softmax"],
            "forbid": ["torch.nn.init", "einops"],
            "components": {"rope": {"forbid": ["torch.polar"], "allow": ["torch.nn.Identity"]}},
        },
        WHERE,
    )
    assert policy.name == "from-scratch"
    assert policy.effect is Effect.ZERO
    assert not forbids(policy, "torch.nn.functional.pad")
    assert forbids(policy, "torch.nn.functional.fold")
    assert not forbids(policy, "torch.softmax", "softmax")
    assert forbids(policy, "torch.nn.init.ones_")
    assert forbids(policy, "torch.polar", "rope")
    assert not forbids(policy, "torch.polar", "silu")
    assert not forbids(policy, "torch.nn.Identity", "rope")
    assert judged(policy, "linear", ["einops.einops.rearrange"]) is not None
    # what is called is allowed, and so is what it comes to
    assert judged(policy, "softmax", ["torch.softmax", "aten._softmax"]) is None


def test_without_a_base_nothing_is_forbidden_but_what_is_named() -> None:
    policy = Policy.from_mapping({"name": "mine", "forbid": ["torch.einsum"]}, WHERE)
    assert policy.name == "mine"
    assert forbids(policy, canonical("torch.functional.einsum"))
    assert not forbids(policy, "torch.nn.Linear")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"extends": "from-scrach"}, "extends: there is no policy 'from-scrach'; there is from-sc"),
        ({"forbids": []}, "unknown key 'forbids', did you mean 'forbid'?; known are extends"),
        ({"forbid": "torch.nn"}, 'forbid: give a list of names, as in ["torch.nn.Linear"]'),
        ({"forbid": ["F.softmax"]}, "write 'F.softmax' in full, torch.nn.functional.softmax"),
        ({"allow": ["nn"]}, "allow: write 'nn' in full, torch.nn"),
        ({"allow": ["torch..nn"]}, "allow: 'torch..nn' is no dotted name such as torch.nn.func"),
        ({"effect": "shout"}, "effect = 'shout': choose one of report, zero, fail"),
        ({"unexecuted": True}, "unexecuted = True: choose one of"),
        ({"name": 3}, "name: give a text"),
        ({"components": []}, "components: give one table for each component"),
        ({"components": {"ropes": {}}}, "there is no component 'ropes', did you mean 'rope'?"),
        ({"components": {"rope": {"deny": []}}}, "components.rope: unknown key 'deny'"),
        ({"components": {"rope": {"parts": ["silk"]}}}, "parts: there is no component 'silk'"),
        (
            {"components": {"rope": {"parts": ["silu"]}, "silu": {"parts": ["rope"]}}},
            "rope is a part of itself",
        ),
    ],
)
def test_a_bad_table_is_refused_with_words(table: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        Policy.from_mapping(table, WHERE)
    assert caught.value.message.startswith(WHERE)
    assert words in caught.value.message


def test_files_and_options(tmp_path: Path) -> None:
    good = tmp_path / "course.toml"
    good.write_text('[grade]\nprofile = "quick"\n[policy]\nextends = "from-scratch"\n', "utf-8")
    loaded = GradeOptions.parse("x", {"policy": str(good)}).policy
    assert loaded is not None
    assert (loaded.name, loaded.file) == ("from-scratch", good)
    assert read_config(good).owned("policy").name == "from-scratch"
    empty = tmp_path / "empty.toml"
    empty.write_text("", "utf-8")
    broken = tmp_path / "broken.toml"
    broken.write_text("[policy", "utf-8")
    for value, words in {
        "from-scrath": "neither a file nor the name of a policy (from-scratch)",
        str(empty): "has no table [policy]",
        str(broken): "is not valid TOML",
    }.items():
        with pytest.raises(UsageError) as caught:
            GradeOptions.parse("x", {"policy": value})
        assert words in caught.value.message


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("torch.nn.modules.linear.Linear.forward", "torch.nn.Linear"),
        ("torch.nn.parameter.Parameter", "torch.nn.Parameter"),
        ("torch._C._nn.linear", "torch.nn.functional.linear"),
        ("torch._C._special.special_softmax", "torch.special.softmax"),
        ("torch._C._VariableFunctions.softmax", "torch.softmax"),
        ("torch.optim.adamw.AdamW.__init__", "torch.optim.AdamW"),
        ("torch._tensor.Tensor.split", "torch.Tensor.split"),
        ("torch.ops.aten._softmax", "aten._softmax"),
        ("torch.nn.utils.clip_grad.clip_grad_norm_", "torch.nn.utils.clip_grad"),
    ],
)
def test_names_are_those_of_the_documentation(name: str, shown: str) -> None:
    assert definition(canonical(name)) == shown


@pytest.mark.parametrize(
    ("chain", "found"),
    [
        # what a function of torch does inside is its own affair ...
        (["torch.stft", "torch.nn.functional.pad"], None),
        (["torch.nn.init.trunc_normal_", "torch.Tensor.normal_"], None),
        (["einops.einops.reduce", "torch.nn.functional.softmax", "aten._softmax"], None),
        # ... unless that is the very component
        (["torch.distributions.Categorical.probs", "aten._softmax"], "aten._softmax"),
        (["torch.nn.Module._call_impl", "torch.nn.Softmax.forward"], "torch.nn.Softmax"),
        (["torch.overrides.handle_torch_function", "torch.softmax"], "torch.softmax"),
        (["transformers.activations.SiLU.forward"], "transformers.activations.SiLU"),
        (["torch.matmul", "aten.mm"], None),
    ],
)
def test_the_judgement_on_a_chain(chain: list[str], found: str | None) -> None:
    hit = judged(Policy.named("from-scratch"), "softmax", chain)
    assert (hit[0] if hit else None) == found
