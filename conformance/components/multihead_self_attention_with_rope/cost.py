"""What attention with rotary positions costs at least, and the inputs it is benchmarked on."""

from __future__ import annotations

from conformance.bench.workload import (
    Arguments,
    Cost,
    Floats,
    Sizes,
    Workload,
    at_unit_scale,
    weight,
)
from conformance.components.multihead_self_attention.cost import (
    projected,
    projected_backward,
    unmoved,
)
from conformance.components.rope.cost import turned


def arguments(s: Sizes) -> Arguments:
    """Rows of unit scale at positions in order, which are not given."""
    width = s["width"]
    one = weight(width, width, scale=at_unit_scale(width))
    return {
        "d_model": width,
        "num_heads": s["heads"],
        "max_seq_len": 2 * s["sequence"],
        "theta": 10000.0,
        "q_proj_weight": one,
        "k_proj_weight": one,
        "v_proj_weight": one,
        "o_proj_weight": one,
        "in_features": Floats((s["batch"], s["sequence"], width)),
    }


def rotation_of(s: Sizes, itemsize: int) -> Cost:
    """Queries and keys turned, or their gradients turned back."""
    return unmoved(turned(s["batch"] * s["sequence"], s["width"], itemsize)).times(2)


WORKLOAD = Workload(
    component="multihead_self_attention_with_rope",
    sizes={"batch": 2, "sequence": 128, "width": 192, "heads": 4},
    gpu_sizes={"batch": 8, "sequence": 2048, "width": 2048, "heads": 16},
    arguments=arguments,
    output=lambda s: (s["batch"], s["sequence"], s["width"]),
    forward=lambda s, item: projected(s, item) + rotation_of(s, item),
    backward=lambda s, item: projected_backward(s, item) + rotation_of(s, item),
    axes={"sequence": (128, 192, 256, 384, 512), "width": (128, 192, 256, 384)},
    note=(
        "as in multihead_self_attention; besides, every call through the adapter makes the "
        "tables of rope anew in float64, up to max_seq_len, where the fused parts make those "
        "of the sequence in float32"
    ),
)
