"""Faults of scaled dot-product attention: scores, softmax, values, and how they are handled."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import attention_by
from ..parts import attention, softmax
from ..witnesses import draw
from .catalogue import CONVENTION, MISREAD, PYTORCH, REPORTS, SPEED, SUBMISSIONS, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "scaled_dot_product_attention", "attention", attention_by)
LARGE = {"scale": 20.0, "mask": None}


def scaled(by: Any) -> Any:
    """Attention with scores multiplied by by(q, k, v)."""
    return lambda q, k, v, mask: attention(q, k, v, mask, scale=by(q, k, v))


def normalised(by: Any) -> Any:
    """Attention with by(scores, axis) for the softmax."""
    return lambda q, k, v, mask: attention(q, k, v, mask, normalise=by)


fault("no-scale", "Leaves out the scale.", "By what does the spread of a score grow with d_k?")(
    scaled(lambda q, k, v: 1.0)
)

fault(
    "scale-not-rooted",
    "Divides by d_k instead of its root.",
    "Which power of d_k does the spread of a score grow with?",
    source=MISREAD,
)(scaled(lambda q, k, v: 1 / q.shape[-1]))

fault(
    "scale-multiplied",
    "Multiplies by the root of d_k.",
    "Should scores grow or shrink?",
)(scaled(lambda q, k, v: q.shape[-1] ** 0.5))

fault(
    "scale-from-values",
    "Uses the width of the values, unseen while d_v equals d_k.",
    "Between which two vectors is the score an inner product?",
    source=SUBMISSIONS,
)(scaled(lambda q, k, v: v.shape[-1] ** -0.5))

fault(
    "scale-from-length",
    "Uses the number of keys instead of their width.",
    "Which axis of the keys is d_k?",
    source=SUBMISSIONS,
)(scaled(lambda q, k, v: k.shape[-2] ** -0.5))

fault(
    "scale-always-8",
    "Divides by 8, which is right for d_k = 64.",
    "Where does the number come from?",
)(scaled(lambda q, k, v: 1 / 8))

fault(
    "scale-root-truncated",
    "Truncates the root of d_k to an integer.",
    "Try a d_k that is no square.",
    source=PYTORCH,
)(scaled(lambda q, k, v: 1 / int(math.sqrt(q.shape[-1]))))

fault(
    "softmax-over-queries",
    "Takes the softmax over the queries.",
    "What must add up to 1: what one query gives, or what one key gets?",
    at={"mask": None},
)(lambda q, k, v, mask: softmax(q @ k.mT * q.shape[-1] ** -0.5, -2) @ v)

fault(
    "softmax-axis-one",
    "Takes the softmax over axis 1, the keys' only when there are two axes.",
    "Count from the end when the number of leading axes is open.",
    at={"mask": None},
)(lambda q, k, v, mask: softmax(q @ k.mT * q.shape[-1] ** -0.5, 1) @ v)

fault(
    "no-softmax",
    "Weights values by raw scores.",
    "Does the output lie between the values?",
    at={"mask": None},
)(normalised(lambda s, dim: s))

fault(
    "not-normalised",
    "Weights values by exponentials that do not add up to 1.",
    "What is the sum of a query's weights?",
)(normalised(lambda s, dim: torch.exp(s - s.amax(dim, keepdim=True))))

fault(
    "sigmoid-weights",
    "Weights values by sigmoids of the scores.",
    "Do keys compete?",
    source=CONVENTION,
)(normalised(lambda s, dim: torch.sigmoid(s)))

fault(
    "no-shift",
    "Exponentiates scores without subtracting the maximum.",
    "Which scores overflow?",
    source=SUBMISSIONS,
    at=LARGE,
)(normalised(lambda s, dim: torch.exp(s) / torch.exp(s).sum(dim, keepdim=True)))

fault(
    "global-maximum",
    "Subtracts the maximum over the whole batch.",
    "Each query has its own maximum.",
    source=SUBMISSIONS,
    at=LARGE,
)(normalised(lambda s, dim: torch.exp(s - s.max()) / torch.exp(s - s.max()).sum(dim, keepdim=True)))

fault(
    "scores-clamped",
    "Clamps scores to [-50, 50] to avoid overflow.",
    "Two large scores that differ must come out different.",
    source=SPEED,
    at=LARGE,
)(normalised(lambda s, dim: softmax(s.clamp(-50, 50), dim)))

fault(
    "one-added-to-sum",
    "Adds 1 to the softmax's denominator.",
    "What is the sum of a query's weights?",
    source=CONVENTION,
)(normalised(lambda s, dim: torch.exp(s) / (1 + torch.exp(s).sum(dim, keepdim=True))))

fault(
    "scores-in-bfloat16",
    "Rounds the scores to bfloat16 whatever the input's dtype.",
    "How much does a rounding error of a large score change its exponential?",
    source=REPORTS,
    at={"scale": 3.0},
)(normalised(lambda s, dim: softmax(s.bfloat16().to(s.dtype), dim)))

fault(
    "queries-and-keys-swapped",
    "Scores keys against queries, which runs when there are equally many.",
    "Which axis of the scores belongs to the queries?",
    at={"queries": 5, "mask": None},
)(lambda q, k, v, mask: attention(k, q, v, mask))

fault(
    "keys-and-values-swapped",
    "Exchanges keys and values, which runs when they have one width.",
    "Which of the two is compared, which is averaged?",
    at={"d_v": 8},
)(lambda q, k, v, mask: attention(q, v, k, mask))

fault(
    "keys-as-values",
    "Averages the keys instead of the values.",
    "Is V used anywhere?",
    at={"d_v": 8},
)(lambda q, k, v, mask: attention(q, k, k, mask))

fault(
    "weights-answered",
    "Answers the attention weights.",
    "Which shape does the output have?",
    visible="shape",
)(lambda q, k, v, mask: attention(q, k, torch.eye(k.shape[-2]).expand(*k.shape[:-1], -1), mask))

fault(
    "weights-answered-square",
    "Answers the attention weights, unseen in shape when d_v equals the number of keys.",
    "Is V used anywhere?",
    at={"keys": 5, "d_v": 5},
)(lambda q, k, v, mask: attention(q, k, torch.eye(k.shape[-2]).expand(*k.shape[:-1], -1), mask))

fault(
    "cosine-scores",
    "Normalises queries and keys to length 1.",
    "Is a longer query more decided?",
    source=CONVENTION,
)(lambda q, k, v, mask: attention(F.normalize(q, dim=-1), F.normalize(k, dim=-1), v, mask))

fault(
    "residual-inside",
    "Adds the queries to the output.",
    "The residual connection belongs to the block.",
    at={"d_v": 8},
)(lambda q, k, v, mask: q + attention(q, k, v, mask))

fault(
    "dropout-active",
    "Drops attention weights at every call.",
    "Does the same input give the same output twice?",
    source=PYTORCH,
)(normalised(lambda s, dim: F.dropout(softmax(s, dim), 0.5, training=True)))


@fault(
    "key-remainder-dropped",
    "Works through the keys in blocks of 4 and drops the remainder.",
    "Try a number of keys that the block size does not divide.",
    source=SPEED,
    at={"keys": 6, "mask": None},
)
def key_remainder_dropped(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    n = max(k.shape[-2] // 4 * 4, min(k.shape[-2], 4))
    mask = None if mask is None else mask[..., :n]
    return attention(q, k[..., :n, :], v[..., :n, :], mask)


@fault(
    "online-without-rescaling",
    "Works block by block with a running maximum, but never rescales what was summed before.",
    "What does the running sum mean after the maximum has changed?",
    source=SPEED,
    at={"keys": 8, "scale": 2.0, "mask": None},
)
def online_without_rescaling(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    top = torch.full((*q.shape[:-1], 1), -math.inf)
    total, result = torch.zeros_like(top), torch.zeros(())
    for start in range(0, k.shape[-2], 4):
        block = slice(start, start + 4)
        scores = q @ k[..., block, :].mT * q.shape[-1] ** -0.5
        if mask is not None:
            seen = mask.expand(*q.shape[:-1], k.shape[-2])[..., block]
            scores = scores.masked_fill(~seen, -math.inf)
        top = torch.maximum(top, scores.amax(-1, keepdim=True))
        e = torch.exp(scores - top)
        total = total + e.sum(-1, keepdim=True)
        result = result + e @ v[..., block, :]
    return result / total


fault(
    "four-axes-only",
    "Has the axes batch, head, sequence, feature written into the einsum.",
    "How many leading axes there are is not for attention to know.",
    source=SUBMISSIONS,
    visible="crash",
    at={"lead": (2,)},
)(lambda q, k, v, mask: attention(torch.einsum("bhsd->bhsd", q), k, v, mask))

fault(
    "three-axes-only",
    "Has the axes batch, sequence, feature written into the einsum.",
    "How many leading axes there are is not for attention to know.",
    source=SUBMISSIONS,
    visible="crash",
)(lambda q, k, v, mask: attention(torch.einsum("bsd->bsd", q), k, v, mask))

fault(
    "transposes-axes-one-and-two",
    "Exchanges axes 1 and 2 of the keys, the last two only when there are three.",
    "Count from the end when the number of leading axes is open.",
    source=SUBMISSIONS,
    visible="crash",
)(lambda q, k, v, mask: softmax(q @ k.transpose(1, 2) * q.shape[-1] ** -0.5, -1) @ v)

fault(
    "output-shaped-like-queries",
    "Gives the output the shape of the queries, which fails when d_v differs from d_k.",
    "Whose width does an average of values have?",
    source=SUBMISSIONS,
    visible="crash",
)(lambda q, k, v, mask: attention(q, k, v, mask).reshape(q.shape))

fault(
    "equal-lengths-assumed",
    "Shapes the scores as a square, which fails when keys outnumber queries.",
    "How many queries, how many keys?",
    visible="crash",
)(lambda q, k, v, mask: attention(q, k.reshape(*q.shape[:-1], -1), v, mask))

fault(
    "drops-size-one-axes",
    "Squeezes the result, which loses every axis of size 1.",
    "Try a batch of one and a single query.",
    visible="shape",
    at={"queries": 1},
)(lambda q, k, v, mask: attention(q, k, v, mask).squeeze())

fault(
    "contiguous-only",
    "Uses view to flatten the leading axes, which refuses transposed input.",
    "Not every tensor lies in memory in the order of its axes.",
    source=PYTORCH,
    visible="strides",
)(lambda q, k, v, mask: attention(q.view(-1).view(q.shape), k, v, mask))


@fault(
    "queries-scaled-in-place",
    "Multiplies the queries by the scale in place.",
    "A name ending in an underscore, or an operator like *=, changes the caller's tensor.",
    source=SUBMISSIONS,
    visible="purity",
)
def queries_scaled_in_place(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    q *= q.shape[-1] ** -0.5
    return attention(q, k, v, mask, scale=1.0)


fault(
    "values-returned-for-one-key",
    "Answers the values themselves when there is a single key and a single query.",
    "An equal value is not enough: the caller may change one of the two.",
    source=SPEED,
    visible="purity",
    at={"queries": 1, "keys": 1},
)(lambda q, k, v, mask: v if q.shape[-2] == k.shape[-2] == 1 else attention(q, k, v, mask))

fault(
    "weights-detached",
    "Detaches the attention weights, so queries and keys get no gradient.",
    "Which inputs decide the weights?",
    source=PYTORCH,
    visible="gradient",
)(normalised(lambda s, dim: softmax(s, dim).detach()))

fault(
    "values-detached",
    "Detaches the values.",
    "Ask for the gradient of each of the three inputs.",
    source=PYTORCH,
    visible="gradient",
)(lambda q, k, v, mask: attention(q, k, v.detach(), mask))


class DiagonalOnly(torch.autograd.Function):
    """Softmax with the diagonal of its Jacobian alone."""

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
    "softmax-backward-diagonal-only",
    "The hand-written derivative of the softmax is p (1 - p) for each score by itself.",
    "Raising one score lowers the weight of the other keys.",
    visible="gradient",
)(normalised(DiagonalOnly.apply))

fault(
    "float32-result",
    "Answers in float32 for input of lower precision.",
    "Widening inside is fine; what leaves has the dtype that came in.",
    level="SHOULD",
    source=REPORTS,
    visible="dtype",
    at={"dtype": torch.bfloat16},
)(lambda q, k, v, mask: attention(q.float(), k.float(), v.float(), mask))

fault(
    "softmax-in-float32-left",
    "Takes the softmax in float32 and multiplies by values of lower precision, which raises.",
    "Which dtypes meet in the second product?",
    source=SUBMISSIONS,
    level="SHOULD",
    visible="crash",
    at={"dtype": torch.bfloat16},
)(normalised(lambda s, dim: torch.softmax(s.float(), dim)))


def reused_buffer() -> Any:
    """Attention into one buffer per shape."""
    buffers: dict[torch.Size, Tensor] = {}

    def f(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        result = attention(q, k, v, mask)
        buffer = buffers.setdefault(result.shape, torch.empty_like(result, requires_grad=False))
        return buffer.detach().copy_(result)

    return f


fault(
    "output-buffer-reused",
    "Writes every result of one shape into the same buffer.",
    "Keep an earlier result, call again, and look at the earlier one.",
    source=SPEED,
    visible="purity",
    at=[{}, {"V": draw(2, 3, 5, 6, seed=9)}],
)(reused_buffer())
