"""What rotary position embedding costs at least, and the inputs it is benchmarked on."""

from __future__ import annotations

import numpy as np

from conformance.bench.workload import (
    Arguments,
    Cost,
    Fixed,
    Floats,
    Sizes,
    Workload,
    moved,
    work,
)

HEAD = 64
"""Features of one head."""


def arguments(s: Sizes) -> Arguments:
    """Queries of several heads at positions in order."""
    length = s["sequence"]
    return {
        "d_k": HEAD,
        "theta": 10000.0,
        "max_seq_len": 2 * length,
        "in_query_or_key": Floats((s["batch"], s["heads"], length, HEAD)),
        "token_positions": Fixed(np.arange(length)),
    }


def turned(rows: int, width: int, itemsize: int) -> Cost:
    """Four products and two sums for each pair; rows read and written."""
    return work(3 * rows * width) + moved(2 * rows * width, itemsize)


def of(s: Sizes, itemsize: int) -> Cost:
    """Turning forth costs the same as turning back, which is the derivative."""
    return turned(s["batch"] * s["heads"] * s["sequence"], HEAD, itemsize)


WORKLOAD = Workload(
    component="rope",
    sizes={"batch": 2, "heads": 8, "sequence": 256},
    gpu_sizes={"batch": 8, "heads": 32, "sequence": 2048},
    arguments=arguments,
    output=lambda s: (s["batch"], s["heads"], s["sequence"], HEAD),
    forward=of,
    backward=of,
    axes={"sequence": (256, 512, 1024, 2048), "heads": (4, 8, 16, 32)},
)
