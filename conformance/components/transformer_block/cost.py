"""What a transformer block costs at least, and the inputs it is benchmarked on."""

from __future__ import annotations

from conformance.bench.workload import (
    Arguments,
    Cost,
    Floats,
    Sizes,
    Workload,
    at_unit_scale,
    moved,
    weight,
    work,
)
from conformance.components.multihead_self_attention.cost import (
    projected,
    projected_backward,
    unmoved,
)
from conformance.components.multihead_self_attention_with_rope.cost import rotation_of
from conformance.components.rmsnorm.cost import norm, norm_backward
from conformance.components.swiglu.cost import network, network_backward


def block_weights(width: int, hidden: int) -> dict[str, Floats]:
    """The nine weights of a block."""
    square = weight(width, width, scale=at_unit_scale(width))
    return {
        "ln1.weight": weight(width),
        "attn.q_proj.weight": square,
        "attn.k_proj.weight": square,
        "attn.v_proj.weight": square,
        "attn.output_proj.weight": square,
        "ln2.weight": weight(width),
        "ffn.w1.weight": weight(hidden, width, scale=at_unit_scale(width)),
        "ffn.w2.weight": weight(width, hidden, scale=at_unit_scale(hidden)),
        "ffn.w3.weight": weight(hidden, width, scale=at_unit_scale(width)),
    }


def arguments(s: Sizes) -> Arguments:
    """Rows of unit scale."""
    return {
        "d_model": s["width"],
        "num_heads": s["heads"],
        "d_ff": s["hidden"],
        "max_seq_len": 2 * s["sequence"],
        "theta": 10000.0,
        "weights": block_weights(s["width"], s["hidden"]),
        "in_features": Floats((s["batch"], s["sequence"], s["width"])),
    }


def weight_count(s: Sizes) -> int:
    """Numbers in the nine weights."""
    return 4 * s["width"] ** 2 + 3 * s["width"] * s["hidden"] + 2 * s["width"]


def forward(s: Sizes, itemsize: int) -> Cost:
    """The parts in turn and two sums; rows and weights read, rows written."""
    rows, width = s["batch"] * s["sequence"], s["width"]
    parts = projected(s, itemsize) + rotation_of(s, itemsize)
    parts += network(rows, width, s["hidden"], itemsize) + norm(rows, width, itemsize).times(2)
    moving = moved(2 * rows * width + weight_count(s), itemsize)
    return unmoved(parts) + work(2 * rows * width) + moving


def backward(s: Sizes, itemsize: int) -> Cost:
    """The derivatives of the parts; everything read again, gradients written."""
    rows, width = s["batch"] * s["sequence"], s["width"]
    parts = projected_backward(s, itemsize) + rotation_of(s, itemsize)
    parts += network_backward(rows, width, s["hidden"], itemsize)
    parts += norm_backward(rows, width, itemsize).times(2)
    moving = moved(3 * rows * width + 2 * weight_count(s), itemsize)
    return unmoved(parts) + work(2 * rows * width) + moving


WORKLOAD = Workload(
    component="transformer_block",
    sizes={"batch": 2, "sequence": 96, "width": 192, "heads": 4, "hidden": 512},
    gpu_sizes={"batch": 8, "sequence": 2048, "width": 2048, "heads": 16, "hidden": 5632},
    arguments=arguments,
    output=lambda s: (s["batch"], s["sequence"], s["width"]),
    forward=forward,
    backward=backward,
    axes={
        "sequence": (96, 144, 192, 288, 384),
        "width": (128, 192, 256, 384),
        "batch": (1, 2, 4, 8),
    },
    note=("as in multihead_self_attention_with_rope and rmsnorm"),
)
