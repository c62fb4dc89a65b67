"""The class of self-attention, which serves both components: without and with positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from conformance.components.multihead_self_attention.inputs import WEIGHTS
from conformance.suite.case import Arguments
from conformance.suite.composites import Composite

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "output_proj")


def _parameters(arguments: Arguments) -> Mapping[str, str]:
    return {f"{name}.weight": of for name, of in zip(PROJECTIONS, WEIGHTS, strict=True)}


def _likely(arguments: Arguments) -> Mapping[int, str]:
    width = arguments["d_model"]
    return {
        4 * width: "the four projections have a bias",
        3 * width: "three projections have a bias",
        width: "one projection has a bias",
        -(width**2): "a projection is missing or not registered",
    }


FORM = Composite(
    "MultiheadSelfAttention",
    needed=("d_model", "num_heads"),
    known={},
    parameters=_parameters,
    rotates=False,
    likely=_likely,
)

ROTATED = replace(FORM, known={"max_seq_len": "max_seq_len", "theta": "theta"}, rotates=True)
