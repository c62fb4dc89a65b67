"""The corpora themselves: every variant is right, every fault is wrong where it says it is.

What is compared with is the plain implementation in float64. Bounds are generous on both sides:
they tell a mistake from a rounding error, which is all that is needed to trust the corpora; how
sharply the harness does so is measured elsewhere.
"""

import importlib.util
import math
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor


def import_by_path(path: Path) -> ModuleType:
    """This folder is no package, so the loader is found by its path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


corpus = import_by_path(Path(__file__).with_name("corpus.py"))
witnesses = corpus.module("witnesses")
correct = corpus.module("adapting").CORRECT

VARIANTS = corpus.variants()
FAULTS = corpus.faults()
NULLS = corpus.nulls()
WRONG = 1e-3  # of the largest magnitude; a fault is at least this far off
KINDS = {"value", "gradient", "shape", "dtype", "state", "purity", "strides", "crash"}
# Ten times the worst error that a right answer of this dtype has on these inputs.
RIGHT = {torch.float64: 1e-5, torch.float32: 1e-5, torch.float16: 0.02, torch.bfloat16: 0.15}


def named(entry: Any) -> str:
    return str(entry.id)


def error(got: Tensor, want: Tensor) -> float:
    """Largest difference over the largest magnitude; infinite where got is not finite."""
    assert got.shape == want.shape
    if want.numel() == 0:
        return 0.0
    worst = (got.detach().double() - want.detach()).abs().max().item()
    largest = max(want.detach().abs().max().item(), 1e-30)
    return math.inf if math.isnan(worst) else worst / largest


def fresh(arguments: dict[str, Any]) -> dict[str, Any]:
    """Copies of all tensors, strides kept."""

    def copied(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: copied(part) for name, part in value.items()}
        if not torch.is_tensor(value):
            return value
        copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
        return copy.copy_(value)

    return {name: copied(value) for name, value in arguments.items()}


def tensors(arguments: dict[str, Any]) -> dict[str, Tensor]:
    """All tensors by name, those of a dictionary as `weights.name`."""
    found = {}
    for name, value in arguments.items():
        if torch.is_tensor(value):
            found[name] = value
        elif isinstance(value, dict):
            found |= {f"{name}.{key}": part for key, part in value.items()}
    return found


def gradients(function: Any, arguments: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The gradients of the output's product with fixed numbers, from two backward passes."""
    leaves = tensors(arguments)
    for name in names:
        leaves[name].requires_grad_()
    output = function(**arguments)
    cotangent = witnesses.draw(*output.shape, seed=77).to(output.dtype)
    inputs = [leaves[name] for name in names]
    first = torch.autograd.grad(output, inputs, cotangent, retain_graph=True, allow_unused=True)
    kept = [None if g is None else g.clone() for g in first]
    return [*kept, *torch.autograd.grad(output, inputs, cotangent, allow_unused=True)]


def gradient_error(entry: Any, arguments: dict[str, Any], names: tuple[str, ...]) -> float:
    """The largest error of a gradient; infinite when one is missing or cannot be computed."""
    want = gradients(correct[entry.component], witnesses.double(arguments), names)
    try:
        got = gradients(entry.function, fresh(arguments), names)
    except RuntimeError:
        return math.inf
    if any(g is None for g in got):
        return math.inf
    scale = max(max(w.abs().max().item() for w in want), 1e-30)
    worst = [(g.double() - w).abs().max().item() for g, w in zip(got, want, strict=True)]
    return math.inf if any(math.isnan(w) for w in worst) else max(worst) / scale


def touched(entry: Any, calls: list[dict[str, Any]]) -> bool:
    """Whether a call changes an argument, shares its memory, or changes an earlier answer."""
    outputs: list[Tensor] = []
    copies: list[Tensor] = []
    for arguments in calls:
        before, own = tensors(fresh(arguments)), fresh(arguments)
        names = set(arguments.get("weights", {})) if "weights." in str(list(before)) else None
        output = entry.function(**own)
        after = tensors(own)
        if names is not None and set(own["weights"]) != names:
            return True
        if any(not torch.equal(before[n], after[n]) for n in before):
            return True
        used = {t.untyped_storage().data_ptr() for t in [*after.values(), *outputs]}
        if output.untyped_storage().data_ptr() in used:
            return True
        if any(not torch.equal(a, b) for a, b in zip(outputs, copies, strict=True)):
            return True
        outputs.append(output)
        copies.append(output.clone())
    return False


@pytest.mark.parametrize("entry", VARIANTS, ids=named)
def test_variant_is_right(entry: Any) -> None:
    default = witnesses.DEFAULT[entry.component]
    arguments = default()
    want = witnesses.exact(entry.component, arguments)
    got = entry.function(**fresh(arguments))
    assert error(got, want) < RIGHT[torch.float32]
    names = witnesses.INPUTS[entry.component]
    if names:
        assert gradient_error(entry, arguments, names) < RIGHT[torch.float32]
        swapped = arguments | {n: witnesses.strided(arguments[n]) for n in names}
        assert error(entry.function(**swapped), want) < RIGHT[torch.float32]
    assert not touched(entry, [arguments, default()])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("entry", [e for e in VARIANTS if e.level != "must-only"], ids=named)
def test_variant_is_right_at_every_dtype(entry: Any, dtype: torch.dtype) -> None:
    if entry.component == "sinusoidal":
        pytest.skip("takes no floating input")
    arguments = witnesses.DEFAULT[entry.component](dtype=dtype)
    got = entry.function(**fresh(arguments))
    assert got.dtype == dtype
    assert error(got, witnesses.exact(entry.component, arguments)) < RIGHT[dtype]


OTHER_SHAPES = [
    *[
        (name, {"lead": lead})
        for name in ("linear", "rmsnorm", "glu", "swiglu")
        for lead in ((), (4,), (1, 1), (2, 1, 3, 2))
    ],
    *[("embedding", {"ids": ids}) for ids in (3, (3,), ((3,),), (((1, 2),), ((3, 3),)))],
    *[("softmax", {"dim": dim}) for dim in (0, 1, -2)],
    ("rope", {"lead": ()}),
    ("rope", {"positions": ((3, 0, 1),)}),
    ("rope", {"positions": (((3, 0, 1),), ((2, 2, 5),))}),
    ("rope", {"lead": (2, 1, 3, 2)}),
    ("sinusoidal", {"positions": 7}),
    ("sinusoidal", {"positions": ((1, 2), (3, 0))}),
    ("rotation", {"angles": 0.5}),
    *[("scaled_dot_product_attention", {"mask": mask}) for mask in ("plane", None)],
    ("scaled_dot_product_attention", {"lead": (), "mask": "plane"}),
    ("scaled_dot_product_attention", {"queries": 1, "keys": 1}),
    *[
        (name, {"lead": lead})
        for lead in ((), (2, 1))
        for name in (
            "multihead_self_attention",
            "multihead_self_attention_with_rope",
            "transformer_block",
            "transformer_lm",
        )
    ],
    ("multihead_self_attention_with_rope", {"positions": None}),
    ("multihead_self_attention_with_rope", {"positions": ((0, 4, 2), (7, 7, 1))}),
    ("transformer_lm", {"layers": 12, "heads": 1, "seq": 1}),
    *[("next_token", {"temperature": t, "top_p": p}) for t in (0, 0.5) for p in (None, 0.7, 1e-6)],
    ("next_token", {"logits": ((0.0, 9.0, 1.0), (1.0, 2.0, 2.0)), "temperature": 0}),
    ("next_token", {"logits": ((0.0, 9.0, 1.0), (1.0, 2.0, 2.0)), "top_p": 0.4}),
]


@pytest.mark.parametrize(("component", "more"), OTHER_SHAPES, ids=str)
def test_variants_take_other_shapes(component: str, more: dict[str, Any]) -> None:
    arguments = witnesses.DEFAULT[component](**more)
    want = witnesses.exact(component, arguments)
    for entry in VARIANTS:
        if entry.component == component:
            assert error(entry.function(**fresh(arguments)), want) < RIGHT[torch.float32], entry.id


@pytest.mark.parametrize("entry", FAULTS, ids=named)
def test_fault_is_wrong_where_it_says(entry: Any) -> None:
    calls = entry.witness()
    arguments = calls[-1]
    want = witnesses.exact(entry.component, arguments)
    plain = correct[entry.component](**fresh(arguments))
    right = RIGHT[plain.dtype]
    if entry.visible == "crash":
        with pytest.raises(Exception):  # noqa: B017, PT011 - any exception is the fault
            entry.function(**fresh(arguments))
        return
    if entry.visible == "purity":
        assert touched(entry, calls)
        assert not touched(CorrectEntry(entry.component), calls)
        return
    if entry.visible == "strides":
        contiguous = {n: v.contiguous() if torch.is_tensor(v) else v for n, v in arguments.items()}
        assert error(entry.function(**contiguous), want) < right
        try:
            got = entry.function(**fresh(arguments))
        except RuntimeError:
            return
        assert error(got, want) > WRONG
        return
    if entry.visible == "gradient":
        assert error(entry.function(**fresh(arguments)), want) < right
        assert gradient_error(entry, arguments, entry.wrt) > WRONG
        return
    if entry.visible == "state":
        assert (
            error(entry.function(**fresh(calls[0])), witnesses.exact(entry.component, calls[0]))
            < right
        )
        for before in calls[1:-1]:
            entry.function(**fresh(before))
        try:
            got = entry.function(**fresh(arguments))
        except (RuntimeError, IndexError):
            return
        assert got.shape != want.shape or error(got, want) > WRONG
        return
    got = entry.function(**fresh(arguments))
    if entry.visible == "shape":
        assert got.shape != want.shape
    elif entry.visible == "dtype":
        assert got.dtype != plain.dtype
        assert error(got, want) < right
    else:
        assert error(got, want) > max(WRONG, 2 * right if right > WRONG else 0)


class CorrectEntry:
    """The plain implementation in the form of an entry."""

    def __init__(self, component: str) -> None:
        self.id = self.component = component
        self.function = correct[component]


@pytest.mark.parametrize("entry", NULLS, ids=named)
def test_null_model_has_the_right_shape_and_is_wrong(entry: Any) -> None:
    (arguments,) = entry.witness()
    got = entry.function(**fresh(arguments))
    assert error(got, witnesses.exact(entry.component, arguments)) > WRONG


def test_entries_are_complete() -> None:
    entries = [*VARIANTS, *FAULTS, *NULLS]
    assert [i for i, n in Counter(e.id for e in entries).items() if n > 1] == []
    assert {e.component for e in entries} == set(correct)
    for entry in entries:
        assert entry.sentence.endswith("."), entry.id
        assert entry.source, entry.id
    for entry in [*FAULTS, *NULLS]:
        assert entry.hint, entry.id
        assert entry.visible in KINDS, entry.id
        assert entry.level in {"MUST", "SHOULD"}, entry.id
    assert {e.level for e in VARIANTS} <= {"full", "must-only", "open"}


def test_corpora_are_large_enough() -> None:
    for entries, least in ((VARIANTS, 60), (FAULTS, 250), (NULLS, 100)):
        counts = Counter(e.component for e in entries)
        assert set(counts) == set(correct)
        assert sum(counts.values()) >= least


def test_written_adapters_file_offers_the_entry(tmp_path: Path) -> None:
    path = tmp_path / "adapters.py"
    path.write_text(corpus.adapters_text("faulty", "silu-relu", "rotation-transposed"))
    module = import_by_path(path)
    offered = {name for name in vars(module) if name.startswith("run_")}
    assert offered == {"run_silu", "run_rotation_matrix"}
    assert module.run_silu(in_features=torch.tensor([-1.0])).item() == 0
