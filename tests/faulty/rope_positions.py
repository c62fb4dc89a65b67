"""Faults of RoPE: which positions, which axes, tables, memory, gradient, state."""

from typing import Any

import torch
from torch import Tensor

from ..adapting import rope_by
from ..parts import angles, frequencies, rope, turn
from ..witnesses import draw
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "rope", "rope", rope_by)
PER_ROW = {"positions": (((3, 0, 7),), ((5, 19, 1),))}
HEADS = {"lead": (2, 3)}

fault("positions-ignored")(lambda x, p, theta, limit: rope(x, torch.arange(x.shape[-2]), theta))

fault("positions-from-one")(lambda x, p, theta, limit: rope(x, p + 1, theta))

fault("positions-relative")(lambda x, p, theta, limit: rope(x, p - p[..., :1], theta))

fault("positions-sorted")(lambda x, p, theta, limit: rope(x, p.sort(-1).values, theta))

fault("positions-clipped-to-length")(
    lambda x, p, theta, limit: rope(x, p.clamp(max=x.shape[-2] - 1), theta)
)

fault("last-position-clamped")(lambda x, p, theta, limit: rope(x, p.clamp(max=limit - 2), theta))

fault("positions-as-bytes", at={"positions": (3, 255, 256, 300), "limit": 301})(
    lambda x, p, theta, limit: rope(x, p.to(torch.uint8).long(), theta)
)

fault("positions-normalised")(
    lambda x, p, theta, limit: turn(x, angles(p, x.shape[-1], theta) / limit)
)

fault("positions-of-first-row", at=PER_ROW)(
    lambda x, p, theta, limit: rope(x, p.reshape(-1, p.shape[-1])[0], theta)
)

fault("first-row-only-rotated")(
    lambda x, p, theta, limit: torch.cat((rope(x, p, theta)[:1], x[1:]))
)

fault("rotates-by-head")(
    lambda x, p, theta, limit: rope(x, torch.arange(x.shape[-3])[:, None], theta)
)

fault("heads-after-sequence", at={"lead": (2, 5)})(
    lambda x, p, theta, limit: rope(x.transpose(-2, -3), p, theta).transpose(-2, -3)
)

fault("positions-along-batch", at={"lead": (2, 5)})(
    lambda x, p, theta, limit: rope(x, p[..., None], theta)
)

fault("vector-positions-only", at=PER_ROW)(
    lambda x, p, theta, limit: turn(x, torch.outer(p.double(), frequencies(x.shape[-1], theta)))
)

fault("head-axis-always-added", at={"lead": (2,), "positions": ((3, 0, 7), (5, 19, 1))})(
    lambda x, p, theta, limit: rope(x, p[:, None] if p.ndim == 2 else p, theta)
)

fault("head-axis-on-full-positions", at=PER_ROW)(
    lambda x, p, theta, limit: rope(x, p if p.ndim == 1 else p.unsqueeze(1), theta)
)

fault("four-axes-only", at={"lead": (2,)})(
    lambda x, p, theta, limit: rope(torch.einsum("bhsd->bhsd", x), p, theta)
)

fault("three-axes-only")(lambda x, p, theta, limit: rope(torch.einsum("bsd->bsd", x), p, theta))

fault("table-one-short")(
    lambda x, p, theta, limit: turn(x, angles(torch.arange(limit - 1), x.shape[-1], theta)[p])
)

fault("table-of-sequence-length")(
    lambda x, p, theta, limit: turn(x, angles(torch.arange(x.shape[-2]), x.shape[-1], theta)[p])
)

fault("whole-table")(lambda x, p, theta, limit: rope(x, torch.arange(limit), theta))

fault("single-token-not-rotated", at={"positions": (7,)})(
    lambda x, p, theta, limit: x.clone() if x.shape[-2] == 1 else rope(x, p, theta)
)

fault("pairs-not-joined")(lambda x, p, theta, limit: rope(x, p, theta).unflatten(-1, (-1, 2)))

fault("drops-size-one-axes", at={"lead": (1, 3)})(
    lambda x, p, theta, limit: rope(x, p, theta).squeeze()
)

fault("contiguous-only")(lambda x, p, theta, limit: rope(x.view(-1).view(x.shape), p, theta))

fault("float32-result", at={"dtype": torch.bfloat16})(
    lambda x, p, theta, limit: rope(x.float(), p, theta)
)


@fault("input-overwritten")
def input_overwritten(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    rotated = rope(x, p, theta)
    x[..., 0::2] = rotated[..., 0::2]
    x[..., 1::2] = rotated[..., 1::2]
    return x


@fault("no-grad")
def no_grad(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    with torch.no_grad():
        return rope(x, p, theta)


class NotTurnedBack(torch.autograd.Function):
    """The right value with a backward pass that turns the same way as the forward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
        ctx.save_for_backward(p)
        ctx.theta = theta
        return rope(x, p, theta)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        (p,) = ctx.saved_tensors
        return rope(dy, p, ctx.theta), None, None, None


fault("backward-turns-forward")(NotTurnedBack.apply)


@fault("assigned-through-data")
def assigned_through_data(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    result = x.clone()
    result.data.copy_(rope(x.detach(), p, theta))
    return result


def remembered(key: Any) -> Any:
    """RoPE with a table of angles remembered by key(d, theta, limit, positions)."""
    tables: dict[Any, Tensor] = {}

    def f(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
        d = x.shape[-1]
        table = angles(torch.arange(limit), d, theta)
        return turn(x, tables.setdefault(key(d, theta, limit, p), table)[p])

    return f


fault("first-table-kept", at=[{"theta": 500.0}, {"theta": 30.0}])(
    remembered(lambda d, theta, limit, p: "")
)

fault("table-kept-by-length", at=[{"d_k": 8}, {"d_k": 6}])(
    remembered(lambda d, theta, limit, p: limit)
)

fault("table-kept-without-theta", at=[{"theta": 500.0}, {"theta": 30.0}])(
    remembered(lambda d, theta, limit, p: (d, limit))
)

fault("table-kept-without-length", at=[{"limit": 20}, {"limit": 40, "positions": (3, 30)}])(
    remembered(lambda d, theta, limit, p: (d, theta))
)


def angles_by_shape() -> Any:
    """RoPE that computes angles again only when the positions' shape changes."""
    kept: dict[Any, Tensor] = {}

    def f(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
        key = (p.shape, x.shape[-1], theta)
        return turn(x, kept.setdefault(key, angles(p, x.shape[-1], theta)))

    return f


fault("angles-kept-by-shape", at=[{"positions": (3, 0, 7)}, {"positions": (4, 19, 1)}])(
    angles_by_shape()
)


def badly_growing() -> Any:
    """RoPE whose table grows by pieces that start at position 0 again."""
    tables: dict[tuple[int, float], Tensor] = {}

    def f(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
        key = (x.shape[-1], theta)
        table = tables.get(key, torch.empty(0, x.shape[-1] // 2, dtype=torch.float64))
        more = angles(torch.arange(max(limit - len(table), 0)), *key)
        tables[key] = torch.cat((table, more))
        return turn(x, tables[key][p])

    return f


fault("table-grows-from-zero", at=[{"limit": 20}, {"limit": 40, "positions": (3, 30)}])(
    badly_growing()
)


def reused_buffer() -> Any:
    """RoPE into one buffer per shape."""
    buffers: dict[torch.Size, Tensor] = {}

    def f(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
        buffer = buffers.setdefault(x.shape, torch.empty_like(x, requires_grad=False))
        return buffer.detach().copy_(rope(x, p, theta))

    return f


fault("output-buffer-reused", at=[{}, {"in_query_or_key": draw(2, 3, 5, 8, seed=9)}])(
    reused_buffer()
)
