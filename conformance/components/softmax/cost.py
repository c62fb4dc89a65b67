"""What softmax costs at least, and the inputs it is benchmarked on."""

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
    """Rows of unit scale, along the last axis."""
    return {"in_features": Floats((s["batch"], s["sequence"], s["width"])), "dim": -1}


def entry_count(s: Sizes) -> int:
    """How many entries there are."""
    return s["batch"] * s["sequence"] * s["width"]


def forward(s: Sizes, itemsize: int) -> Cost:
    """Largest entry, shift, exponential, sum, quotient; read and written."""
    return work(5 * entry_count(s)) + moved(2 * entry_count(s), itemsize)


def backward(s: Sizes, itemsize: int) -> Cost:
    """A product, a sum, a difference, a product; result and cotangent read, gradient written."""
    return work(4 * entry_count(s)) + moved(3 * entry_count(s), itemsize)


WORKLOAD = Workload(
    component="softmax",
    sizes={"batch": 8, "sequence": 128, "width": 512},
    gpu_sizes={"batch": 16, "sequence": 2048, "width": 4096},
    arguments=arguments,
    output=lambda s: (s["batch"], s["sequence"], s["width"]),
    forward=forward,
    backward=backward,
    axes={"sequence": (64, 128, 256, 512), "width": (256, 512, 1024, 2048)},
    note=(
        "the textbook finds the largest entry, subtracts, exponentiates, sums and divides in "
        "five passes, each of which writes an array, and the derivative goes back through all "
        "of them; the fused operator holds a row in cache"
    ),
)
