"""What the distribution of the next token costs at least, and the inputs it is benchmarked on."""

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
    """Logits of a few positions, cut to the nucleus."""
    return {
        "logits": Floats((s["batch"], s["sequence"], s["vocabulary"]), scale=2.0),
        "temperature": 0.75,
        "top_p": 0.9,
    }


def forward(s: Sizes, itemsize: int) -> Cost:
    """A softmax and a choice over the last position, read and written; a sort is not demanded."""
    count = s["batch"] * s["vocabulary"]
    return work(8 * count) + moved(2 * count, itemsize)


WORKLOAD = Workload(
    component="next_token",
    sizes={"batch": 8, "sequence": 2, "vocabulary": 4096},
    gpu_sizes={"batch": 64, "sequence": 2, "vocabulary": 65536},
    arguments=arguments,
    output=lambda s: (s["batch"], s["vocabulary"]),
    forward=forward,
    backward=None,
    no_backward="a distribution to draw from is not differentiated",
    axes={"vocabulary": (4096, 8192, 16384, 32768), "batch": (8, 16, 32, 64)},
)
