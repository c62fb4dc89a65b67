"""What the sinusoidal encoding costs at least, and the inputs it is benchmarked on."""

from __future__ import annotations

from conformance.bench.workload import (
    Arguments,
    Cost,
    Ids,
    Sizes,
    Workload,
    moved,
    work,
)

ID_BYTES, FLOAT32_BYTES = 8, 4
LONGEST = 1024
"""Upper bound of the positions; it does not grow with the sequence."""


def arguments(s: Sizes) -> Arguments:
    """Positions at random."""
    return {
        "d_model": s["width"],
        "max_seq_len": LONGEST,
        "token_positions": Ids((s["batch"], s["sequence"]), LONGEST),
    }


def forward(s: Sizes, itemsize: int) -> Cost:
    """A row written for each position; a table may stand for the sines."""
    rows = s["batch"] * s["sequence"]
    moving = moved(rows * s["width"], FLOAT32_BYTES) + moved(rows, ID_BYTES)
    return work(rows * s["width"]) + moving


WORKLOAD = Workload(
    component="sinusoidal",
    sizes={"batch": 8, "sequence": 256, "width": 256},
    gpu_sizes={"batch": 16, "sequence": 2048, "width": 2048},
    arguments=arguments,
    output=lambda s: (s["batch"], s["sequence"], s["width"]),
    forward=forward,
    backward=None,
    no_backward="its input are integers: there is nothing to differentiate",
    axes={"sequence": (512, 1024, 2048, 4096), "width": (128, 256, 512)},
)
