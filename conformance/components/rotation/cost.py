"""What 2x2 rotation matrices cost at least, and the inputs they are benchmarked on."""

from __future__ import annotations

from conformance.bench.workload import (
    Arguments,
    Floats,
    Sizes,
    Workload,
    moved,
    work,
)


def arguments(s: Sizes) -> Arguments:
    """Angles of a few radians."""
    return {"angles": Floats((s["batch"], s["sequence"]))}


def count(s: Sizes) -> int:
    """How many angles there are."""
    return s["batch"] * s["sequence"]


WORKLOAD = Workload(
    component="rotation",
    sizes={"batch": 8, "sequence": 4096},
    gpu_sizes={"batch": 64, "sequence": 65536},
    arguments=arguments,
    output=lambda s: (s["batch"], s["sequence"], 2, 2),
    forward=lambda s, item: work(3 * count(s)) + moved(5 * count(s), item),
    backward=lambda s, item: work(6 * count(s)) + moved(6 * count(s), item),
    axes={"sequence": (4096, 8192, 16384, 32768)},
)
