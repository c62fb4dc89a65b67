"""The corpora themselves: every variant is right, every fault is wrong where it says it is.

What is compared with is the plain implementation in float64. Bounds are generous on both sides:
they tell a mistake from a rounding error, which is all that is needed to trust the corpora; how
sharply the harness does so is measured elsewhere.
"""

import importlib.util
import math
from collections import Counter
from collections.abc import Iterator
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


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Tensors this small are slower on several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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


def check_variant(entry: Any) -> None:
    """Value, gradients, strides and purity on the default input."""
    arguments = witnesses.DEFAULT[entry.component]()
    want = witnesses.exact(entry.component, arguments)
    assert error(entry.function(**fresh(arguments)), want) < RIGHT[torch.float32]
    names = witnesses.INPUTS[entry.component]
    if names:
        assert gradient_error(entry, arguments, names) < RIGHT[torch.float32]
        swapped = arguments | {n: witnesses.strided(arguments[n]) for n in names}
        assert error(entry.function(**swapped), want) < RIGHT[torch.float32]
    assert not touched(entry, [arguments, witnesses.DEFAULT[entry.component]()])


def check_variant_dtypes(entry: Any) -> None:
    """Value and dtype of the answer in other precisions."""
    if entry.level == "must-only" or entry.component == "sinusoidal":
        return
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        arguments = witnesses.DEFAULT[entry.component](dtype=dtype)
        got = entry.function(**fresh(arguments))
        assert got.dtype == dtype
        assert error(got, witnesses.exact(entry.component, arguments)) < RIGHT[dtype]


def check_variant_shapes(entry: Any) -> None:
    """Other numbers of axes, axes of size 1, positions and masks of every legal shape."""
    for more in OTHER_SHAPES[entry.component]:
        arguments = witnesses.DEFAULT[entry.component](**more)
        want = witnesses.exact(entry.component, arguments)
        assert error(entry.function(**fresh(arguments)), want) < RIGHT[torch.float32], more


LEADS = [{"lead": lead} for lead in ((), (4,), (1, 1), (2, 1, 3, 2))]
BATCHES: list[dict[str, Any]] = [{"lead": ()}, {"lead": (2, 1), "seq": 2}]
LAST_TWO = ((0.0, 9.0, 1.0), (1.0, 2.0, 2.0))
OTHER_SHAPES: dict[str, list[dict[str, Any]]] = {
    "linear": LEADS,
    "embedding": [{"ids": i} for i in (3, (3,), ((3,),), (((1, 2),), ((3, 3),)))],
    "rmsnorm": LEADS,
    "silu": [{"x": 2.0}, {"x": ((1.0,), (-200.0,))}],
    "glu": LEADS,
    "swiglu": LEADS,
    "softmax": [{"dim": dim} for dim in (0, 1, -2)] + [{"x": ((1.0,), (1e4,))}],
    "sinusoidal": [{"positions": 7}, {"positions": ((1, 2), (3, 0))}],
    "rotation": [{"angles": 0.5}, {"angles": ((7.0,),)}],
    "rope": [
        {"lead": ()},
        {"lead": (2, 1, 3, 2)},
        {"positions": ((3, 0, 1),)},
        {"positions": (((3, 0, 1),), ((2, 2, 5),))},
    ],
    "scaled_dot_product_attention": [
        {"mask": "plane"},
        {"mask": None},
        {"lead": (), "mask": "plane"},
        {"queries": 1, "keys": 1},
        {"mask": torch.tensor([[True, False, True, True, False]])},
    ],
    "multihead_self_attention": BATCHES,
    "multihead_self_attention_with_rope": [
        *BATCHES,
        {"positions": None},
        {"positions": ((3, 0, 1),)},
        {"positions": ((0, 4, 2), (7, 7, 1))},
    ],
    "transformer_block": BATCHES,
    "transformer_lm": [*BATCHES, {"layers": 12, "heads": 1, "seq": 1}],
    "next_token": [
        *[{"temperature": t, "top_p": p} for t in (0, 0.5) for p in (None, 0.7, 1e-6)],
        {"logits": LAST_TWO, "temperature": 0},
        {"logits": LAST_TWO, "top_p": 0.4},
    ],
}


class Plain:
    """The plain implementation in the form of an entry."""

    def __init__(self, component: str) -> None:
        self.id = self.component = component
        self.function = correct[component]


def fails(entry: Any, arguments: dict[str, Any], want: Tensor) -> bool:
    """Whether a call raises, or answers something that is clearly wrong."""
    try:
        got = entry.function(**fresh(arguments))
    except (RuntimeError, IndexError):
        return True
    return got.shape != want.shape or error(got, want) > WRONG


def check_fault(entry: Any) -> None:
    """The fault shows where it says, and what should be right there is right."""
    calls = entry.witness()
    arguments = calls[-1]
    want = witnesses.exact(entry.component, arguments)
    plain = correct[entry.component](**fresh(arguments))
    right = RIGHT[plain.dtype]
    if entry.visible == "crash":
        with pytest.raises(Exception):  # noqa: B017, PT011 - any exception is the fault
            entry.function(**fresh(arguments))
    elif entry.visible == "purity":
        assert touched(entry, calls)
        assert not touched(Plain(entry.component), calls)
    elif entry.visible == "strides":
        names = witnesses.INPUTS[entry.component]
        contiguous = arguments | {name: arguments[name].contiguous() for name in names}
        assert error(entry.function(**contiguous), want) < right
        assert fails(entry, arguments, want)
    elif entry.visible == "gradient":
        assert error(entry.function(**fresh(arguments)), want) < right
        assert gradient_error(entry, arguments, entry.wrt) > WRONG
        assert gradient_error(Plain(entry.component), arguments, entry.wrt) < right
    elif entry.visible == "state":
        first = entry.function(**fresh(calls[0]))
        assert error(first, witnesses.exact(entry.component, calls[0])) < right
        assert fails(entry, arguments, want)
    elif entry.visible == "shape":
        assert entry.function(**fresh(arguments)).shape != want.shape
    elif entry.visible == "dtype":
        got = entry.function(**fresh(arguments))
        assert got.dtype != plain.dtype
        assert error(got.real, want) < right
    else:
        bound = WRONG if right < WRONG else 2 * right
        assert error(entry.function(**fresh(arguments)), want) > bound


def check_null(entry: Any) -> None:
    """Right shape and dtype, wrong numbers."""
    (arguments,) = entry.witness()
    got = entry.function(**fresh(arguments))
    assert got.dtype == correct[entry.component](**arguments).dtype
    assert error(got, witnesses.exact(entry.component, arguments)) > WRONG


CHECKS = [
    (VARIANTS, check_variant),
    (VARIANTS, check_variant_dtypes),
    (VARIANTS, check_variant_shapes),
    (FAULTS, check_fault),
    (NULLS, check_null),
]


@pytest.mark.parametrize("component", correct)
@pytest.mark.parametrize(("entries", "check"), CHECKS, ids=[check.__name__ for _, check in CHECKS])
def test_entries_are_what_they_say(entries: list[Any], check: Any, component: str) -> None:
    """One test for each component and check: every entry that fails is listed."""
    problems = []
    for entry in entries:
        if entry.component == component:
            try:
                check(entry)
            except Exception as problem:  # the entry's own exceptions count as failures too
                problems.append(f"{entry.id}: {type(problem).__name__} {problem}")
    assert problems == []


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
