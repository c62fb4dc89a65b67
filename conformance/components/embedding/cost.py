"""What a table lookup costs at least, and the inputs it is benchmarked on."""

from __future__ import annotations

from conformance.bench.workload import (
    Arguments,
    Cost,
    Ids,
    Sizes,
    Workload,
    moved,
    weight,
    work,
)

ID_BYTES = 8


def arguments(s: Sizes) -> Arguments:
    """Ids from the whole vocabulary."""
    return {
        "vocab_size": s["vocabulary"],
        "d_model": s["width"],
        "weights": weight(s["vocabulary"], s["width"]),
        "token_ids": Ids((s["batch"], s["sequence"]), s["vocabulary"]),
    }


def forward(s: Sizes, itemsize: int) -> Cost:
    """Each row read and written, each id read."""
    ids = s["batch"] * s["sequence"]
    return moved(2 * ids * s["width"], itemsize) + moved(ids, ID_BYTES)


def backward(s: Sizes, itemsize: int) -> Cost:
    """Rows added to a gradient of the size of the table."""
    ids = s["batch"] * s["sequence"]
    table = s["vocabulary"] * s["width"]
    added = work(ids * s["width"])
    return added + moved(ids * s["width"] + table, itemsize) + moved(ids, ID_BYTES)


WORKLOAD = Workload(
    component="embedding",
    sizes={"batch": 8, "sequence": 256, "width": 256, "vocabulary": 2048},
    gpu_sizes={"batch": 16, "sequence": 2048, "width": 2048, "vocabulary": 32768},
    arguments=arguments,
    output=lambda s: (s["batch"], s["sequence"], s["width"]),
    forward=forward,
    backward=backward,
    axes={"sequence": (256, 512, 1024, 2048), "width": (256, 384, 512, 768)},
    note=(
        "the textbook indexes the table; the derivative of indexing sorts or adds row by row, "
        "torch's embedding has a kernel for it"
    ),
)
