"""Faults of the next token's distribution: position, temperature, greedy choice."""

import math
from typing import Any

import torch
import torch.nn.functional as F

from ..adapting import next_token_by
from ..parts import next_token, nucleus, softmax, temper, wide
from ..witnesses import draw
from .catalogue import MISREAD, PYTORCH, REPORTS, SPEED, SUBMISSIONS, Entry, registrar

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


fault(
    "first-position",
    "Uses the logits of the first position.",
    "After which token does the next one come?",
)(picked(lambda x: x[..., 0, :]))

fault(
    "last-but-one-position",
    "Uses the logits of the last position but one.",
    "After which token does the next one come?",
)(picked(lambda x: x[..., max(x.shape[-2] - 2, 0), :]))

fault(
    "mean-over-positions",
    "Averages the logits over all positions.",
    "Change an earlier position's logits: may the answer move?",
)(picked(lambda x: x.mean(-2)))

fault(
    "largest-over-positions",
    "Takes each token's largest logit over all positions.",
    "Change an earlier position's logits: may the answer move?",
)(picked(lambda x: x.amax(-2)))

fault(
    "position-three-always",
    "Uses position 3, the last one of four only.",
    "Count from the end.",
    at={"logits": draw(2, 6, 9)},
)(picked(lambda x: x[..., min(3, x.shape[-2] - 1), :]))

fault(
    "all-positions",
    "Answers a distribution for every position.",
    "How many next tokens are there?",
    visible="shape",
)(lambda x, t, p: nucleus(temper(x, t), p))

fault(
    "softmax-over-positions",
    "Takes the softmax over the sequence.",
    "What must add up to 1?",
)(lambda x, t, p: nucleus(softmax(x / t if t else x, -2)[..., -1, :], p))

fault(
    "one-row-kept",
    "Keeps a sequence axis of length 1.",
    "Compare the number of axes with that of the logits.",
    visible="shape",
)(lambda x, t, p: next_token(x, t, p).unsqueeze(-2))

fault(
    "temperature-ignored",
    "Does not use the temperature.",
    "Is the argument used anywhere?",
    at=COLD,
)(tempered(lambda x, t: temper(x, 1.0 if t else 0)))

fault(
    "temperature-multiplied",
    "Multiplies the logits by the temperature.",
    "Does a low temperature sharpen or flatten?",
    at=COLD,
)(tempered(lambda x, t: softmax(x * t, -1) if t else temper(x, 0)))

fault(
    "temperature-squared",
    "Divides the logits by the square of the temperature.",
    "By what are logits divided?",
    at=COLD,
)(tempered(lambda x, t: temper(x, t * t)))

fault(
    "temperature-after-softmax",
    "Divides the probabilities by the temperature and renormalises, which cancels.",
    "Before or after the exponential?",
    source=MISREAD,
    at=COLD,
)(tempered(lambda x, t: F.normalize(softmax(x, -1) / t, p=1, dim=-1) if t else temper(x, 0)))

fault(
    "temperature-not-below-half",
    "Replaces temperatures below 0.5 by 0.5.",
    "Which temperatures are legal?",
    source=SPEED,
    at={"temperature": 0.2},
)(tempered(lambda x, t: temper(x, max(t, 0.5) if t else 0)))

fault(
    "temperature-after-top-p",
    "Cuts the distribution at temperature 1 and applies the temperature to what is left.",
    "Whose mass must reach top_p?",
    source=REPORTS,
    at=BOTH,
)(
    lambda x, t, p: next_token(
        x[..., -1:, :].masked_fill(nucleus(softmax(x[..., -1:, :], -1), p) == 0, -math.inf), t
    )
)

fault(
    "zero-temperature-divides",
    "Divides by a temperature of 0.",
    "What does temperature 0 mean?",
    source=SUBMISSIONS,
    at=GREEDY,
)(tempered(lambda x, t: softmax(x / torch.tensor(float(t)), -1)))

fault(
    "zero-temperature-ignored",
    "Takes temperature 0 for no temperature at all.",
    "A zero is a number that was given, None is not.",
    source=PYTORCH,
    at=GREEDY,
)(tempered(lambda x, t: softmax(x / t if t else x, -1)))

fault(
    "zero-temperature-uniform",
    "Answers a uniform distribution for temperature 0.",
    "Which tokens does a very low temperature prefer?",
    at=GREEDY,
)(tempered(lambda x, t: temper(x, t) if t else torch.full_like(x, 1 / x.shape[-1])))

fault(
    "zero-temperature-nearly",
    "Replaces temperature 0 by 0.1.",
    "Is the answer one-hot?",
    source=SPEED,
    at={"logits": ((1.0, 1.1, 0.9),), "temperature": 0},
)(tempered(lambda x, t: temper(x, t or 0.1)))

fault(
    "greedy-last-on-ties",
    "Chooses the last of several equal maxima.",
    "Which of two equal tokens comes first?",
    level="SHOULD",
    at=TIES,
)(tempered(lambda x, t: temper(x, t) if t else temper(x.flip(-1), 0).flip(-1)))

fault(
    "greedy-all-ties",
    "Shares the mass among equal maxima.",
    "Is the answer one-hot?",
    level="SHOULD",
    at=TIES,
)(
    tempered(
        lambda x, t: (
            temper(x, t)
            if t
            else F.normalize((x == x.amax(-1, keepdim=True)).to(x.dtype), p=1, dim=-1)
        )
    )
)

fault(
    "greedy-over-batch",
    "Takes the maximum over the whole batch.",
    "Each row has a maximum of its own.",
    at=GREEDY,
)(
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

fault(
    "greedy-index",
    "Answers the token instead of a distribution when greedy.",
    "Which shape does the answer have?",
    visible="shape",
    at=GREEDY,
)(lambda x, t, p: next_token(x, t, p) if t else x[..., -1, :].argmax(-1).to(x.dtype))

fault(
    "logits-answered",
    "Answers logits.",
    "Is the answer a distribution?",
)(lambda x, t, p: x[..., -1, :] / t if t else temper(x[..., -1, :], 0))

fault(
    "log-probabilities",
    "Answers log-probabilities.",
    "Is the answer a distribution?",
)(lambda x, t, p: torch.log(next_token(x, t, p)))

fault(
    "sampled",
    "Draws a token and answers it as one-hot.",
    "Who draws: this function, or its caller?",
    source=MISREAD,
)(
    lambda x, t, p: (
        F.one_hot(
            torch.multinomial(next_token(x, t, p).reshape(-1, x.shape[-1]).float(), 1)[:, 0],
            x.shape[-1],
        )
        .reshape(*x.shape[:-2], -1)
        .to(x.dtype)
    )
)

fault(
    "no-shift",
    "Exponentiates logits without subtracting the maximum.",
    "Which logits overflow?",
    at={"logits": ((200.0, 100.0, 0.0),)},
)(tempered(lambda x, t: F.normalize(torch.exp(x / t), p=1, dim=-1) if t else temper(x, 0)))
