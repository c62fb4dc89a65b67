"""Faults of scaled dot-product attention: scores, softmax, values, and how they are handled."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import attention_by
from ..parts import attention, softmax
from ..witnesses import draw
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "scaled_dot_product_attention", "attention", attention_by)
LARGE = {"scale": 20.0, "mask": None}


def scaled(by: Any) -> Any:
    """Attention with scores multiplied by by(q, k, v)."""
    return lambda q, k, v, mask: attention(q, k, v, mask, scale=by(q, k, v))


def normalised(by: Any) -> Any:
    """Attention with by(scores, axis) for the softmax."""
    return lambda q, k, v, mask: attention(q, k, v, mask, normalise=by)


fault("no-scale")(scaled(lambda q, k, v: 1.0))

fault("scale-not-rooted")(scaled(lambda q, k, v: 1 / q.shape[-1]))

fault("scale-multiplied")(scaled(lambda q, k, v: q.shape[-1] ** 0.5))

fault("scale-from-values")(scaled(lambda q, k, v: v.shape[-1] ** -0.5))

fault("scale-from-length")(scaled(lambda q, k, v: k.shape[-2] ** -0.5))

fault("scale-always-8")(scaled(lambda q, k, v: 1 / 8))

fault("scale-root-truncated")(scaled(lambda q, k, v: 1 / int(math.sqrt(q.shape[-1]))))

fault("softmax-over-queries", at={"mask": None})(normalised(lambda s, dim: softmax(s, -2)))

fault("softmax-axis-one", at={"mask": None})(normalised(lambda s, dim: softmax(s, 1)))

fault("no-softmax", at={"mask": None})(normalised(lambda s, dim: s))

fault("not-normalised")(normalised(lambda s, dim: torch.exp(s - s.amax(dim, keepdim=True))))

fault("sigmoid-weights")(normalised(lambda s, dim: torch.sigmoid(s)))

fault("no-shift", at=LARGE)(
    normalised(lambda s, dim: torch.exp(s) / torch.exp(s).sum(dim, keepdim=True))
)

fault("global-maximum", at=LARGE)(
    normalised(
        lambda s, dim: torch.exp(s - s.max()) / torch.exp(s - s.max()).sum(dim, keepdim=True)
    )
)

fault("scores-clamped", at=LARGE)(normalised(lambda s, dim: softmax(s.clamp(-50, 50), dim)))

fault("one-added-to-sum")(
    normalised(lambda s, dim: torch.exp(s) / (1 + torch.exp(s).sum(dim, keepdim=True)))
)

fault("scores-in-bfloat16", at={"scale": 3.0})(
    normalised(lambda s, dim: softmax(s.bfloat16().to(s.dtype), dim))
)

fault("queries-and-keys-swapped", at={"queries": 5, "mask": None})(
    lambda q, k, v, mask: attention(k, q, v, mask)
)

fault("keys-and-values-swapped", at={"d_v": 8})(lambda q, k, v, mask: attention(q, v, k, mask))

fault("keys-as-values", at={"d_v": 8})(lambda q, k, v, mask: attention(q, k, k, mask))


def one_hot_values(k: Tensor) -> Tensor:
    """Values that make the output the weights: row i has a one at i."""
    return torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-1], -1)


fault("weights-answered")(lambda q, k, v, mask: attention(q, k, one_hot_values(k), mask))

fault("weights-answered-square", at={"keys": 5, "d_v": 5})(
    lambda q, k, v, mask: attention(q, k, one_hot_values(k), mask)
)

fault("cosine-scores")(
    lambda q, k, v, mask: attention(F.normalize(q, dim=-1), F.normalize(k, dim=-1), v, mask)
)

fault("residual-inside", at={"d_v": 8})(lambda q, k, v, mask: q + attention(q, k, v, mask))

fault("dropout-active")(normalised(lambda s, dim: F.dropout(softmax(s, dim), 0.5, training=True)))


@fault("key-remainder-dropped", at={"keys": 6, "mask": None})
def key_remainder_dropped(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    n = max(k.shape[-2] // 4 * 4, min(k.shape[-2], 4))
    mask = None if mask is None else mask[..., :n]
    return attention(q, k[..., :n, :], v[..., :n, :], mask)


@fault("online-without-rescaling", at={"keys": 8, "scale": 2.0, "mask": None})
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


fault("four-axes-only", at={"lead": (2,)})(
    lambda q, k, v, mask: attention(torch.einsum("bhsd->bhsd", q), k, v, mask)
)

fault("three-axes-only")(lambda q, k, v, mask: attention(torch.einsum("bsd->bsd", q), k, v, mask))


@fault("transposes-axes-one-and-two")
def transposes_axes_one_and_two(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = q @ k.transpose(1, 2) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return softmax(scores, -1) @ v


fault("output-shaped-like-queries")(lambda q, k, v, mask: attention(q, k, v, mask).reshape(q.shape))

fault("equal-lengths-assumed")(
    lambda q, k, v, mask: attention(q, k.reshape(*q.shape[:-1], -1), v, mask)
)

fault("drops-size-one-axes", at={"queries": 1})(
    lambda q, k, v, mask: attention(q, k, v, mask).squeeze()
)

fault("contiguous-only")(lambda q, k, v, mask: attention(q.view(-1).view(q.shape), k, v, mask))


@fault("queries-scaled-in-place")
def queries_scaled_in_place(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    q *= q.shape[-1] ** -0.5
    return attention(q, k, v, mask, scale=1.0)


fault("values-returned-for-one-key", at={"queries": 1, "keys": 1})(
    lambda q, k, v, mask: v if q.shape[-2] == k.shape[-2] == 1 else attention(q, k, v, mask)
)

fault("weights-detached")(normalised(lambda s, dim: softmax(s, dim).detach()))

fault("values-detached")(lambda q, k, v, mask: attention(q, k, v.detach(), mask))


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


fault("softmax-backward-diagonal-only")(normalised(DiagonalOnly.apply))

fault("float32-result", at={"dtype": torch.bfloat16})(
    lambda q, k, v, mask: attention(q.float(), k.float(), v.float(), mask)
)

fault("softmax-in-float32-left", at={"dtype": torch.bfloat16})(
    normalised(lambda s, dim: torch.softmax(s.float(), dim))
)


def reused_buffer() -> Any:
    """Attention into one buffer per shape."""
    buffers: dict[torch.Size, Tensor] = {}

    def f(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        result = attention(q, k, v, mask)
        buffer = buffers.setdefault(result.shape, torch.empty_like(result, requires_grad=False))
        return buffer.detach().copy_(result)

    return f


fault("output-buffer-reused", at=[{}, {"V": draw(2, 3, 5, 6, seed=9)}])(reused_buffer())
