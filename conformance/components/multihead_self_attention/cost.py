"""What causal multi-head attention costs at least, and the inputs it is benchmarked on."""

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
from conformance.components.scaled_dot_product_attention.cost import attention, attention_backward


def arguments(s: Sizes) -> Arguments:
    """Rows of unit scale."""
    width = s["width"]
    one = weight(width, width, scale=at_unit_scale(width))
    return {
        "d_model": width,
        "num_heads": s["heads"],
        "q_proj_weight": one,
        "k_proj_weight": one,
        "v_proj_weight": one,
        "o_proj_weight": one,
        "in_features": Floats((s["batch"], s["sequence"], width)),
    }


def projected(s: Sizes, itemsize: int) -> Cost:
    """Four products and attention in between; of what is moved, only rows and weights count."""
    rows, width, heads = s["batch"] * s["sequence"], s["width"], s["heads"]
    inner = attention(s["batch"] * heads, s["sequence"], width // heads, itemsize)
    moving = moved(2 * rows * width + 4 * width * width, itemsize)
    return product(rows, width, width).times(4) + unmoved(inner) + moving


def projected_backward(s: Sizes, itemsize: int) -> Cost:
    """Eight products and the derivative of attention."""
    rows, width, heads = s["batch"] * s["sequence"], s["width"], s["heads"]
    inner = attention_backward(s["batch"] * heads, s["sequence"], width // heads, itemsize)
    moving = moved(3 * rows * width + 8 * width * width, itemsize)
    return product(rows, width, width).times(8) + unmoved(inner) + moving


def unmoved(cost: Cost) -> Cost:
    """The operations of a part whose inputs and results need not leave the chip."""
    return Cost(cost.matmul, cost.pointwise)


WORKLOAD = Workload(
    component="multihead_self_attention",
    sizes={"batch": 2, "sequence": 128, "width": 192, "heads": 4},
    gpu_sizes={"batch": 8, "sequence": 2048, "width": 2048, "heads": 16},
    arguments=arguments,
    output=lambda s: (s["batch"], s["sequence"], s["width"]),
    forward=projected,
    backward=projected_backward,
    axes={
        "sequence": (128, 192, 256, 384, 512),
        "width": (128, 192, 256, 384),
        "heads": (2, 4, 8, 16),
        "batch": (1, 2, 4, 8),
    },
    note=(
        "as in scaled_dot_product_attention, and the scores above the diagonal are computed "
        "only to be masked"
    ),
)
