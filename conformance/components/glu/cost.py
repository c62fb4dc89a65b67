"""What the gated linear unit costs at least, and the inputs it is benchmarked on."""

from __future__ import annotations

from conformance.bench.workload import (
    Arguments,
    Cost,
    Floats,
    Sizes,
    Workload,
    at_unit_scale,
    moved,
    product,
    weight,
    work,
)


def arguments(s: Sizes) -> Arguments:
    """Rows of unit scale."""
    width, hidden = s["width"], s["hidden"]
    return {
        "d_model": width,
        "d_ff": hidden,
        "w1_weight": weight(hidden, width, scale=at_unit_scale(width)),
        "w2_weight": weight(hidden, width, scale=at_unit_scale(width)),
        "in_features": Floats((s["batch"], s["sequence"], width)),
    }


def forward(s: Sizes, itemsize: int) -> Cost:
    """Two products, the gate; rows and matrices read, result written."""
    rows, width, hidden = s["batch"] * s["sequence"], s["width"], s["hidden"]
    moving = moved(rows * (width + hidden) + 2 * width * hidden, itemsize)
    return product(rows, width, hidden).times(2) + work(5 * rows * hidden) + moving


def backward(s: Sizes, itemsize: int) -> Cost:
    """Four products, the slope of the gate; everything read, three gradients written."""
    rows, width, hidden = s["batch"] * s["sequence"], s["width"], s["hidden"]
    moving = moved(rows * (2 * width + hidden) + 4 * width * hidden, itemsize)
    return product(rows, width, hidden).times(4) + work(8 * rows * hidden) + moving


WORKLOAD = Workload(
    component="glu",
    sizes={"batch": 4, "sequence": 64, "width": 256, "hidden": 384},
    gpu_sizes={"batch": 8, "sequence": 1024, "width": 2048, "hidden": 5632},
    arguments=arguments,
    output=lambda s: (s["batch"], s["sequence"], s["hidden"]),
    forward=forward,
    backward=backward,
    axes={"sequence": (64, 128, 256, 512), "width": (192, 288, 384, 576)},
    note=("the textbook computes the gate in a pass of its own"),
)
