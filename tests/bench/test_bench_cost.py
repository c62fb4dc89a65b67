"""The cost model against torch's own counter, and against what must hold of any cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from conformance.bench.ceilings import Ceiling
from conformance.bench.inputs import Pool, encoded, entry, float_names, materialise, nbytes
from conformance.bench.statistics import exponent
from conformance.bench.workload import (
    BOTH,
    FORWARD,
    Cost,
    Floats,
    Ids,
    at_unit_scale,
    workload,
    workloads,
)
from conformance.spec import component_names

NAMES = component_names()


def test_every_component_has_a_workload() -> None:
    assert [one.component for one in workloads()] == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_products_are_counted_as_torch_counts_them(name: str) -> None:
    """`FlopCounterMode` counts matrix products, and nothing else of these components."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    import reference_impl.adapters as reference

    one = workload(name)
    arguments = one.arguments(one.sizes)
    values, cotangent = materialise(Pool.draw("float32"), arguments, 3, one.output(one.sizes))
    tensors = {n: _tensor(v) for n, v in values.items()}
    which = one.passes[-1]
    if which == BOTH:
        for leaf in _leaves(tensors):
            if leaf.is_floating_point():
                leaf.requires_grad_(True)
    with FlopCounterMode(display=False) as counter:
        output = getattr(reference, one.function)(**tensors)
        forward = counter.get_total_flops()
        if which == BOTH:
            torch.autograd.backward((output,), (torch.from_numpy(cotangent),))
    assert tuple(output.shape) == one.output(one.sizes)
    assert forward == one.cost(one.sizes, 4, FORWARD).matmul
    assert counter.get_total_flops() == one.cost(one.sizes, 4, which).matmul


def _tensor(value: Any) -> Any:
    import torch

    if isinstance(value, Mapping):
        return {key: _tensor(inner) for key, inner in value.items()}
    return torch.from_numpy(np.array(value)) if isinstance(value, np.ndarray) else value


def _leaves(tensors: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = []
    for value in tensors.values():
        found += _leaves(value) if isinstance(value, Mapping) else [value]
    return [value for value in found if hasattr(value, "requires_grad_")]


@pytest.mark.parametrize("name", NAMES)
def test_no_less_is_moved_than_what_is_asked_and_answered(name: str) -> None:
    """Everything that is used is read once, and the result written; half the bytes in 16 bits."""
    one = workload(name)
    cost = one.cost(one.sizes, 4, FORWARD)
    written = 4 * int(np.prod(one.output(one.sizes)))
    assert cost.bytes >= written
    assert (
        cost.bytes
        <= written
        + nbytes(one.arguments(one.sizes), 4, None)
        + one.sizes.get("sequence", 0) ** 2
        + written
    )
    half = one.cost(one.sizes, 2, FORWARD)
    assert half.flops == cost.flops
    assert half.bytes <= cost.bytes
    if one.backward is not None:
        assert one.cost(one.sizes, 4, BOTH).bytes > cost.bytes


@pytest.mark.parametrize("name", ["scaled_dot_product_attention", "silu", "rmsnorm", "rope"])
def test_attention_grows_with_the_square_of_the_sequence_and_the_rest_linearly(name: str) -> None:
    one = workload(name)
    lengths = [1024, 2048, 4096]
    flops = [one.cost(one.at(sequence=length), 4, FORWARD).flops for length in lengths]
    wanted = 2.0 if name == "scaled_dot_product_attention" else 1.0
    assert exponent(lengths, flops).value == pytest.approx(wanted, abs=0.01)


def test_costs_add_up() -> None:
    assert Cost(1, 2, 3) + Cost(1, 1, 1) == Cost(2, 3, 4)
    assert Cost(1, 2, 3).times(2).flops == 6
    assert Cost(4, 2, 3).intensity == 2
    assert [at_unit_scale(n) for n in (1, 4, 100)] == [1.0, 0.5, 0.125]


def test_which_ceiling_applies_and_what_is_impossible() -> None:
    ceiling = Ceiling("float32", 1e9, {1 << 20: 4e9, 1 << 26: 1e9})
    product, copy = Cost(matmul=1e6, bytes=1e3), Cost(bytes=1e6)
    assert (ceiling.bound(product), ceiling.bound(copy)) == ("compute", "memory")
    assert ceiling.seconds(product) == pytest.approx(1e-3)
    assert ceiling.floor(product) < ceiling.seconds(product)
    assert ceiling.floor(copy) == pytest.approx(0.4 * 1e6 / 4e9)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_judge_and_worker_make_the_same_inputs(dtype: str) -> None:
    """By the same rule, rounded alike."""
    import torch

    from conformance.bench.runner import Bench, Slot

    pool = Pool.draw(dtype)
    arguments = {"x": Floats((3, 5)), "w": {"a": Floats((7,), 0.25, rows=False)}, "n": Ids((4,), 9)}
    told, fixed = encoded(arguments)
    bench = object.__new__(Bench)
    bench.torch, bench.device, bench.dtype = torch, "cpu", getattr(torch, dtype)
    raw = torch.from_numpy(pool.floats.view(f"i{pool.floats.itemsize}"))
    bench.pool = raw.view(bench.dtype)
    bench.numbers = torch.from_numpy(pool.numbers)
    slot = Slot(bench, {"backward": True, "cotangent": [2, 2], "arguments": told}, fixed)
    slot.fill(123456789)
    values, cotangent = materialise(pool, arguments, 123456789, (2, 2))
    made = slot.arguments()
    for left, right in (
        (made["x"], values["x"]),
        (made["w"]["a"], values["w"]["a"]),
        (made["n"], values["n"]),
        (slot.cotangent, cotangent),
    ):
        assert np.array_equal(left.detach().double().numpy(), right.astype(np.float64))
    again, _ = materialise(pool, arguments, 987654321, (2, 2))
    assert not np.array_equal(again["x"], values["x"])
    assert float_names(arguments) == ["x", "w.a"]
    assert entry(arguments, values, 1)["x"].shape == (1, 5)
