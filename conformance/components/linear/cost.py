"""What a linear map costs at least, and the inputs it is benchmarked on."""

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
)


def arguments(s: Sizes) -> Arguments:
    """Rows of unit scale through a square matrix."""
    width = s["width"]
    return {
        "d_in": width,
        "d_out": width,
        "weights": weight(width, width, scale=at_unit_scale(width)),
        "in_features": Floats((s["batch"], s["sequence"], width)),
    }


def forward(s: Sizes, itemsize: int) -> Cost:
    """One product; rows and matrix read, rows written."""
    rows, width = s["batch"] * s["sequence"], s["width"]
    return product(rows, width, width) + moved(2 * rows * width + width * width, itemsize)


def backward(s: Sizes, itemsize: int) -> Cost:
    """Two products, one for each gradient; three arrays read, two written."""
    rows, width = s["batch"] * s["sequence"], s["width"]
    moving = moved(3 * rows * width + 2 * width * width, itemsize)
    return product(rows, width, width).times(2) + moving


WORKLOAD = Workload(
    component="linear",
    sizes={"batch": 4, "sequence": 64, "width": 384},
    gpu_sizes={"batch": 16, "sequence": 1024, "width": 4096},
    arguments=arguments,
    output=lambda s: (s["batch"], s["sequence"], s["width"]),
    forward=forward,
    backward=backward,
    axes={"sequence": (64, 128, 256, 512), "width": (192, 288, 384, 576, 768)},
)
