"""Faults of softmax along one axis."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import softmax_by
from ..parts import softmax, wide
from ..witnesses import draw
from .catalogue import MISREAD, PYTORCH, REPORTS, SPEED, SUBMISSIONS, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "softmax", "softmax", softmax_by)
LARGE = {"x": ((1000.0, 999.0, 998.0), (0.0, 1.0, 2.0))}
FAR_APART = {"x": ((1000.0, 999.0, 998.0), (-1000.0, -999.0, -998.0))}


def shifted(x: Tensor, dim: int, shift: Tensor) -> Tensor:
    """exp(x - shift) / sum."""
    e = torch.exp(x - shift)
    return e / e.sum(dim, keepdim=True)


fault(
    "no-shift",
    "Exponentiates without subtracting the maximum, which overflows above 88.",
    "Adding a constant to all scores changes nothing: which constant is safe?",
    source=SUBMISSIONS,
    at=LARGE,
)(lambda x, dim: shifted(x, dim, torch.zeros(())))

fault(
    "global-maximum",
    "Subtracts the maximum of the whole tensor, so rows far below it become 0 / 0.",
    "Each row has its own maximum.",
    source=SUBMISSIONS,
    at=FAR_APART,
)(lambda x, dim: shifted(x, dim, x.max()))

fault(
    "mean-subtracted",
    "Subtracts the mean instead of the maximum.",
    "What is the largest exponent that can remain?",
    at={"x": ((1000.0, 0.0, 0.0, 0.0),)},
)(lambda x, dim: shifted(x, dim, x.mean(dim, keepdim=True)))

fault(
    "minimum-subtracted",
    "Subtracts the minimum instead of the maximum.",
    "What is the largest exponent that can remain?",
    at={"x": ((200.0, 0.0, 1.0),)},
)(lambda x, dim: shifted(x, dim, x.amin(dim, keepdim=True)))

fault(
    "largest-magnitude-subtracted",
    "Subtracts the largest magnitude, so a row of large negative scores becomes 0 / 0.",
    "Which exponent does the largest score get?",
    at={"x": ((-1000.0, -999.0, -998.0),)},
)(lambda x, dim: shifted(x, dim, x.abs().amax(dim, keepdim=True)))

fault(
    "only-positive-maximum",
    "Subtracts the maximum only where it is positive.",
    "What does a row of large negative scores give?",
    at={"x": ((-1000.0, -999.0, -998.0),)},
)(lambda x, dim: shifted(x, dim, x.amax(dim, keepdim=True).clamp(min=0)))

fault(
    "scores-clamped",
    "Clamps the scores to [-30, 30] to avoid overflow.",
    "Two large scores that differ must come out different.",
    source=SPEED,
    at=LARGE,
)(lambda x, dim: softmax(x.clamp(-30, 30), dim))

fault(
    "log-sum-exp-without-shift",
    "Takes exp(x - log(sum(exp(x)))), whose inner sum overflows.",
    "The logarithm comes too late.",
    at=LARGE,
)(lambda x, dim: torch.exp(x - torch.log(torch.exp(x).sum(dim, keepdim=True))))

fault(
    "axis-ignored",
    "Always works on the last axis.",
    "Is the argument used anywhere?",
    source=SUBMISSIONS,
    at={"dim": 1},
)(lambda x, dim: softmax(x, -1))

fault(
    "axis-counted-from-zero",
    "Always works on axis 1, the last one of a matrix only.",
    "Is the argument used anywhere?",
    source=SUBMISSIONS,
)(lambda x, dim: softmax(x, 1))

fault(
    "reshaped-to-rows",
    "Flattens to rows of the axis' length without moving the axis to the end first.",
    "Which elements end up in one row?",
    source=PYTORCH,
    at={"dim": 1},
)(lambda x, dim: softmax(x.reshape(-1, x.shape[dim]), -1).reshape(x.shape))

fault(
    "axis-not-moved-back",
    "Moves the axis to the end and leaves it there.",
    "Compare the order of the axes before and after.",
    visible="shape",
    at={"dim": 0},
)(lambda x, dim: softmax(x.movedim(dim, -1), -1))

fault(
    "axis-not-moved-back-cube",
    "Moves the axis to the end and leaves it there, unseen when all axes have one size.",
    "Sum the result along the axis that was asked for.",
    at={"x": draw(3, 3, 3), "dim": 0},
)(lambda x, dim: softmax(x.movedim(dim, -1), -1))

fault(
    "maximum-restored-at-end",
    "Puts the reduced axis back at the end whatever dim is.",
    "Where was the axis that the reduction removed?",
    source=SUBMISSIONS,
    visible="crash",
    at={"dim": 1},
)(lambda x, dim: shifted(x, dim, x.amax(dim)[..., None]))

fault(
    "sum-restored-at-end",
    "Puts the axis of the sum back at the end, unseen when all axes have one size.",
    "Sum the result along the axis that was asked for.",
    source=SUBMISSIONS,
    at={"x": draw(3, 3, 3), "dim": 0},
)(lambda x, dim: torch.exp(x) / torch.exp(x).sum(dim)[..., None])

fault(
    "negative-axis-refused",
    "Compares dim with axis numbers and so finds no negative one.",
    "An axis may be counted from the end.",
    visible="crash",
    at={"dim": -2},
)(lambda x, dim: softmax(x, list(range(x.ndim)).index(dim)))

fault(
    "three-axes-only",
    "Unpacks three axes.",
    "How many axes an input has is open.",
    source=SUBMISSIONS,
    visible="crash",
    at={"x": (1.0, 2.0, 3.0)},
)(lambda x, dim: softmax(torch.einsum("bst->bst", x), dim))

fault(
    "not-normalised",
    "Answers exp(x - max) without dividing by the sum.",
    "What is the sum of a row?",
)(lambda x, dim: torch.exp(x - x.amax(dim, keepdim=True)))

fault(
    "normalised-over-everything",
    "Divides by the sum over the whole tensor.",
    "What is the sum of a row?",
)(lambda x, dim: softmax(x.reshape(-1), 0).reshape(x.shape))

fault(
    "logarithm-left",
    "Answers log-probabilities.",
    "Can a probability be negative?",
)(lambda x, dim: F.log_softmax(x, dim))

fault(
    "base-two",
    "Uses powers of two.",
    "The base is e; a factor on the exponent would make up for it.",
    source=SPEED,
)(lambda x, dim: softmax(x * 0.6931471805599453, dim))

fault(
    "share-of-sum",
    "Divides each score by the sum of the scores, without exponentials.",
    "What about negative scores?",
)(lambda x, dim: x / x.sum(dim, keepdim=True))

fault("sigmoid", "Applies a sigmoid to each score.", "Do scores compete?")(
    lambda x, dim: torch.sigmoid(x)
)

fault(
    "softmin",
    "Negates the scores: the smallest gets most.",
    "Which score should win?",
)(lambda x, dim: softmax(-x, dim))

fault(
    "one-hot",
    "Answers 1 for the largest score and 0 for the others.",
    "How close are two scores that differ little?",
)(lambda x, dim: (x == x.amax(dim, keepdim=True)).to(x.dtype))

fault(
    "one-added-to-sum",
    "Adds 1 to the sum of exponentials.",
    "What is the sum of a row?",
    source=MISREAD,
)(lambda x, dim: torch.exp(x) / (1 + torch.exp(x).sum(dim, keepdim=True)))

fault(
    "scaled-by-root-size",
    "Divides the scores by the root of the axis' length.",
    "The scale of attention scores belongs to attention.",
)(lambda x, dim: softmax(x / x.shape[dim] ** 0.5, dim))

fault(
    "zeros-are-masked",
    "Treats scores of exactly 0 as masked.",
    "Zero is a score like any other.",
    source=MISREAD,
    at={"x": ((0.0, 1.0, 2.0), (0.0, -1.0, 0.5))},
)(lambda x, dim: softmax(x.masked_fill(x == 0, -torch.inf), dim))

fault(
    "ties-to-first",
    "Gives the shares of all equal maxima to the first of them.",
    "Equal scores have equal probabilities.",
    at={"x": ((2.0, 2.0, 1.0),)},
)(
    lambda x, dim: softmax(
        x.masked_fill(
            (x == x.amax(dim, keepdim=True)) & ((x == x.amax(dim, keepdim=True)).cumsum(dim) > 1),
            -torch.inf,
        ),
        dim,
    )
)


@fault(
    "low-precision-sum",
    "Keeps the running sum in the low precision of the input.",
    "What happens to 256 + 1 in bfloat16?",
    source=REPORTS,
    level="SHOULD",
    at={"x": torch.zeros(1, 1024), "dtype": torch.bfloat16},
)
def low_precision_sum(x: Tensor, dim: int) -> Tensor:
    e = torch.exp(x - x.amax(dim, keepdim=True))
    total = torch.zeros_like(e.narrow(dim, 0, 1))
    for i in range(x.shape[dim]):
        total = total + e.narrow(dim, i, 1)
    return e / total


fault(
    "half-inside",
    "Rounds every input to float16 on the way.",
    "Half precision is for input that came in half precision.",
    source=SPEED,
    at={"x": ((20.003, 20.0, 10.0),)},
)(lambda x, dim: softmax(x.half(), dim).to(x.dtype))

fault(
    "float32-result",
    "Answers in float32 for input of lower precision.",
    "Widening inside is fine; what leaves has the dtype that came in.",
    level="SHOULD",
    visible="dtype",
    at={"dtype": torch.bfloat16},
)(lambda x, dim: softmax(x.float(), dim))


@fault(
    "input-overwritten",
    "Subtracts the maximum in place.",
    "A name ending in an underscore, or an operator like -=, changes the caller's tensor.",
    source=SUBMISSIONS,
    visible="purity",
)
def input_overwritten(x: Tensor, dim: int) -> Tensor:
    x -= x.amax(dim, keepdim=True)
    return softmax(x, dim)


def reused_buffer() -> Any:
    """Softmax into one buffer per shape."""
    buffers: dict[torch.Size, Tensor] = {}

    def f(x: Tensor, dim: int) -> Tensor:
        buffer = buffers.setdefault(x.shape, torch.empty_like(x, requires_grad=False))
        return buffer.detach().copy_(softmax(x, dim))

    return f


fault(
    "output-buffer-reused",
    "Writes every result of one shape into the same buffer.",
    "Keep an earlier result, call again, and look at the earlier one.",
    source=SPEED,
    visible="purity",
    at=[{}, {"x": draw(2, 3, 4, seed=9)}],
)(reused_buffer())

fault(
    "contiguous-only",
    "Uses view on the input, which refuses a transposed one.",
    "Not every tensor lies in memory in the order of its axes.",
    source=PYTORCH,
    visible="strides",
)(lambda x, dim: softmax(x.view(-1, x.shape[-1]).view(x.shape), dim))

fault(
    "drops-size-one-axes",
    "Squeezes the result, which loses every axis of size 1.",
    "The output has the input's shape, always.",
    visible="shape",
    at={"x": draw(3, 1)},
)(lambda x, dim: softmax(x, dim).squeeze())

fault(
    "sum-detached",
    "Treats the denominator as a constant in the derivative.",
    "Every score enters the sum.",
    source=PYTORCH,
    visible="gradient",
)(lambda x, dim: torch.exp(wide(x) - torch.logsumexp(wide(x), dim, keepdim=True).detach()))


class DiagonalOnly(torch.autograd.Function):
    """The right value with the diagonal of the Jacobian alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        p = softmax(x, dim)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:
        (p,) = ctx.saved_tensors
        return dy * p * (1 - p), None


fault(
    "backward-diagonal-only",
    "The hand-written derivative is p (1 - p) for each element by itself.",
    "Raising one score lowers the probability of the others.",
    visible="gradient",
)(DiagonalOnly.apply)


class Consuming(DiagonalOnly):
    """The right derivative, computed in the memory of the saved probabilities."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        p = softmax(x, dim)
        ctx.p, ctx.dim = p.clone(), dim
        return p

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:
        inner = (dy * ctx.p).sum(ctx.dim, keepdim=True)
        return ctx.p.mul_(dy - inner).clone(), None


fault(
    "backward-consumes-saved-tensor",
    "The hand-written backward pass overwrites what it saved for itself.",
    "A graph that is kept may be used again. Run the backward pass twice.",
    source=SPEED,
    visible="gradient",
    note="the second backward pass is wrong",
)(Consuming.apply)

fault(
    "gradient-nan-when-far-apart",
    "Divides 1 by the sum of exp(x_j - x_i): right forward, but the derivative is inf / inf.",
    "Which exponents are positive?",
    source=PYTORCH,
    visible="gradient",
    at={"x": ((100.0, 0.0, 1.0),)},
)(
    lambda x, dim: (
        1 / torch.exp(x.movedim(dim, -1).unsqueeze(-2) - x.movedim(dim, -1).unsqueeze(-1)).sum(-1)
    ).movedim(-1, dim)
)
