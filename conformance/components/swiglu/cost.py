"""What the SwiGLU network costs at least, and the inputs it is benchmarked on."""

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
        "w2_weight": weight(width, hidden, scale=at_unit_scale(hidden)),
        "w3_weight": weight(hidden, width, scale=at_unit_scale(width)),
        "in_features": Floats((s["batch"], s["sequence"], width)),
    }


def network(rows: int, width: int, hidden: int, itemsize: int) -> Cost:
    """Three products, the gate; rows and matrices read, rows written."""
    moving = moved(2 * rows * width + 3 * width * hidden, itemsize)
    return product(rows, width, hidden).times(3) + work(5 * rows * hidden) + moving


def network_backward(rows: int, width: int, hidden: int, itemsize: int) -> Cost:
    """Six products, the slope of the gate; everything read, four gradients written."""
    moving = moved(3 * rows * width + 6 * width * hidden, itemsize)
    return product(rows, width, hidden).times(6) + work(9 * rows * hidden) + moving


def of(part: object, s: Sizes, itemsize: int) -> Cost:
    """One of the two at these sizes."""
    assert callable(part)
    found = part(s["batch"] * s["sequence"], s["width"], s["hidden"], itemsize)
    assert isinstance(found, Cost)
    return found


WORKLOAD = Workload(
    component="swiglu",
    sizes={"batch": 4, "sequence": 64, "width": 192, "hidden": 512},
    gpu_sizes={"batch": 8, "sequence": 1024, "width": 2048, "hidden": 5632},
    arguments=arguments,
    output=lambda s: (s["batch"], s["sequence"], s["width"]),
    forward=lambda s, item: of(network, s, item),
    backward=lambda s, item: of(network_backward, s, item),
    axes={"sequence": (64, 128, 256, 512), "width": (128, 192, 288, 384)},
    note=("the textbook's silu takes two passes and keeps both results for the derivative"),
)
