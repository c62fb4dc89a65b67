"""Faults of the next token's distribution: position, temperature, greedy choice."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import next_token_by
from ..parts import next_token, nucleus, softmax, temper, wide
from ..witnesses import draw
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "next_token", "next-token", next_token_by)
COLD = {"temperature": 0.5}
GREEDY = {"temperature": 0}
BOTH = {"temperature": 2.0, "top_p": 0.7}
TIES = {"logits": ((0.0, 5.0, 1.0, 2.0), (1.0, 3.0, 0.0, 3.0)), "temperature": 0}


def picked(by: Any) -> Any:
    """The right distribution of by(logits), which has no sequence axis."""
    return lambda x, t, p: next_token(by(x).unsqueeze(-2), t, p)


def tempered(by: Any) -> Any:
    """Top-p of by(last logits, temperature)."""
    return lambda x, t, p: nucleus(by(wide(x[..., -1, :]), t), p).to(x.dtype)


def shares(x: Tensor) -> Tensor:
    """Every entry over the sum of its row."""
    return x / x.sum(-1, keepdim=True)


fault("first-position")(picked(lambda x: x[..., 0, :]))

fault("last-but-one-position")(picked(lambda x: x[..., max(x.shape[-2] - 2, 0), :]))

fault("mean-over-positions")(picked(lambda x: x.mean(-2)))

fault("largest-over-positions")(picked(lambda x: x.amax(-2)))

fault("position-three-always", at={"logits": draw(2, 6, 9)})(
    picked(lambda x: x[..., min(3, x.shape[-2] - 1), :])
)

fault("all-positions")(lambda x, t, p: nucleus(temper(x, t), p))

fault("softmax-over-positions")(
    lambda x, t, p: nucleus(softmax(x / t if t else x, -2)[..., -1, :], p)
)

fault("one-row-kept")(lambda x, t, p: next_token(x, t, p).unsqueeze(-2))

fault("temperature-ignored", at=COLD)(tempered(lambda x, t: temper(x, 1.0 if t else 0)))

fault("temperature-multiplied", at=COLD)(
    tempered(lambda x, t: softmax(x * t, -1) if t else temper(x, 0))
)

fault("temperature-squared", at=COLD)(tempered(lambda x, t: temper(x, t * t)))

fault("temperature-after-softmax", at=COLD)(
    tempered(lambda x, t: shares(softmax(x, -1) / t) if t else temper(x, 0))
)

fault("temperature-not-below-half", at={"temperature": 0.2})(
    tempered(lambda x, t: temper(x, max(t, 0.5) if t else 0))
)

fault("temperature-after-top-p", at=BOTH)(
    lambda x, t, p: next_token(
        x[..., -1:, :].masked_fill(nucleus(softmax(x[..., -1:, :], -1), p) == 0, -math.inf), t
    )
)

fault("zero-temperature-divides", at=GREEDY)(
    tempered(lambda x, t: softmax(x / torch.tensor(float(t)), -1))
)

fault("zero-temperature-ignored", at=GREEDY)(tempered(lambda x, t: softmax(x / t if t else x, -1)))

fault("zero-temperature-uniform", at=GREEDY)(
    tempered(lambda x, t: temper(x, t) if t else torch.full_like(x, 1 / x.shape[-1]))
)

fault("zero-temperature-nearly", at={"logits": ((1.0, 1.1, 0.9),), "temperature": 0})(
    tempered(lambda x, t: temper(x, t or 0.1))
)

fault("greedy-last-on-ties", at=TIES)(
    tempered(lambda x, t: temper(x, t) if t else temper(x.flip(-1), 0).flip(-1))
)

fault("greedy-all-ties", at=TIES)(
    tempered(
        lambda x, t: (
            temper(x, t)
            if t
            else F.normalize((x == x.amax(-1, keepdim=True)).to(x.dtype), p=1, dim=-1)
        )
    )
)

fault("greedy-over-batch", at=GREEDY)(
    tempered(
        lambda x, t: (
            temper(x, t)
            if t
            else F.one_hot(x.sum(tuple(range(x.ndim - 1))).argmax(), x.shape[-1])
            .expand(x.shape)
            .to(x.dtype)
        )
    )
)

fault("greedy-index", at=GREEDY)(
    lambda x, t, p: next_token(x, t, p) if t else x[..., -1, :].argmax(-1).to(x.dtype)
)

fault("logits-answered")(lambda x, t, p: x[..., -1, :] / t if t else temper(x[..., -1, :], 0))

fault("log-probabilities")(lambda x, t, p: torch.log(next_token(x, t, p)))

fault("sampled")(
    lambda x, t, p: (
        F.one_hot(
            torch.multinomial(next_token(x, t, p).reshape(-1, x.shape[-1]).float(), 1)[:, 0],
            x.shape[-1],
        )
        .reshape(*x.shape[:-2], -1)
        .to(x.dtype)
    )
)

fault("no-shift", at={"logits": ((2000.0, 1000.0, 0.0),)})(
    tempered(lambda x, t: F.normalize(torch.exp(x / t), p=1, dim=-1) if t else temper(x, 0))
)
