"""Faults of the sinusoidal encoding, sine at even and cosine at odd features, base 10000."""

import math
from typing import Any

import torch
from torch import Tensor

from ..adapting import sinusoidal_by
from ..parts import angles, frequencies, sinusoidal
from .catalogue import Entry, registrar

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


fault("halves-concatenated")(
    lambda d, p, limit: torch.cat((angles(p, d, BASE).sin(), angles(p, d, BASE).cos()), -1).float()
)

fault("sine-and-cosine-swapped")(lambda d, p, limit: encoded(math.pi / 2 - angles(p, d, BASE)))

fault("sine-only")(lambda d, p, limit: angles(p, d, BASE).sin().repeat_interleave(2, -1).float())

fault("cosine-negated")(
    lambda d, p, limit: sinusoidal(d, p) * torch.tensor([1.0, -1.0]).repeat(d // 2)
)

fault("exponent-half")(lambda d, p, limit: encoded(over(p, torch.arange(d // 2) / d)))

fault("exponent-double")(lambda d, p, limit: encoded(over(p, torch.arange(d // 2) * 4 / d)))

fault("exponent-per-feature")(
    lambda d, p, limit: torch.where(
        torch.arange(d) % 2 == 0,
        over(p, torch.arange(d) / d).sin(),
        over(p, torch.arange(d) / d).cos(),
    ).float()
)

fault("exponent-reaches-one")(
    lambda d, p, limit: encoded(over(p, torch.arange(d // 2) / max(d // 2 - 1, 1)))
)

fault("exponent-from-one")(
    lambda d, p, limit: encoded(over(p, torch.arange(1, d // 2 + 1) * 2 / d))
)

fault("exponent-sign")(lambda d, p, limit: encoded(over(p, torch.arange(0, d, 2) / -d)))

fault("frequencies-reversed")(lambda d, p, limit: encoded(angles(p, d, BASE).flip(-1)))

fault("base-1000")(lambda d, p, limit: encoded(angles(p, d, 1000.0)))

fault("base-is-limit")(lambda d, p, limit: encoded(angles(p, d, limit)))

fault("logarithm-to-ten")(
    lambda d, p, limit: encoded(
        p[..., None] * torch.exp(-math.log10(BASE) * torch.arange(0, d, 2) / d)
    )
)

fault("integer-division")(
    lambda d, p, limit: encoded((p[..., None] // (1 / frequencies(d, BASE))).double())
)

fault("positions-from-one")(lambda d, p, limit: sinusoidal(d, p + 1))

fault("positions-ignored")(
    lambda d, p, limit: sinusoidal(d, torch.arange(p.shape[-1]).expand_as(p))
)

fault("positions-relative")(lambda d, p, limit: sinusoidal(d, p - p[..., :1]))

fault("positions-sorted")(lambda d, p, limit: sinusoidal(d, p.sort(-1).values))

fault("positions-as-bytes", at=FAR)(lambda d, p, limit: sinusoidal(d, p.to(torch.uint8).long()))

fault("positions-of-first-row", at={"positions": ((3, 0, 17), (5, 40, 1))})(
    lambda d, p, limit: sinusoidal(d, p[:1].expand_as(p))
)

fault("positions-normalised")(lambda d, p, limit: encoded(angles(p, d, BASE) / limit))

fault("last-position-clamped")(lambda d, p, limit: sinusoidal(d, p.clamp(max=limit - 2)))

fault("table-one-short")(lambda d, p, limit: sinusoidal(d, torch.arange(limit - 1))[p])

fault("degrees")(lambda d, p, limit: encoded(torch.deg2rad(angles(p, d, BASE))))

fault("angles-in-bfloat16", at=FAR)(
    lambda d, p, limit: encoded((p[..., None].bfloat16() * frequencies(d, BASE).bfloat16()).float())
)

fault("scaled-by-root-width")(lambda d, p, limit: sinusoidal(d, p) * d**0.5)

fault("float64-result")(lambda d, p, limit: sinusoidal(d, p).double())

fault("vector-only", at={"positions": ((1, 2), (3, 4))})(
    lambda d, p, limit: encoded(torch.outer(p.double(), frequencies(d, BASE)))
)

fault("stays-flat", at={"positions": ((1, 2), (3, 4))})(
    lambda d, p, limit: sinusoidal(d, p.reshape(-1))
)

fault("drops-size-one-axes", at={"positions": ((1, 2),)})(
    lambda d, p, limit: sinusoidal(d, p).squeeze()
)

fault("whole-table")(lambda d, p, limit: sinusoidal(d, torch.arange(limit)))


def first_table() -> Any:
    """Looks up in the table that the first call has built."""
    tables: dict[str, Tensor] = {}
    return lambda d, p, limit: tables.setdefault("", sinusoidal(d, torch.arange(limit)))[p]


fault("first-table-kept", at=[{"limit": 50}, {"positions": (70,), "limit": 80}])(first_table())


def table_by_limit() -> Any:
    """Looks up in a table that is remembered by its length alone."""
    tables: dict[int, Tensor] = {}
    return lambda d, p, limit: tables.setdefault(limit, sinusoidal(d, torch.arange(limit)))[p]


fault("table-kept-by-length", at=[{"d": 8}, {"d": 6}])(table_by_limit())


def table_view() -> Any:
    """Answers a piece of the remembered table without a copy where it can."""
    tables: dict[tuple[int, int], Tensor] = {}

    def f(d: int, p: Tensor, limit: int) -> Tensor:
        table = tables.setdefault((d, limit), sinusoidal(d, torch.arange(limit)))
        first = int(p.reshape(-1)[0])
        in_order = p.ndim == 1 and torch.equal(p, torch.arange(first, first + len(p)))
        return table[first : first + len(p)] if in_order else table[p]

    return f


fault("view-of-table", at=[{"positions": (4, 5, 6)}, {"positions": (4, 5, 6)}])(table_view())


@fault("positions-overwritten")
def positions_overwritten(d: int, p: Tensor, limit: int) -> Tensor:
    answer = sinusoidal(d, p.clone())
    p.add_(1)
    return answer
