"""Faults of RoPE: which features are paired, how fast they turn, which way."""

import torch
from torch import Tensor

from ..adapting import rope_by
from ..parts import angles, frequencies, rope, turn, wide
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "rope", "rope", rope_by)
FAR = {"positions": (3, 255, 1023, 3001), "limit": 4096}


def paired(x: Tensor, positions: Tensor, theta: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Even features, odd features, cosines, sines."""
    y, angle = wide(x), angles(positions, x.shape[-1], theta)
    return y[..., 0::2], y[..., 1::2], angle.cos().to(y.dtype), angle.sin().to(y.dtype)


def joined(even: Tensor, odd: Tensor, x: Tensor) -> Tensor:
    """Pairs interleaved again, in x's dtype."""
    return torch.stack((even, odd), dim=-1).flatten(-2).to(x.dtype)


def slowed(exponents: object) -> object:
    """RoPE whose pair i turns by theta^-exponents(i, d)."""

    def f(x: Tensor, positions: Tensor, theta: float, limit: int) -> Tensor:
        d = x.shape[-1]
        i = torch.arange(d // 2, dtype=torch.float64)
        return turn(x, positions[..., None] * theta ** -exponents(i, d))  # type: ignore[operator]

    return f


@fault("half-split")
def half_split(x: Tensor, positions: Tensor, theta: float, limit: int | None = None) -> Tensor:
    angle = angles(positions, x.shape[-1], theta)
    a, b = wide(x).chunk(2, dim=-1)
    c, s = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
    return torch.cat((a * c - b * s, a * s + b * c), dim=-1).to(x.dtype)


fault("wrong-direction")(lambda x, p, theta, limit: rope(x, -p, theta))


@fault("sine-and-cosine-swapped")
def sine_and_cosine_swapped(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    a, b, c, s = paired(x, p, theta)
    return joined(a * s - b * c, a * c + b * s, x)


@fault("reflection")
def reflection(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    a, b, c, s = paired(x, p, theta)
    return joined(a * c + b * s, a * s - b * c, x)


@fault("both-plus")
def both_plus(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    a, b, c, s = paired(x, p, theta)
    return joined(a * c + b * s, a * s + b * c, x)


@fault("odd-from-rotated-even")
def odd_from_rotated_even(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    a, b, c, s = paired(x, p, theta)
    a = a * c - b * s
    return joined(a, a * s + b * c, x)


@fault("cosine-only")
def cosine_only(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    a, b, c, _ = paired(x, p, theta)
    return joined(a * c, b * c, x)


@fault("halves-concatenated")
def halves_concatenated(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    return rope(x, p, theta).unflatten(-1, (-1, 2)).mT.flatten(-2)


@fault("halves-interleaved")
def halves_interleaved(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    return rope(x.unflatten(-1, (2, -1)).mT.flatten(-2), p, theta)


fault("pair-order-swapped")(
    lambda x, p, theta, limit: rope(x, p, theta).unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
)

fault("theta-always-10000")(lambda x, p, theta, limit: rope(x, p, 10000.0))

fault("theta-inverted")(slowed(lambda i, d: -2 * i / d))

fault("exponent-half")(slowed(lambda i, d: i / d))

fault("exponent-double")(slowed(lambda i, d: 4 * i / d))

fault("exponent-from-one")(slowed(lambda i, d: 2 * (i + 1) / d))

fault("exponent-odd")(slowed(lambda i, d: (2 * i + 1) / d))

fault("exponent-reaches-one")(slowed(lambda i, d: i / max(d // 2 - 1, 1)))

fault("one-frequency")(slowed(lambda i, d: 0 * i))

fault("frequencies-reversed")(slowed(lambda i, d: (d - 2 - 2 * i) / d))

fault("frequency-per-feature")(
    lambda x, p, theta, limit: (
        x * angles(p, x.shape[-1], theta).cos().repeat(*[1] * p.ndim, 2)
        + torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)
        * angles(p, x.shape[-1], theta).sin().repeat(*[1] * p.ndim, 2)
    ).to(x.dtype)
)

fault("degrees")(lambda x, p, theta, limit: turn(x, torch.deg2rad(angles(p, x.shape[-1], theta))))

fault("half-rotated")(
    lambda x, p, theta, limit: torch.cat(
        (rope(x, p, theta)[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]), -1
    )
)

fault("last-pair-skipped", at={"theta": 50.0})(
    lambda x, p, theta, limit: torch.cat((rope(x, p, theta)[..., :-2], x[..., -2:]), -1)
)

fault("slow-frequencies-stretched")(
    slowed(lambda i, d: torch.where(i < d // 4, 2 * i / d, 2 * i / d + 0.3))
)

fault("positions-interpolated")(
    lambda x, p, theta, limit: turn(x, angles(p, x.shape[-1], theta) / 4)
)

fault("decaying-length")(
    lambda x, p, theta, limit: (rope(x, p, theta) * 0.99 ** p[..., None]).to(x.dtype)
)

fault("added-to-input")(lambda x, p, theta, limit: x + rope(x, p, theta))

fault("encoding-added")(
    lambda x, p, theta, limit: (
        x + joined(*(f(angles(p, x.shape[-1], theta)) for f in (torch.sin, torch.cos)), x)
    )
)

fault("angles-in-bfloat16", at=FAR)(
    lambda x, p, theta, limit: turn(
        x, (p[..., None].bfloat16() * frequencies(x.shape[-1], theta).bfloat16()).double()
    )
)

fault("angles-in-float16", at=FAR)(
    lambda x, p, theta, limit: turn(
        x, (p[..., None].half() * frequencies(x.shape[-1], theta).half()).double()
    )
)


@fault("tables-in-bfloat16")
def tables_in_bfloat16(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    a, b, c, s = paired(x, p, theta)
    c, s = c.bfloat16(), s.bfloat16()
    return joined(a * c - b * s, a * s + b * c, x)


fault("angle-wrapped-at-pi")(
    lambda x, p, theta, limit: turn(x, torch.remainder(angles(p, x.shape[-1], theta), torch.pi))
)
