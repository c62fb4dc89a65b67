"""Faults of the rotation matrix [[cos, -sin], [sin, cos]]."""

import math
from typing import Any

import torch
from torch import Tensor

from ..adapting import rotation_by
from ..parts import rotation
from ..witnesses import draw
from .catalogue import CONVENTION, MISREAD, PYTORCH, REPORTS, SPEED, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "rotation", "rotation", rotation_by)


def square(*entries: Tensor) -> Tensor:
    """Four tensors (...) -> (..., 2, 2), row by row."""
    return torch.stack(entries, dim=-1).unflatten(-1, (2, 2))


fault(
    "transposed",
    "Answers the transposed matrix, which turns the other way.",
    "Where does the matrix send the point (1, 0) for a small positive angle?",
    source=CONVENTION,
)(lambda t: rotation(t).mT)

fault(
    "reflection",
    "Has the minus sign on the second diagonal entry: a reflection.",
    "What is the determinant?",
)(lambda t: square(t.cos(), t.sin(), t.sin(), -t.cos()))

fault(
    "both-sines-positive",
    "Leaves the minus sign out.",
    "What is the determinant?",
)(lambda t: square(t.cos(), t.sin(), t.sin(), t.cos()))

fault(
    "sine-and-cosine-swapped",
    "Exchanges sines and cosines.",
    "Which matrix belongs to the angle 0?",
)(lambda t: square(t.sin(), -t.cos(), t.cos(), t.sin()))

fault("identity", "Answers the identity for every angle.", "Is the angle used?")(
    lambda t: rotation(t * 0)
)

fault("degrees", "Takes the angle in degrees.", "Which unit does the cosine take?")(
    lambda t: rotation(torch.deg2rad(t))
)

fault(
    "half-angle",
    "Turns by half the angle, as a quaternion would.",
    "Compare a quarter turn.",
    source=MISREAD,
)(lambda t: rotation(t / 2))

fault(
    "full-turns-as-unit",
    "Takes the angle in full turns.",
    "Which unit does the cosine take?",
)(lambda t: rotation(2 * math.pi * t))

fault(
    "small-angle-series",
    "Uses 1 - t^2/2 and t for cosine and sine.",
    "For which angles is that close?",
    source=SPEED,
)(lambda t: square(1 - t * t / 2, -t, t, 1 - t * t / 2))

fault(
    "angle-clamped",
    "Clamps angles to half a turn either way.",
    "An angle may be larger than a full turn.",
)(lambda t: rotation(t.clamp(-math.pi, math.pi)))

fault(
    "angle-modulo-half-turn",
    "Reduces the angle modulo half a turn.",
    "After which angle does a rotation repeat?",
)(lambda t: rotation(torch.remainder(t, math.pi)))

fault("angle-magnitude", "Drops the angle's sign.", "A negative angle turns the other way.")(
    lambda t: rotation(t.abs())
)

fault(
    "angle-truncated",
    "Truncates the angle to an integer.",
    "Angles are real numbers.",
    source=PYTORCH,
)(lambda t: rotation(t.long().to(t.dtype)))

fault(
    "angles-accumulated",
    "Adds each angle to those before it.",
    "Each angle has a matrix of its own.",
)(lambda t: rotation(t.cumsum(-1)))

fault(
    "sine-from-root",
    "Takes the sine as the root of 1 - cos^2, which is never negative.",
    "Which sign does the sine have below zero?",
)(lambda t: square(t.cos(), -(1 - t.cos() ** 2).sqrt(), (1 - t.cos() ** 2).sqrt(), t.cos()))

fault(
    "sheared",
    "Lacks the factor on one of the diagonal entries.",
    "Do the columns have length 1?",
)(lambda t: square(t.cos(), -t.sin(), t.sin(), torch.ones_like(t)))

fault(
    "rows-stacked-first",
    "Stacks the rows on a new first axis, unseen in shape when there are two angles.",
    "Where do the two axes of the matrix belong?",
    source=PYTORCH,
    at={"angles": (0.3, -1.2)},
)(lambda t: rotation(t).movedim(-2, 0))

fault(
    "matrix-axes-first",
    "Puts the two matrix axes before the axes of the angles.",
    "Where do the two axes of the matrix belong?",
    visible="shape",
)(lambda t: rotation(t).movedim((-2, -1), (0, 1)))

fault(
    "stays-flat",
    "Answers the four entries along one axis.",
    "A matrix has two axes.",
    visible="shape",
)(lambda t: rotation(t).flatten(-2))

fault(
    "homogeneous",
    "Answers a 3 x 3 matrix for homogeneous coordinates.",
    "How many coordinates does a pair of features have?",
    source=CONVENTION,
    visible="shape",
)(lambda t: torch.nn.functional.pad(rotation(t), (0, 1, 0, 1)))

fault(
    "drops-size-one-axes",
    "Squeezes the result, which loses every axis of size 1.",
    "Try a single angle in a vector.",
    visible="shape",
    at={"angles": (0.3,)},
)(lambda t: rotation(t).squeeze())

fault(
    "single-angle-only",
    "Takes the angle as one number.",
    "Angles come in any shape.",
    visible="crash",
)(lambda t: torch.tensor([[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]]))

fault(
    "vector-only",
    "Loops over a vector of angles.",
    "Angles come in any shape, also as a single number.",
    level="SHOULD",
    visible="crash",
    at={"angles": 0.3},
)(lambda t: torch.stack([rotation(one) for one in t]))

fault(
    "contiguous-only",
    "Uses view on the angles, which refuses transposed ones.",
    "Not every tensor lies in memory in the order of its axes.",
    source=PYTORCH,
    visible="strides",
)(lambda t: rotation(t.view(-1)).view(*t.shape, 2, 2))

fault(
    "low-precision-tables",
    "Rounds cosine and sine to bfloat16 on the way.",
    "Half precision is for input that came in half precision.",
    source=REPORTS,
)(lambda t: rotation(t).bfloat16().to(t.dtype))

fault(
    "float32-result",
    "Answers in float32 for float64 angles.",
    "What leaves has the dtype that came in.",
    level="SHOULD",
    visible="dtype",
    at={"dtype": torch.float64},
)(lambda t: rotation(t).float())

fault(
    "complex-result",
    "Answers complex numbers whose imaginary parts are zero.",
    "A rotation of the plane has real entries.",
    visible="dtype",
)(lambda t: rotation(t).to(torch.complex64))

fault(
    "angles-overwritten",
    "Reduces the angles modulo a full turn in place.",
    "A name ending in an underscore changes the caller's tensor.",
    source=PYTORCH,
    visible="purity",
)(lambda t: rotation(t.remainder_(2 * math.pi)))

fault(
    "detached",
    "Copies the numbers out of the graph.",
    "Ask for the gradient with respect to the angle.",
    source=PYTORCH,
    visible="gradient",
)(lambda t: rotation(torch.tensor(t.tolist(), dtype=t.dtype)))

fault(
    "sine-detached",
    "Detaches the sines.",
    "All four entries depend on the angle.",
    visible="gradient",
)(lambda t: square(t.cos(), -t.sin().detach(), t.sin().detach(), t.cos()))


def reused_buffer() -> Any:
    """The matrices in one buffer per shape."""
    buffers: dict[torch.Size, Tensor] = {}

    def f(t: Tensor) -> Tensor:
        result = rotation(t)
        buffer = buffers.setdefault(t.shape, torch.empty_like(result, requires_grad=False))
        return buffer.detach().copy_(result)

    return f


fault(
    "output-buffer-reused",
    "Writes every result of one shape into the same buffer.",
    "Keep an earlier result, call again, and look at the earlier one.",
    source=SPEED,
    visible="purity",
    at=[{}, {"angles": draw(2, 3)}],
)(reused_buffer())
