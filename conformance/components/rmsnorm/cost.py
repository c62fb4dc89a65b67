"""What RMSNorm costs at least, and the inputs it is benchmarked on."""

from __future__ import annotations

from conformance.bench.workload import (
    Arguments,
    Cost,
    Floats,
    Sizes,
    Workload,
    moved,
    weight,
    work,
)


def arguments(s: Sizes) -> Arguments:
    """Rows of unit scale."""
    return {
        "d_model": s["width"],
        "eps": 1e-5,
        "weights": weight(s["width"]),
        "in_features": Floats((s["batch"], s["sequence"], s["width"])),
    }


def norm(rows: int, width: int, itemsize: int) -> Cost:
    """Square, sum, scale, gain; rows read and written."""
    return work(4 * rows * width) + moved(2 * rows * width + width, itemsize)


def norm_backward(rows: int, width: int, itemsize: int) -> Cost:
    """A sum per row, a sum over the rows for the gain; two arrays read, one written."""
    return work(8 * rows * width) + moved(3 * rows * width + 2 * width, itemsize)


WORKLOAD = Workload(
    component="rmsnorm",
    sizes={"batch": 8, "sequence": 128, "width": 512},
    gpu_sizes={"batch": 16, "sequence": 2048, "width": 4096},
    arguments=arguments,
    output=lambda s: (s["batch"], s["sequence"], s["width"]),
    forward=lambda s, item: norm(s["batch"] * s["sequence"], s["width"], item),
    backward=lambda s, item: norm_backward(s["batch"] * s["sequence"], s["width"], item),
    axes={"sequence": (64, 128, 256, 512), "width": (256, 512, 1024, 2048)},
    note=(
        "the textbook squares, averages, scales and multiplies in five passes over memory, "
        "each of which writes an array that the derivative keeps; the fused operator reads "
        "once and writes once"
    ),
)
