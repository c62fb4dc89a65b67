"""Faults of RMSNorm, x / sqrt(mean(x^2) + eps) * g: what it computes."""

import torch
from torch import Tensor

from ..adapting import rmsnorm_by
from ..parts import rmsnorm, wide
from .catalogue import CONVENTION, MISREAD, SUBMISSIONS, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "rmsnorm", "rmsnorm", rmsnorm_by)
SMALL = {"scale": 1e-2, "eps": 1e-3}
TINY = {"scale": 1e-4, "eps": 1e-7}


def mean_square(x: Tensor) -> Tensor:
    """(..., d) -> (..., 1), at least in float32."""
    return wide(x).square().mean(-1, keepdim=True)


def divided(x: Tensor, g: Tensor, rms: Tensor) -> Tensor:
    """x / rms * g in x's dtype."""
    return (wide(x) / rms * g).to(x.dtype)


fault(
    "eps-outside-root",
    "Adds eps to the root instead of to the mean under the root.",
    "At which magnitude of the input does the place of eps matter?",
    source=SUBMISSIONS,
    at=SMALL,
)(lambda x, g, eps: divided(x, g, mean_square(x).sqrt() + eps))

fault(
    "eps-ignored",
    "Leaves eps out.",
    "What does a row of zeros, or a tiny one, give?",
    source=SUBMISSIONS,
    at=SMALL,
)(lambda x, g, eps: divided(x, g, mean_square(x).sqrt()))

fault(
    "eps-always-1e-5",
    "Uses 1e-5 whatever eps is given.",
    "Is the argument used anywhere?",
    source=SUBMISSIONS,
    at=SMALL,
)(lambda x, g, eps: rmsnorm(x, g, 1e-5))

fault(
    "eps-always-1e-6",
    "Uses 1e-6 whatever eps is given.",
    "Is the argument used anywhere?",
    source=CONVENTION,
    at=SMALL,
)(lambda x, g, eps: rmsnorm(x, g, 1e-6))

fault(
    "eps-always-1e-8",
    "Uses 1e-8 whatever eps is given.",
    "Is the argument used anywhere?",
    source=SUBMISSIONS,
    at=SMALL,
)(lambda x, g, eps: rmsnorm(x, g, 1e-8))

fault(
    "eps-squared",
    "Adds the square of eps under the root.",
    "Under the root stands a mean of squares plus eps as it is.",
    at=SMALL,
)(lambda x, g, eps: rmsnorm(x, g, eps**2))

fault(
    "eps-as-lower-bound",
    "Uses eps as a lower bound for the mean square instead of adding it.",
    "Compare a sum and a maximum where both terms are of one size.",
    at={"scale": 3e-2, "eps": 1e-3},
)(lambda x, g, eps: divided(x, g, mean_square(x).clamp(min=eps).sqrt()))

fault(
    "eps-added-to-result",
    "Adds eps to the normalised values.",
    "eps keeps the denominator away from zero; it has no other task.",
    at={"eps": 1e-2},
)(lambda x, g, eps: divided(x, g, mean_square(x).sqrt()) + eps)

fault(
    "eps-inside-mean",
    "Adds eps to the sum of squares before dividing by the width.",
    "Which is divided by d: the sum, or the sum and eps?",
    at=SMALL,
)(lambda x, g, eps: rmsnorm(x, g, eps / x.shape[-1]))

fault(
    "eps-lost-in-half",
    "Rounds the mean square to the input's low precision before eps is added.",
    "Where does float16 stop telling a small number from zero?",
    at={"scale": 1e-4, "eps": 1e-8, "dtype": torch.float16},
)(lambda x, g, eps: divided(x, g, (mean_square(x).to(x.dtype) + eps).sqrt()))

fault(
    "normalised-twice",
    "Normalises the normalised values once more.",
    "Twice is the same as once only while eps is negligible.",
    at=SMALL,
)(lambda x, g, eps: rmsnorm(rmsnorm(x, torch.ones_like(g), eps), g, eps))

fault(
    "gain-ignored",
    "Does not apply the gain.",
    "A gain of all ones hides this.",
    source=SUBMISSIONS,
)(lambda x, g, eps: rmsnorm(x, torch.ones_like(g), eps))

fault(
    "gain-added",
    "Adds the gain instead of multiplying by it.",
    "A gain scales.",
)(lambda x, g, eps: rmsnorm(x, torch.ones_like(g), eps) + g)

fault(
    "gain-plus-one",
    "Multiplies by 1 + gain.",
    "Here the gain starts at one, not at zero.",
    source=CONVENTION,
)(lambda x, g, eps: rmsnorm(x, 1 + g, eps))

fault(
    "gain-before-statistics",
    "Multiplies by the gain before taking the root mean square.",
    "The statistics are those of the input.",
)(lambda x, g, eps: rmsnorm(x * g, torch.ones_like(g), eps))

fault(
    "gain-first-element",
    "Uses the first element of the gain for all features.",
    "There is one gain per feature.",
)(lambda x, g, eps: rmsnorm(x, g[:1], eps))

fault(
    "gain-normalised",
    "Divides the gain by its mean.",
    "The gain is applied as it is, however large.",
    source=MISREAD,
    at={"weights": torch.linspace(1, 3, 8)},
)(lambda x, g, eps: rmsnorm(x, g / g.mean(), eps))

fault(
    "gain-absolute",
    "Uses the gain's magnitude.",
    "A gain may be negative.",
    at={"weights": torch.linspace(-1, 1, 8)},
)(lambda x, g, eps: rmsnorm(x, g.abs(), eps))

fault(
    "gain-along-sequence",
    "Applies the gain along the sequence, which runs when sequence and width are equal.",
    "Which axis has as many entries as the gain, by definition and not by chance?",
    source=SUBMISSIONS,
    at={"lead": (2, 8), "d": 8},
)(lambda x, g, eps: rmsnorm(x, torch.ones_like(g), eps) * g[:, None])

fault(
    "layer-norm",
    "Subtracts the mean first, as LayerNorm does.",
    "Which of the two statistics does this norm leave out?",
    source=CONVENTION,
)(lambda x, g, eps: rmsnorm(x - x.mean(-1, keepdim=True), g, eps))

fault(
    "variance-for-mean-square",
    "Divides by the standard deviation without centring.",
    "Mean of squares and variance differ by the squared mean.",
)(lambda x, g, eps: divided(x, g, (wide(x).var(-1, unbiased=False, keepdim=True) + eps).sqrt()))

fault(
    "unbiased-mean",
    "Divides the sum of squares by d - 1.",
    "Nothing is estimated here; the mean is over all d features.",
)(lambda x, g, eps: divided(x, g, (mean_square(x) * x.shape[-1] / (x.shape[-1] - 1) + eps).sqrt()))

fault(
    "sum-for-mean",
    "Uses the sum of squares instead of their mean.",
    "What is the root mean square of a normalised row?",
)(lambda x, g, eps: divided(x, g, (mean_square(x) * x.shape[-1] + eps).sqrt()))

fault(
    "mean-magnitude",
    "Uses the mean of the magnitudes.",
    "Square, mean, root: in that order.",
)(lambda x, g, eps: divided(x, g, wide(x).abs().mean(-1, keepdim=True) + eps))

fault(
    "root-missing",
    "Divides by the mean square without its root.",
    "What happens to the output when the input doubles?",
)(lambda x, g, eps: divided(x, g, mean_square(x) + eps))

fault(
    "first-half-statistics",
    "Takes the statistics of the first half of the features.",
    "All features enter the mean.",
    source=MISREAD,
)(lambda x, g, eps: divided(x, g, (mean_square(x[..., : x.shape[-1] // 2]) + eps).sqrt()))

fault(
    "largest-magnitude",
    "Divides by the largest magnitude of the row.",
    "Every element enters the scale, not one of them.",
)(lambda x, g, eps: divided(x, g, wide(x).abs().amax(-1, keepdim=True) + eps))

fault(
    "statistics-along-sequence",
    "Takes the mean over the sequence axis.",
    "Each token is normalised by its own features alone.",
)(lambda x, g, eps: divided(x, g, (wide(x).square().mean(-2, keepdim=True) + eps).sqrt()))

fault(
    "statistics-over-sample",
    "Takes one mean over sequence and features together.",
    "Make one token large: does another one's output change?",
)(lambda x, g, eps: divided(x, g, (wide(x).square().mean((-2, -1), keepdim=True) + eps).sqrt()))

fault(
    "statistics-over-everything",
    "Takes one mean over the whole tensor.",
    "Make one row large: does another one's output change?",
)(lambda x, g, eps: divided(x, g, (wide(x).square().mean() + eps).sqrt()))

fault(
    "statistics-over-batch",
    "Averages the mean square over the batch as well.",
    "A sample's output must not depend on its neighbours in the batch.",
)(lambda x, g, eps: divided(x, g, (mean_square(x).mean(0, keepdim=True) + eps).sqrt()))

fault(
    "axis-two-always",
    "Takes the mean over axis 2, which is the features' only for three axes.",
    "Count from the end when the number of leading axes is open.",
    source=SUBMISSIONS,
    at={"lead": (2, 3, 4)},
)(lambda x, g, eps: divided(x, g, (wide(x).square().mean(2, keepdim=True) + eps).sqrt()))
