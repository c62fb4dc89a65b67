"""Faults of RoPE: which positions, which axes, tables, memory, gradient, state."""

from typing import Any

import torch
from torch import Tensor

from ..adapting import rope_by
from ..parts import angles, frequencies, rope, turn
from ..witnesses import draw
from .catalogue import PYTORCH, REPORTS, SPEED, SUBMISSIONS, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "rope", "rope", rope_by)
PER_ROW = {"positions": (((3, 0, 7),), ((5, 19, 1),))}
HEADS = {"lead": (2, 3)}

fault(
    "positions-ignored",
    "Uses 0, 1, 2, ... whatever positions are given.",
    "Is the argument used for anything but its length?",
    source=SUBMISSIONS,
)(lambda x, p, theta, limit: rope(x, torch.arange(x.shape[-2]), theta))

fault(
    "positions-from-one",
    "Counts positions from 1.",
    "What must happen at position 0?",
    source=SUBMISSIONS,
)(lambda x, p, theta, limit: rope(x, p + 1, theta))

fault(
    "positions-relative",
    "Subtracts the first position.",
    "The vector itself is turned by its absolute position.",
)(lambda x, p, theta, limit: rope(x, p - p[..., :1], theta))

fault(
    "positions-sorted",
    "Uses the positions in ascending order.",
    "Which position belongs to which token?",
)(lambda x, p, theta, limit: rope(x, p.sort(-1).values, theta))

fault(
    "positions-clipped-to-length",
    "Clips positions to the length of this sequence.",
    "A short piece may come from far behind in a text.",
    source=SUBMISSIONS,
)(lambda x, p, theta, limit: rope(x, p.clamp(max=x.shape[-2] - 1), theta))

fault(
    "last-position-clamped",
    "Clamps positions to one below the last.",
    "The last position is max_seq_len - 1: is it inside your bounds?",
)(lambda x, p, theta, limit: rope(x, p.clamp(max=limit - 2), theta))

fault(
    "positions-as-bytes",
    "Stores positions in 8 bits, which wrap at 256.",
    "How long can a sequence get?",
    at={"positions": (3, 255, 256, 300), "limit": 301},
)(lambda x, p, theta, limit: rope(x, p.to(torch.uint8).long(), theta))

fault(
    "positions-normalised",
    "Divides positions by the longest sequence.",
    "By which angle does the first pair turn from one position to the next?",
)(lambda x, p, theta, limit: turn(x, angles(p, x.shape[-1], theta) / limit))

fault(
    "positions-of-first-row",
    "Uses the first row's positions for the whole batch.",
    "Give each sequence other positions.",
    source=SUBMISSIONS,
    at=PER_ROW,
)(lambda x, p, theta, limit: rope(x, p.reshape(-1, p.shape[-1])[0], theta))

fault(
    "first-row-only-rotated",
    "Rotates the first element of the batch only.",
    "Compare the second row of a batch with the same row alone.",
)(lambda x, p, theta, limit: torch.cat((rope(x, p, theta)[:1], x[1:])))

fault(
    "rotates-by-head",
    "Turns by the number of the head instead of the position.",
    "Which axis is the sequence?",
    source=SUBMISSIONS,
)(lambda x, p, theta, limit: rope(x, torch.arange(x.shape[-3])[:, None], theta))

fault(
    "heads-after-sequence",
    "Expects the heads after the sequence axis, which runs when both have one size.",
    "In which order do the axes come in?",
    source=PYTORCH,
    at={"lead": (2, 5)},
)(lambda x, p, theta, limit: rope(x.transpose(-2, -3), p, theta).transpose(-2, -3))

fault(
    "positions-along-batch",
    "Lays the positions along the axis before the sequence, which runs when sizes agree.",
    "Which axis of the angles must meet the sequence?",
    source=SUBMISSIONS,
    at={"lead": (2, 5)},
)(lambda x, p, theta, limit: rope(x, p[..., None], theta))

fault(
    "vector-positions-only",
    "Takes positions only as a vector.",
    "Positions may differ from one sequence of a batch to another.",
    source=SUBMISSIONS,
    visible="crash",
    at=PER_ROW,
)(lambda x, p, theta, limit: turn(x, torch.outer(p.double(), frequencies(x.shape[-1], theta))))

fault(
    "head-axis-always-added",
    "Adds a head axis to positions that come with a batch axis, also where x has no heads.",
    "Count the axes of the input before you add one.",
    source=SUBMISSIONS,
    visible="shape",
    at={"lead": (2,), "positions": ((3, 0, 7), (5, 19, 1))},
)(lambda x, p, theta, limit: rope(x, p[:, None] if p.ndim == 2 else p, theta))

fault(
    "head-axis-on-full-positions",
    "Adds a head axis to positions that already have one.",
    "Count the axes of the positions before you add one.",
    source=SUBMISSIONS,
    visible="shape",
    at=PER_ROW,
)(lambda x, p, theta, limit: rope(x, p if p.ndim == 1 else p.unsqueeze(1), theta))

fault(
    "four-axes-only",
    "Unpacks batch, heads, sequence, features.",
    "How many leading axes an input has is not for this layer to know.",
    source=SUBMISSIONS,
    visible="crash",
    at={"lead": (2,)},
)(lambda x, p, theta, limit: rope(torch.einsum("bhsd->bhsd", x), p, theta))

fault(
    "three-axes-only",
    "Unpacks batch, sequence, features.",
    "How many leading axes an input has is not for this layer to know.",
    source=SUBMISSIONS,
    visible="crash",
)(lambda x, p, theta, limit: rope(torch.einsum("bsd->bsd", x), p, theta))

fault(
    "table-one-short",
    "Builds a table that lacks the last position.",
    "How many positions are there if the first is 0?",
    source=REPORTS,
    visible="crash",
)(lambda x, p, theta, limit: turn(x, angles(torch.arange(limit - 1), x.shape[-1], theta)[p]))

fault(
    "table-of-sequence-length",
    "Builds a table for the length of this sequence and looks positions up in it.",
    "A short piece may come from far behind in a text.",
    source=SUBMISSIONS,
    visible="crash",
)(lambda x, p, theta, limit: turn(x, angles(torch.arange(x.shape[-2]), x.shape[-1], theta)[p]))

fault(
    "whole-table",
    "Uses the table of all positions, which fits full-length sequences only.",
    "Which rows of the table belong to this sequence?",
    source=REPORTS,
    visible="crash",
)(lambda x, p, theta, limit: rope(x, torch.arange(limit), theta))

fault(
    "single-token-not-rotated",
    "Leaves a sequence of one token as it is.",
    "A single token may stand anywhere.",
    source=SPEED,
    at={"positions": (7,)},
)(lambda x, p, theta, limit: x.clone() if x.shape[-2] == 1 else rope(x, p, theta))

fault(
    "pairs-not-joined",
    "Answers pairs along an axis of their own.",
    "The output has the input's shape.",
    visible="shape",
)(lambda x, p, theta, limit: rope(x, p, theta).unflatten(-1, (-1, 2)))

fault(
    "drops-size-one-axes",
    "Squeezes the result, which loses every axis of size 1.",
    "Try a batch of one and a single token.",
    visible="shape",
    at={"lead": (1, 3)},
)(lambda x, p, theta, limit: rope(x, p, theta).squeeze())

fault(
    "contiguous-only",
    "Views the features as pairs through memory, which refuses a transposed input.",
    "Not every tensor lies in memory in the order of its axes.",
    source=PYTORCH,
    visible="strides",
)(lambda x, p, theta, limit: rope(x.view(-1).view(x.shape), p, theta))

fault(
    "float32-result",
    "Answers in float32 for input of lower precision.",
    "Float32 tables make a float32 product; what leaves has the dtype that came in.",
    source=REPORTS,
    level="SHOULD",
    visible="dtype",
    at={"dtype": torch.bfloat16},
)(lambda x, p, theta, limit: rope(x.float(), p, theta))


@fault(
    "input-overwritten",
    "Writes the rotated features into the input.",
    "Assigning to a slice changes the caller's tensor.",
    source=SUBMISSIONS,
    visible="purity",
)
def input_overwritten(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    rotated = rope(x, p, theta)
    x[..., 0::2] = rotated[..., 0::2]
    x[..., 1::2] = rotated[..., 1::2]
    return x


@fault(
    "no-grad",
    "Rotates under torch.no_grad.",
    "The tables need no gradient; the vector does.",
    source=PYTORCH,
    visible="gradient",
)
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


fault(
    "backward-turns-forward",
    "The hand-written backward pass turns gradients by the angle instead of back.",
    "The derivative of a rotation is its transpose.",
    visible="gradient",
)(NotTurnedBack.apply)


@fault(
    "assigned-through-data",
    "Writes the rotated numbers into a copy's data, so the derivative is that of no rotation.",
    "Autograd sees nothing that is done to .data.",
    source=PYTORCH,
    visible="gradient",
)
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


fault(
    "first-table-kept",
    "Builds one table at the first call, on the class, and uses it for every later one.",
    "What do two models of different sizes in one process get?",
    source=SUBMISSIONS,
    visible="state",
    at=[{"theta": 500.0}, {"theta": 30.0}],
)(remembered(lambda d, theta, limit, p: ""))

fault(
    "table-kept-by-length",
    "Keeps tables by their length alone.",
    "On which arguments does the table depend?",
    source=SUBMISSIONS,
    visible="state",
    at=[{"d_k": 8}, {"d_k": 6}],
)(remembered(lambda d, theta, limit, p: limit))

fault(
    "table-kept-without-theta",
    "Keeps tables by width and length, not by theta.",
    "On which arguments does the table depend?",
    source=SUBMISSIONS,
    visible="state",
    at=[{"theta": 500.0}, {"theta": 30.0}],
)(remembered(lambda d, theta, limit, p: (d, limit)))

fault(
    "table-kept-without-length",
    "Keeps tables by width and theta, and never makes a longer one.",
    "What does a later, longer sequence get?",
    source=REPORTS,
    visible="state",
    at=[{"limit": 20}, {"limit": 40, "positions": (3, 30)}],
)(remembered(lambda d, theta, limit, p: (d, theta)))


def angles_by_shape() -> Any:
    """RoPE that computes angles again only when the positions' shape changes."""
    kept: dict[Any, Tensor] = {}

    def f(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
        key = (p.shape, x.shape[-1], theta)
        return turn(x, kept.setdefault(key, angles(p, x.shape[-1], theta)))

    return f


fault(
    "angles-kept-by-shape",
    "Computes angles again only when the shape of the positions changes.",
    "Two calls with positions of one shape: which values does the second use?",
    source=SPEED,
    visible="state",
    at=[{"positions": (3, 0, 7)}, {"positions": (4, 19, 1)}],
)(angles_by_shape())


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


fault(
    "table-grows-from-zero",
    "Extends a table that has become too short with rows that count from 0 again.",
    "Which position does the first new row stand for?",
    source=SPEED,
    visible="state",
    at=[{"limit": 20}, {"limit": 40, "positions": (3, 30)}],
)(badly_growing())


def reused_buffer() -> Any:
    """RoPE into one buffer per shape."""
    buffers: dict[torch.Size, Tensor] = {}

    def f(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
        buffer = buffers.setdefault(x.shape, torch.empty_like(x, requires_grad=False))
        return buffer.detach().copy_(rope(x, p, theta))

    return f


fault(
    "output-buffer-reused",
    "Writes every result of one shape into the same buffer, so keys overwrite queries.",
    "Rotate two tensors of one shape, then look at the first result again.",
    source=SPEED,
    visible="purity",
    at=[{}, {"in_query_or_key": draw(2, 3, 5, 8, seed=9)}],
)(reused_buffer())
