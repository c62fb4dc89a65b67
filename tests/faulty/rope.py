"""Faults of RoPE: which features are paired, how fast they turn, which way."""

import torch
from torch import Tensor

from ..adapting import rope_by
from ..parts import angles, frequencies, rope, turn, wide
from .catalogue import CONVENTION, MISREAD, REPORTS, SPEED, SUBMISSIONS, Entry, registrar

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


@fault(
    "half-split",
    "Pairs feature i with feature i + d_k/2 instead of 2i with 2i + 1.",
    "Which two features make a pair? Two layouts are in use; only one is specified.",
    source=CONVENTION,
)
def half_split(x: Tensor, positions: Tensor, theta: float, limit: int | None = None) -> Tensor:
    angle = angles(positions, x.shape[-1], theta)
    a, b = wide(x).chunk(2, dim=-1)
    c, s = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
    return torch.cat((a * c - b * s, a * s + b * c), dim=-1).to(x.dtype)


fault(
    "wrong-direction",
    "Turns by the negative angle.",
    "Where does the pair (1, 0) go for a small positive angle?",
)(lambda x, p, theta, limit: rope(x, -p, theta))


@fault(
    "sine-and-cosine-swapped",
    "Exchanges sines and cosines.",
    "What must happen at position 0?",
)
def sine_and_cosine_swapped(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    a, b, c, s = paired(x, p, theta)
    return joined(a * s - b * c, a * c + b * s, x)


@fault(
    "reflection",
    "Has the minus sign in the wrong place, so that pairs are mirrored.",
    "What is the determinant of the 2x2 matrix that you apply?",
)
def reflection(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    a, b, c, s = paired(x, p, theta)
    return joined(a * c + b * s, a * s - b * c, x)


@fault(
    "both-plus",
    "Adds in both rows, so that lengths change.",
    "Does the vector keep its length?",
)
def both_plus(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    a, b, c, s = paired(x, p, theta)
    return joined(a * c + b * s, a * s + b * c, x)


@fault(
    "odd-from-rotated-even",
    "Computes the odd feature from the even one that is already rotated.",
    "Which of the four products needs a value that has been overwritten?",
    source=SUBMISSIONS,
)
def odd_from_rotated_even(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    a, b, c, s = paired(x, p, theta)
    a = a * c - b * s
    return joined(a, a * s + b * c, x)


@fault(
    "cosine-only",
    "Multiplies by the cosine and leaves out the other feature of the pair.",
    "Does the vector keep its length?",
)
def cosine_only(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    a, b, c, _ = paired(x, p, theta)
    return joined(a * c, b * c, x)


@fault(
    "halves-concatenated",
    "Answers all even features first, then all odd ones.",
    "In which order do the rotated features go back?",
    source=SUBMISSIONS,
)
def halves_concatenated(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    return rope(x, p, theta).unflatten(-1, (-1, 2)).mT.flatten(-2)


fault(
    "pair-order-swapped",
    "Exchanges the two features of each pair on the way out.",
    "What must happen at position 0?",
)(lambda x, p, theta, limit: rope(x, p, theta).unflatten(-1, (-1, 2)).flip(-1).flatten(-2))

fault(
    "theta-always-10000",
    "Uses the base 10000 whatever theta is given.",
    "Is the argument used anywhere?",
    source=SUBMISSIONS,
)(lambda x, p, theta, limit: rope(x, p, 10000.0))

fault(
    "theta-inverted",
    "Multiplies by the power of theta instead of dividing.",
    "Which pair turns fastest?",
)(slowed(lambda i, d: -2 * i / d))

fault(
    "exponent-half",
    "Uses i / d_k for the pair i instead of 2i / d_k.",
    "How does the slowest frequency compare with 1 / theta?",
    source=MISREAD,
)(slowed(lambda i, d: i / d))

fault(
    "exponent-double",
    "Uses 4i / d_k for the pair i instead of 2i / d_k.",
    "How does the slowest frequency compare with 1 / theta?",
    source=MISREAD,
)(slowed(lambda i, d: 4 * i / d))

fault(
    "exponent-from-one",
    "Counts the pairs from 1, so that the first one turns too slowly.",
    "By which angle does the first pair turn from one position to the next?",
    source=MISREAD,
)(slowed(lambda i, d: 2 * (i + 1) / d))

fault(
    "exponent-odd",
    "Uses (2k - 1) / d_k with k from 1, as an early edition of the course text printed.",
    "By which angle does the first pair turn from one position to the next?",
    source=MISREAD,
)(slowed(lambda i, d: (2 * i + 1) / d))

fault(
    "exponent-reaches-one",
    "Divides by d_k/2 - 1, so that the last frequency is exactly 1 / theta.",
    "What is the exponent of the last pair?",
    source=CONVENTION,
)(slowed(lambda i, d: i / max(d // 2 - 1, 1)))

fault(
    "one-frequency",
    "Turns all pairs at the speed of the first, as integer division in the exponent does.",
    "What is 2 // 8?",
)(slowed(lambda i, d: 0 * i))

fault(
    "frequencies-reversed",
    "Gives the slowest frequency to the first pair.",
    "Which pair turns fastest?",
)(slowed(lambda i, d: (d - 2 - 2 * i) / d))

fault(
    "frequency-per-feature",
    "Repeats the list of frequencies once instead of each frequency twice.",
    "The two features of a pair turn together, by one angle.",
    source=REPORTS,
)(
    lambda x, p, theta, limit: (
        x * angles(p, x.shape[-1], theta).cos().repeat(*[1] * p.ndim, 2)
        + torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)
        * angles(p, x.shape[-1], theta).sin().repeat(*[1] * p.ndim, 2)
    ).to(x.dtype)
)

fault(
    "degrees",
    "Converts the angles from degrees.",
    "Which unit does the cosine take?",
)(lambda x, p, theta, limit: turn(x, torch.deg2rad(angles(p, x.shape[-1], theta))))

fault(
    "half-rotated",
    "Rotates the first half of the features only, as models with partial rotation do.",
    "Is any pair left as it was?",
    source=CONVENTION,
)(
    lambda x, p, theta, limit: torch.cat(
        (rope(x, p, theta)[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]), -1
    )
)

fault(
    "last-pair-skipped",
    "Leaves the last pair as it is.",
    "Is any pair left as it was?",
    at={"theta": 50.0},
)(lambda x, p, theta, limit: torch.cat((rope(x, p, theta)[..., :-2], x[..., -2:]), -1))

fault(
    "slow-frequencies-stretched",
    "Slows the pairs of long wavelength down, as models tuned for long context do.",
    "That scaling is another model's.",
    source=CONVENTION,
)(slowed(lambda i, d: torch.where(i < d // 4, 2 * i / d, 2 * i / d + 0.3)))

fault(
    "positions-interpolated",
    "Scales positions down by a factor, as for an extended context.",
    "By which angle does the first pair turn from one position to the next?",
    source=CONVENTION,
)(lambda x, p, theta, limit: turn(x, angles(p, x.shape[-1], theta) / 4))

fault(
    "decaying-length",
    "Shortens vectors with their position, as an extension of RoPE does.",
    "Does the vector keep its length?",
    source=CONVENTION,
)(lambda x, p, theta, limit: (rope(x, p, theta) * 0.99 ** p[..., None]).to(x.dtype))

fault(
    "added-to-input",
    "Adds the rotated vector to the input.",
    "Does the vector keep its length?",
)(lambda x, p, theta, limit: x + rope(x, p, theta))

fault(
    "encoding-added",
    "Adds sines and cosines to the vector instead of rotating it.",
    "What happens to a vector of zeros?",
    source=MISREAD,
)(
    lambda x, p, theta, limit: (
        x + joined(*(f(angles(p, x.shape[-1], theta)) for f in (torch.sin, torch.cos)), x)
    )
)

fault(
    "angles-in-bfloat16",
    "Computes the angles in bfloat16, in which positions above 256 are no longer exact.",
    "Which integers exist in a format with eight bits of precision?",
    source=REPORTS,
    at=FAR,
)(
    lambda x, p, theta, limit: turn(
        x, (p[..., None].bfloat16() * frequencies(x.shape[-1], theta).bfloat16()).double()
    )
)

fault(
    "angles-in-float16",
    "Computes the angles in float16, in which positions above 2048 are no longer exact.",
    "Which integers exist in a format with eleven bits of precision?",
    source=REPORTS,
    at=FAR,
)(
    lambda x, p, theta, limit: turn(
        x, (p[..., None].half() * frequencies(x.shape[-1], theta).half()).double()
    )
)


@fault(
    "tables-in-bfloat16",
    "Keeps cosines and sines in bfloat16 for float32 input.",
    "Half precision is for input that came in half precision.",
    source=REPORTS,
)
def tables_in_bfloat16(x: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    a, b, c, s = paired(x, p, theta)
    c, s = c.bfloat16(), s.bfloat16()
    return joined(a * c - b * s, a * s + b * c, x)


fault(
    "angle-wrapped-at-pi",
    "Reduces angles modulo half a turn.",
    "After which angle does a rotation repeat?",
    source=SPEED,
)(lambda x, p, theta, limit: turn(x, torch.remainder(angles(p, x.shape[-1], theta), torch.pi)))
