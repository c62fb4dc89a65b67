"""Faults of the rotation matrix [[cos, -sin], [sin, cos]]."""

import math
from typing import Any

import torch
from torch import Tensor

from ..adapting import rotation_by
from ..parts import rotation
from ..witnesses import draw
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "rotation", "rotation", rotation_by)


def square(*entries: Tensor) -> Tensor:
    """Four tensors (...) -> (..., 2, 2), row by row."""
    return torch.stack(entries, dim=-1).unflatten(-1, (2, 2))


fault("transposed")(lambda t: rotation(t).mT)

fault("reflection")(lambda t: square(t.cos(), t.sin(), t.sin(), -t.cos()))

fault("both-sines-positive")(lambda t: square(t.cos(), t.sin(), t.sin(), t.cos()))

fault("sine-and-cosine-swapped")(lambda t: square(t.sin(), -t.cos(), t.cos(), t.sin()))

fault("identity")(lambda t: rotation(t * 0))

fault("degrees")(lambda t: rotation(torch.deg2rad(t)))

fault("half-angle")(lambda t: rotation(t / 2))

fault("full-turns-as-unit")(lambda t: rotation(2 * math.pi * t))

fault("small-angle-series")(lambda t: square(1 - t * t / 2, -t, t, 1 - t * t / 2))

fault("angle-clamped")(lambda t: rotation(t.clamp(-math.pi, math.pi)))

fault("angle-modulo-half-turn")(lambda t: rotation(torch.remainder(t, math.pi)))

fault("angle-magnitude")(lambda t: rotation(t.abs()))

fault("angle-truncated")(lambda t: rotation(t.long().to(t.dtype)))

fault("angles-accumulated")(lambda t: rotation(t.cumsum(-1)))

fault("sine-from-root")(
    lambda t: square(t.cos(), -(1 - t.cos() ** 2).sqrt(), (1 - t.cos() ** 2).sqrt(), t.cos())
)

fault("sheared")(lambda t: square(t.cos(), -t.sin(), t.sin(), torch.ones_like(t)))

fault("rows-stacked-first", at={"angles": (0.3, -1.2)})(lambda t: rotation(t).movedim(-2, 0))

fault("matrix-axes-first")(lambda t: rotation(t).movedim((-2, -1), (0, 1)))

fault("stays-flat")(lambda t: rotation(t).flatten(-2))


@fault("homogeneous")
def homogeneous(t: Tensor) -> Tensor:
    kept = torch.nn.functional.pad(rotation(t), (0, 1, 0, 1))
    kept[..., 2, 2] = 1.0
    return kept


fault("drops-size-one-axes", at={"angles": (0.3,)})(lambda t: rotation(t).squeeze())

fault("single-angle-only")(
    lambda t: torch.tensor([[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]])
)

fault("vector-only", at={"angles": 0.3})(lambda t: torch.stack([rotation(one) for one in t]))

fault("contiguous-only")(lambda t: rotation(t.view(-1)).view(*t.shape, 2, 2))

fault("low-precision-tables")(lambda t: rotation(t).bfloat16().to(t.dtype))

fault("float32-result", at={"dtype": torch.float64})(lambda t: rotation(t).float())

fault("complex-result")(lambda t: rotation(t).to(torch.complex64))

fault("angles-overwritten")(lambda t: rotation(t.remainder_(2 * math.pi)))

fault("detached")(lambda t: rotation(torch.tensor(t.tolist(), dtype=t.dtype)))

fault("sine-detached")(lambda t: square(t.cos(), -t.sin().detach(), t.sin().detach(), t.cos()))


def reused_buffer() -> Any:
    """The matrices in one buffer per shape."""
    buffers: dict[torch.Size, Tensor] = {}

    def f(t: Tensor) -> Tensor:
        result = rotation(t)
        buffer = buffers.setdefault(t.shape, torch.empty_like(result, requires_grad=False))
        return buffer.detach().copy_(result)

    return f


fault("output-buffer-reused", at=[{}, {"angles": draw(2, 3)}])(reused_buffer())
