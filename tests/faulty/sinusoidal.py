"""Faults of the sinusoidal encoding, sine at even and cosine at odd features, base 10000."""

import math
from typing import Any

import torch
from torch import Tensor

from ..adapting import sinusoidal_by
from ..parts import angles, frequencies, sinusoidal
from .catalogue import CONVENTION, MISREAD, PYTORCH, REPORTS, SPEED, SUBMISSIONS, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "sinusoidal", "sinusoidal", sinusoidal_by)
BASE = 10000.0
FAR = {"positions": (3, 255, 1023, 3001), "limit": 4096}


def encoded(angle: Tensor) -> Tensor:
    """(..., d/2) -> (..., d): sine and cosine of each angle, interleaved."""
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2).float()


def over(positions: Tensor, exponents: Any) -> Tensor:
    """Position times 10000^-exponent."""
    return positions[..., None] * BASE ** (-torch.as_tensor(exponents, dtype=torch.float64))


fault(
    "halves-concatenated",
    "Puts all sines first and all cosines after them.",
    "Which features does the paper give to the sine: the first half, or every other one?",
    source=CONVENTION,
)(lambda d, p, limit: torch.cat((angles(p, d, BASE).sin(), angles(p, d, BASE).cos()), -1).float())

fault(
    "sine-and-cosine-swapped",
    "Puts cosines at even and sines at odd features.",
    "What does position 0 look like?",
)(lambda d, p, limit: encoded(math.pi / 2 - angles(p, d, BASE)))

fault(
    "sine-only",
    "Uses the sine at odd features too.",
    "What does position 0 look like?",
)(lambda d, p, limit: angles(p, d, BASE).sin().repeat_interleave(2, -1).float())

fault(
    "cosine-negated",
    "Negates the cosines.",
    "What does position 0 look like?",
)(lambda d, p, limit: sinusoidal(d, p) * torch.tensor([1.0, -1.0]).repeat(d // 2))

fault(
    "exponent-half",
    "Uses i / d for the pair i instead of 2i / d.",
    "How does the slowest frequency compare with 1 / 10000?",
    source=MISREAD,
)(lambda d, p, limit: encoded(over(p, torch.arange(d // 2) / d)))

fault(
    "exponent-double",
    "Uses 4i / d for the pair i instead of 2i / d.",
    "How does the slowest frequency compare with 1 / 10000?",
    source=MISREAD,
)(lambda d, p, limit: encoded(over(p, torch.arange(d // 2) * 4 / d)))

fault(
    "exponent-per-feature",
    "Gives every feature its own frequency, so that sine and cosine of a pair differ.",
    "The two features of a pair are the coordinates of one point on a circle.",
    source=SUBMISSIONS,
)(
    lambda d, p, limit: torch.where(
        torch.arange(d) % 2 == 0,
        over(p, torch.arange(d) / d).sin(),
        over(p, torch.arange(d) / d).cos(),
    ).float()
)

fault(
    "exponent-reaches-one",
    "Divides by d/2 - 1, so that the last frequency is exactly 1 / 10000.",
    "What is the exponent of the last pair in the paper?",
    source=CONVENTION,
)(lambda d, p, limit: encoded(over(p, torch.arange(d // 2) / max(d // 2 - 1, 1))))

fault(
    "exponent-from-one",
    "Counts the pairs from 1.",
    "How fast does the first pair turn?",
    source=MISREAD,
)(lambda d, p, limit: encoded(over(p, torch.arange(1, d // 2 + 1) * 2 / d)))

fault(
    "exponent-sign",
    "Multiplies by the power of 10000 instead of dividing.",
    "Which pair turns fastest?",
)(lambda d, p, limit: encoded(over(p, torch.arange(0, d, 2) / -d)))

fault(
    "frequencies-reversed",
    "Gives the slowest frequency to the first pair.",
    "Which pair turns fastest?",
)(lambda d, p, limit: encoded(angles(p, d, BASE).flip(-1)))

fault(
    "base-1000",
    "Uses the base 1000.",
    "The paper names a number.",
)(lambda d, p, limit: encoded(angles(p, d, 1000.0)))

fault(
    "base-is-limit",
    "Uses the longest sequence as the base.",
    "The base is a constant of the definition.",
    source=MISREAD,
)(lambda d, p, limit: encoded(angles(p, d, limit)))

fault(
    "logarithm-to-ten",
    "Takes exp of a logarithm to the base ten.",
    "exp and log must have one base.",
)(
    lambda d, p, limit: encoded(
        p[..., None] * torch.exp(-math.log10(BASE) * torch.arange(0, d, 2) / d)
    )
)

fault(
    "integer-division",
    "Divides the position by the power as integers.",
    "What is left of 3 / 100?",
    source=PYTORCH,
)(lambda d, p, limit: encoded((p[..., None] // (1 / frequencies(d, BASE))).double()))

fault(
    "positions-from-one",
    "Counts positions from 1.",
    "Which position has all sines 0 and all cosines 1?",
    source=SUBMISSIONS,
)(lambda d, p, limit: sinusoidal(d, p + 1))

fault(
    "positions-ignored",
    "Encodes 0, 1, 2, ... whatever positions are given.",
    "Is the argument used for anything but its length?",
    source=SUBMISSIONS,
)(lambda d, p, limit: sinusoidal(d, torch.arange(p.shape[-1]).expand_as(p)))

fault(
    "positions-relative",
    "Subtracts the first position.",
    "The encoding is of absolute positions.",
)(lambda d, p, limit: sinusoidal(d, p - p[..., :1]))

fault(
    "positions-sorted",
    "Encodes the positions in ascending order.",
    "Which row belongs to which token?",
)(lambda d, p, limit: sinusoidal(d, p.sort(-1).values))

fault(
    "positions-as-bytes",
    "Stores positions in 8 bits, which wrap at 256.",
    "How long can a sequence get?",
    at=FAR,
)(lambda d, p, limit: sinusoidal(d, p.to(torch.uint8).long()))

fault(
    "positions-of-first-row",
    "Uses the first row's positions for the whole batch.",
    "Give each sequence other positions.",
    source=SUBMISSIONS,
    at={"positions": ((3, 0, 17), (5, 40, 1))},
)(lambda d, p, limit: sinusoidal(d, p[:1].expand_as(p)))

fault(
    "positions-normalised",
    "Divides the position by the longest sequence.",
    "How much does the fastest pair turn from one token to the next?",
    source=MISREAD,
)(lambda d, p, limit: encoded(angles(p, d, BASE) / limit))

fault(
    "last-position-clamped",
    "Clamps positions to one below the last.",
    "The last position is max_seq_len - 1: is it inside your bounds?",
)(lambda d, p, limit: sinusoidal(d, p.clamp(max=limit - 2)))

fault(
    "table-one-short",
    "Builds a table that lacks the last position.",
    "How many positions are there if the first is 0?",
    source=REPORTS,
    visible="crash",
)(lambda d, p, limit: sinusoidal(d, torch.arange(limit - 1))[p])

fault(
    "degrees",
    "Converts the angles from degrees.",
    "Which unit does the sine take?",
)(lambda d, p, limit: encoded(torch.deg2rad(angles(p, d, BASE))))

fault(
    "angles-in-bfloat16",
    "Computes the angles in bfloat16, in which positions above 256 are no longer exact.",
    "Which integers exist in a format with eight bits of precision?",
    source=REPORTS,
    at=FAR,
)(lambda d, p, limit: encoded((p[..., None].bfloat16() * frequencies(d, BASE).bfloat16()).float()))

fault(
    "scaled-by-root-width",
    "Multiplies the encoding by the root of d_model.",
    "That factor belongs to another architecture's embedding.",
    source=MISREAD,
)(lambda d, p, limit: sinusoidal(d, p) * d**0.5)

fault(
    "float64-result",
    "Answers in float64.",
    "Which dtype do the tensors have that this is added to?",
    level="SHOULD",
    source=PYTORCH,
    visible="dtype",
)(lambda d, p, limit: sinusoidal(d, p).double())

fault(
    "vector-only",
    "Takes positions only as a vector.",
    "Positions may differ from one sequence of a batch to another.",
    source=SUBMISSIONS,
    visible="crash",
    at={"positions": ((1, 2), (3, 4))},
)(lambda d, p, limit: encoded(torch.outer(p.double(), frequencies(d, BASE))))

fault(
    "stays-flat",
    "Flattens the positions and does not restore their axes.",
    "The answer has the positions' shape and one more axis.",
    visible="shape",
    at={"positions": ((1, 2), (3, 4))},
)(lambda d, p, limit: sinusoidal(d, p.reshape(-1)))

fault(
    "drops-size-one-axes",
    "Squeezes the result, which loses every axis of size 1.",
    "Try a batch of one.",
    visible="shape",
    at={"positions": ((1, 2),)},
)(lambda d, p, limit: sinusoidal(d, p).squeeze())

fault(
    "whole-table",
    "Answers the table of all positions.",
    "How many positions were asked for?",
    visible="shape",
)(lambda d, p, limit: sinusoidal(d, torch.arange(limit)))


def first_table() -> Any:
    """Looks up in the table that the first call has built."""
    tables: dict[str, Tensor] = {}
    return lambda d, p, limit: tables.setdefault("", sinusoidal(d, torch.arange(limit)))[p]


fault(
    "first-table-kept",
    "Builds one table at the first call and uses it for every later width and length.",
    "What does a second call with another width get?",
    source=SUBMISSIONS,
    visible="state",
    at=[{"limit": 50}, {"positions": (70,), "limit": 80}],
)(first_table())


def table_by_limit() -> Any:
    """Looks up in a table that is remembered by its length alone."""
    tables: dict[int, Tensor] = {}
    return lambda d, p, limit: tables.setdefault(limit, sinusoidal(d, torch.arange(limit)))[p]


fault(
    "table-kept-by-length",
    "Keeps tables by length alone, so another width gets a wrong one.",
    "On which arguments does the table depend?",
    source=SUBMISSIONS,
    visible="state",
    at=[{"d": 8}, {"d": 6}],
)(table_by_limit())


def table_view() -> Any:
    """Answers a piece of the remembered table without a copy where it can."""
    tables: dict[tuple[int, int], Tensor] = {}

    def f(d: int, p: Tensor, limit: int) -> Tensor:
        table = tables.setdefault((d, limit), sinusoidal(d, torch.arange(limit)))
        first = int(p.reshape(-1)[0])
        in_order = p.ndim == 1 and torch.equal(p, torch.arange(first, first + len(p)))
        return table[first : first + len(p)] if in_order else table[p]

    return f


fault(
    "view-of-table",
    "Answers a view of its table for positions in order.",
    "What does the next call see when the caller changes the answer in place?",
    source=SPEED,
    visible="purity",
    at=[{"positions": (4, 5, 6)}, {"positions": (4, 5, 6)}],
)(table_view())
