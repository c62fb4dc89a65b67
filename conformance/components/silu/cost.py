"""What SiLU costs at least, and the inputs it is benchmarked on."""

from __future__ import annotations

from conformance.bench.workload import (
    Arguments,
    Cost,
    Floats,
    Sizes,
    Workload,
    moved,
    work,
)


def arguments(s: Sizes) -> Arguments:
    """Entries of unit scale."""
    return {"in_features": Floats((s["batch"], s["sequence"], s["width"]))}


def entry_count(s: Sizes) -> int:
    """How many entries there are."""
    return s["batch"] * s["sequence"] * s["width"]


def forward(s: Sizes, itemsize: int) -> Cost:
    """An exponential, a sum, a quotient, a product; read and written."""
    return work(4 * entry_count(s)) + moved(2 * entry_count(s), itemsize)


def backward(s: Sizes, itemsize: int) -> Cost:
    """The same once more and the slope; input and cotangent read, gradient written."""
    return work(8 * entry_count(s)) + moved(3 * entry_count(s), itemsize)


WORKLOAD = Workload(
    component="silu",
    sizes={"batch": 8, "sequence": 128, "width": 512},
    gpu_sizes={"batch": 16, "sequence": 2048, "width": 4096},
    arguments=arguments,
    output=lambda s: (s["batch"], s["sequence"], s["width"]),
    forward=forward,
    backward=backward,
    axes={"sequence": (64, 128, 256, 512), "width": (256, 512, 1024, 2048)},
    note=(
        "the textbook takes a logistic function and a product in two passes and keeps both "
        "for the derivative; the fused operator takes one pass"
    ),
)
