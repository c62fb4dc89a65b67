"""What the language model costs at least, and the inputs it is benchmarked on."""

from __future__ import annotations

from conformance.bench.workload import (
    Arguments,
    Cost,
    Ids,
    Sizes,
    Workload,
    at_unit_scale,
    moved,
    product,
    weight,
)
from conformance.components.multihead_self_attention.cost import unmoved
from conformance.components.rmsnorm.cost import norm, norm_backward
from conformance.components.transformer_block import cost as block


def arguments(s: Sizes) -> Arguments:
    """Token ids from the whole vocabulary."""
    width, vocabulary = s["width"], s["vocabulary"]
    layers = {
        f"layers.{number}.{name}": one
        for number in range(s["layers"])
        for name, one in block.block_weights(width, s["hidden"]).items()
    }
    return {
        "vocab_size": vocabulary,
        "context_length": 2 * s["sequence"],
        "d_model": width,
        "num_layers": s["layers"],
        "num_heads": s["heads"],
        "d_ff": s["hidden"],
        "rope_theta": 10000.0,
        "weights": {
            "token_embeddings.weight": weight(vocabulary, width),
            **layers,
            "ln_final.weight": weight(width),
            "lm_head.weight": weight(vocabulary, width, scale=at_unit_scale(width)),
        },
        "in_indices": Ids((s["batch"], s["sequence"]), vocabulary),
    }


def weight_count(s: Sizes) -> int:
    """Numbers in all weights but the table, of which only some rows are read."""
    return s["layers"] * block.weight_count(s) + s["width"] * (1 + s["vocabulary"])


def forward(s: Sizes, itemsize: int) -> Cost:
    """Blocks, norm and head; rows of the table and weights read, logits written."""
    rows, width, vocabulary = s["batch"] * s["sequence"], s["width"], s["vocabulary"]
    parts = block.forward(s, itemsize).times(s["layers"]) + norm(rows, width, itemsize)
    moving = moved(rows * (width + vocabulary) + weight_count(s), itemsize)
    return unmoved(parts) + product(rows, width, vocabulary) + moving


def backward(s: Sizes, itemsize: int) -> Cost:
    """The derivatives of the parts; cotangent and weights read, gradients written."""
    rows, width, vocabulary = s["batch"] * s["sequence"], s["width"], s["vocabulary"]
    parts = block.backward(s, itemsize).times(s["layers"]) + norm_backward(rows, width, itemsize)
    written = weight_count(s) + vocabulary * width
    moving = moved(rows * vocabulary + weight_count(s) + written, itemsize)
    return unmoved(parts) + product(rows, width, vocabulary).times(2) + moving


WORKLOAD = Workload(
    component="transformer_lm",
    sizes={
        "batch": 2,
        "sequence": 64,
        "width": 128,
        "layers": 2,
        "heads": 4,
        "hidden": 352,
        "vocabulary": 1024,
    },
    gpu_sizes={
        "batch": 4,
        "sequence": 1024,
        "width": 1024,
        "layers": 8,
        "heads": 16,
        "hidden": 2816,
        "vocabulary": 32768,
    },
    arguments=arguments,
    output=lambda s: (s["batch"], s["sequence"], s["vocabulary"]),
    forward=forward,
    backward=backward,
    axes={
        "sequence": (64, 96, 128, 192, 256),
        "layers": (1, 2, 4, 6),
        "batch": (1, 2, 4, 8),
    },
    note=(
        "as in transformer_block; building the modules (without memory, on the meta device) "
        "costs as much as small layers do"
    ),
)
