"""The adapters of `reference_impl`: the contract's signatures, weights that gradients reach."""

import ast
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import conformance.adapters as contract
from reference_impl import TransformerBlock, TransformerLM, adapters

FUNCTIONS = sorted({*contract.COURSE_FUNCTIONS.values(), *contract.OPTIONAL_FUNCTIONS.values()})
KNOWN = Path(contract.__file__).with_name("known")


def arguments(dtype: torch.dtype = torch.float32) -> dict[str, dict[str, Any]]:
    """Arguments of every function; no two sizes coincide."""
    torch.manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.float64).to(dtype)

    def drawn_like(module: torch.nn.Module) -> dict[str, Tensor]:
        return {name: draw(*t.shape) / 3 for name, t in module.state_dict().items()}

    x = draw(2, 5, 12)
    heads: dict[str, Any] = {"d_model": 12, "num_heads": 3, "in_features": x}
    heads |= {f"{name}_proj_weight": draw(12, 12) / 3 for name in "qkvo"}
    block: dict[str, Any] = {"d_model": 12, "num_heads": 3, "d_ff": 7}
    model = block | {"vocab_size": 11, "context_length": 9, "num_layers": 2, "rope_theta": 30.0}
    w1, w2, w3 = draw(7, 12), draw(12, 7), draw(7, 12)
    rotation: dict[str, Any] = {"theta": 30.0, "max_seq_len": 9}
    return {
        "run_linear": {"d_in": 12, "d_out": 7, "weights": w1, "in_features": x},
        "run_embedding": {
            "vocab_size": 7,
            "d_model": 12,
            "weights": w1,
            "token_ids": torch.tensor([[3, 6]]),
        },
        "run_rmsnorm": {"d_model": 12, "eps": 1e-3, "weights": draw(12), "in_features": x},
        "run_silu": {"in_features": x},
        "run_glu": {"d_model": 12, "d_ff": 7, "w1_weight": w1, "w2_weight": w3, "in_features": x},
        "run_swiglu": {
            "d_model": 12,
            "d_ff": 7,
            "w1_weight": w1,
            "w2_weight": w2,
            "w3_weight": w3,
            "in_features": x,
        },
        "run_softmax": {"in_features": x, "dim": 1},
        "run_sinusoidal": {
            "d_model": 4,
            "max_seq_len": 9,
            "token_positions": torch.tensor([8, 0]),
        },
        "run_rotation_matrix": {"angles": draw(3, 2)},
        "run_rope": {
            "d_k": 12,
            "in_query_or_key": x,
            "token_positions": torch.tensor([8, 1, 1, 0, 3]),
            **rotation,
        },
        "run_scaled_dot_product_attention": {
            "Q": x,
            "K": draw(2, 4, 12),
            "V": draw(2, 4, 3),
            "mask": torch.ones(5, 4, dtype=torch.bool),
        },
        "run_multihead_self_attention": heads,
        "run_multihead_self_attention_with_rope": {
            **heads,
            **rotation,
            "token_positions": torch.tensor([[8, 1, 1, 0, 3], [0, 1, 2, 3, 4]]),
        },
        "run_transformer_block": {
            **block,
            **rotation,
            "weights": drawn_like(TransformerBlock(**block, **rotation, device="meta")),
            "in_features": x,
        },
        "run_transformer_lm": {
            **model,
            "weights": drawn_like(TransformerLM(**model, device="meta")),
            "in_indices": torch.tensor([[3, 10, 3], [0, 1, 2]]),
        },
        "run_next_token": {"logits": x, "temperature": 0.7, "top_p": 0.9},
    }


def floating(given: dict[str, Any]) -> dict[str, Tensor]:
    """The floating-point tensors among the arguments, those in a dictionary of weights too."""
    flat = {**given, **given["weights"]} if isinstance(given.get("weights"), dict) else given
    return {k: t for k, t in flat.items() if isinstance(t, Tensor) and t.is_floating_point()}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_are_those_of_the_contract(name: str) -> None:
    def parameters(function: Callable[..., Any]) -> list[tuple[str, object]]:
        return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]

    assert parameters(getattr(adapters, name)) == parameters(getattr(contract, name))


@pytest.mark.parametrize("path", sorted(KNOWN.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_known_adapters_keep_to_the_contract(path: Path) -> None:
    """Read, not imported: the libraries may be missing."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    functions = {f.name: f for f in body if isinstance(f, ast.FunctionDef)}
    declared = next(
        ast.literal_eval(statement.value)
        for statement in body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "COMPONENTS"
    )
    names = {**contract.COURSE_FUNCTIONS, **contract.OPTIONAL_FUNCTIONS}
    assert {names[component] for component in declared} == {
        name for name in functions if name.startswith("run_")
    }
    for component in declared:
        ours = inspect.signature(getattr(contract, names[component])).parameters
        assert [a.arg for a in functions[names[component]].args.args] == list(ours)


@pytest.mark.parametrize("path", sorted(KNOWN.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_known_libraries_agree(path: Path) -> None:
    """Written by others: the strongest check there is of what the components mean."""
    pytest.importorskip(path.stem)
    library = importlib.import_module(f"conformance.known.{path.stem}")
    names = {**contract.COURSE_FUNCTIONS, **contract.OPTIONAL_FUNCTIONS}
    for component in library.COMPONENTS:
        name = names[component]
        given = arguments()[name]
        got, expected = getattr(library, name)(**given), getattr(adapters, name)(**given)
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


def test_the_contract_lists_every_function_once() -> None:
    defined = {name for name in vars(contract) if name.startswith("run_")}
    assert defined == set(FUNCTIONS) == set(arguments())
    assert len(contract.COURSE_FUNCTIONS) == 12
    assert not contract.COURSE_FUNCTIONS.keys() & contract.OPTIONAL_FUNCTIONS.keys()
    for name in FUNCTIONS:
        with pytest.raises(NotImplementedError):
            getattr(contract, name)(**arguments()[name])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_reach_inputs_and_weights_and_nothing_is_modified(name: str) -> None:
    given = arguments()[name]
    tensors = floating(given)
    before = {key: tensor.clone() for key, tensor in tensors.items()}
    keys = list(given["weights"]) if isinstance(given.get("weights"), dict) else []
    for tensor in tensors.values():
        tensor.requires_grad_()
    result = getattr(adapters, name)(**given)
    if tensors:
        cotangent = torch.randn(result.shape)
        for gradient in torch.autograd.grad(result, list(tensors.values()), cotangent):
            assert gradient.any()
    assert all(torch.equal(tensors[key], before[key]) for key in tensors)
    assert not keys or list(given["weights"]) == keys
    assert torch.equal(getattr(adapters, name)(**given), result)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_dtype_is_kept(name: str, dtype: torch.dtype) -> None:
    given = arguments(dtype)[name]
    result = getattr(adapters, name)(**given)
    assert result.dtype == (torch.float32 if name == "run_sinusoidal" else dtype)
    exact = getattr(adapters, name)(**arguments(torch.float64)[name]).double()
    loose = 0.3 if dtype != torch.float64 else 1e-12
    if name != "run_next_token":  # a rounded logit may cross the edge of the nucleus
        torch.testing.assert_close(result.double(), exact, rtol=loose, atol=loose)


@pytest.mark.parametrize(
    "name",
    [
        "run_linear",
        "run_rmsnorm",
        "run_swiglu",
        "run_multihead_self_attention",
        "run_multihead_self_attention_with_rope",
        "run_transformer_block",
    ],
)
def test_half_inputs_with_float32_weights(name: str) -> None:
    given = arguments()[name]
    given["in_features"] = given["in_features"].bfloat16()
    result = getattr(adapters, name)(**given)
    assert result.dtype == torch.bfloat16
    exact = getattr(adapters, name)(**{**given, "in_features": given["in_features"].double()})
    # the weights are not rounded to bfloat16, so one rounding of the result is all there is
    torch.testing.assert_close(result.double(), exact, rtol=2**-8, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_work_in_inference_mode_and_draw_no_random_numbers(name: str) -> None:
    given = arguments()[name]
    expected = getattr(adapters, name)(**given)
    state = torch.get_rng_state()
    with torch.inference_mode():
        result = getattr(adapters, name)(**given)
    torch.testing.assert_close(result, expected)
    assert torch.equal(torch.get_rng_state(), state)


def test_wrong_weights_are_named() -> None:
    given = arguments()["run_transformer_block"]
    incomplete = {k: w for k, w in given["weights"].items() if k != "ln2.weight"}
    with pytest.raises(KeyError, match=r"ln2\.weight"):
        adapters.run_transformer_block(**{**given, "weights": incomplete})
    with pytest.raises(ValueError, match=r"shape \(7, 12\), not \(12, 7\)"):
        adapters.run_linear(7, 12, torch.randn(7, 12), torch.randn(7))
