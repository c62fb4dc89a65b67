"""What scaled dot-product attention costs at least, and the inputs it is benchmarked on."""

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
    product,
    work,
)

HEAD = 64
"""Features of one head."""


def arguments(s: Sizes) -> Arguments:
    """Queries, keys and values of several heads, with a causal mask."""
    length = s["sequence"]
    shape = (s["batch"], s["heads"], length, HEAD)
    return {
        "Q": Floats(shape),
        "K": Floats(shape),
        "V": Floats(shape),
        "mask": Fixed(np.tril(np.ones((length, length), dtype=bool))),
    }


def attention(heads: int, length: int, width: int, itemsize: int) -> Cost:
    """Two products and a softmax for each of so many heads; scores need not leave the chip.

    Masked scores are counted as well: how many can be left out depends on the mask.
    """
    scores = work(6 * heads * length * length)
    products = product(length, width, length).times(2 * heads)
    return products + scores + moved(4 * heads * length * width, itemsize)


def attention_backward(heads: int, length: int, width: int, itemsize: int) -> Cost:
    """Four products, the softmax's derivative; five arrays read, three written.

    The scores may be kept; computing them a second time is not counted.
    """
    scores = work(6 * heads * length * length)
    products = product(length, width, length).times(4 * heads)
    return products + scores + moved(8 * heads * length * width, itemsize)


def of(part: object, s: Sizes, itemsize: int) -> Cost:
    """One of the two at these sizes, the mask read once."""
    assert callable(part)
    found = part(s["batch"] * s["heads"], s["sequence"], HEAD, itemsize)
    assert isinstance(found, Cost)
    return found + Cost(bytes=float(s["sequence"]) ** 2)


WORKLOAD = Workload(
    component="scaled_dot_product_attention",
    sizes={"batch": 2, "heads": 4, "sequence": 128},
    gpu_sizes={"batch": 8, "heads": 16, "sequence": 2048},
    arguments=arguments,
    output=lambda s: (s["batch"], s["heads"], s["sequence"], HEAD),
    forward=lambda s, item: of(attention, s, item),
    backward=lambda s, item: of(attention_backward, s, item),
    axes={"sequence": (128, 192, 256, 384, 512), "heads": (2, 4, 8, 16), "batch": (1, 2, 4, 8)},
    note=(
        "the textbook writes the matrix of scores, the masked scores, the exponentials and "
        "the weights to memory; the fused operator computes them tile by tile and never "
        "writes them"
    ),
)
