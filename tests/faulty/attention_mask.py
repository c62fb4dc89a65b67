"""Faults of scaled dot-product attention that concern the mask."""

import math
from typing import Any

import torch
from torch import Tensor

from ..adapting import attention_by
from ..parts import attention, causal, softmax
from ..witnesses import attention as witness
from ..witnesses import draw
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "scaled_dot_product_attention", "attention", attention_by)
SQUARE = {"queries": 5}
NONE = {"mask": None}


def low_scores(size: float) -> Any:
    """Allowed keys score about -size, the masked last one +size, with values that differ."""

    def make() -> dict[str, Any]:
        arguments = witness(queries=2, keys=3, mask="plane")
        k = torch.full((2, 3, 3, 8), -1.0)
        k[..., 2, :] = 1.0
        k[..., 1, 0] = -1.0 - 0.5 / size
        allowed = torch.tensor([[True, True, False]]).repeat(2, 1)
        q = torch.full((2, 3, 2, 8), size / 8**0.5)
        return arguments | {"Q": q, "K": k, "mask": allowed}

    return make


def scores(q: Tensor, k: Tensor) -> Tensor:
    """Scaled scores, (..., queries, keys)."""
    return (q * q.shape[-1] ** -0.5) @ k.mT


def altered(change: Any) -> Any:
    """Attention with change(mask, scores) for the mask where one is given."""

    def f(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return attention(q, k, v, None if mask is None else change(mask, scores(q, k)))

    return f


def biased(change: Any) -> Any:
    """Attention whose scores are change(scores, mask) where a mask is given."""

    def f(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        s = scores(q, k)
        return softmax(s if mask is None else change(s, mask), -1) @ v

    return f


fault("mask-ignored")(altered(lambda mask, s: torch.ones_like(mask)))

fault("mask-inverted", at={"mask": torch.tensor([[True, False, True, False, False]])})(
    altered(lambda mask, s: ~mask)
)

fault("mask-transposed", at={"queries": 5, "mask": causal(5)})(altered(lambda mask, s: mask.mT))

fault("mask-from-first-query")(altered(lambda mask, s: mask[..., :1, :]))

fault("mask-from-first-sample")(altered(lambda mask, s: mask[:1] if mask.ndim == s.ndim else mask))

fault("mask-from-first-head")(
    altered(lambda mask, s: mask[..., :1, :, :] if mask.ndim == s.ndim else mask)
)

fault("mask-on-keys-only", at={"queries": 5, "mask": causal(5)})(
    altered(lambda mask, s: mask.all(-2, keepdim=True))
)

fault("mask-shifted", at={"queries": 5, "mask": causal(5)})(
    altered(lambda mask, s: torch.cat((torch.ones_like(mask[..., :1]), mask[..., :-1]), -1))
)

fault("causal-as-well")(
    altered(lambda mask, s: mask & causal(max(s.shape[-2:]))[: s.shape[-2], : s.shape[-1]])
)

fault("none-means-causal", at={"queries": 5, "mask": None})(
    lambda q, k, v, mask: attention(
        q, k, v, causal(k.shape[-2])[: q.shape[-2]] if mask is None else mask
    )
)

fault("none-crashes", at=NONE)(lambda q, k, v, mask: attention(q, k, v, mask.bool()))

fault(
    "single-query-unmasked",
    at={"queries": 1, "mask": torch.tensor([[True, False, True, False, False]])},
)(lambda q, k, v, mask: attention(q, k, v, None if q.shape[-2] == 1 else mask))

fault("square-masks-only")(
    lambda q, k, v, mask: attention(
        q, k, v, None if mask is None or mask.shape[-1] != mask.shape[-2] else mask
    )
)

fault("mask-added-as-number")(biased(lambda s, mask: s + mask.to(s.dtype)))

fault("mask-multiplied")(biased(lambda s, mask: s * mask))

fault("filled-with-zero")(biased(lambda s, mask: s.masked_fill(~mask, 1e-9)))

fault("filled-with-minus-100", at=low_scores(150.0))(
    biased(lambda s, mask: s.masked_fill(~mask, -100.0))
)

fault("filled-with-minus-1e4", at=low_scores(20000.0))(
    biased(lambda s, mask: s.masked_fill(~mask, -1e4))
)

fault("filled-with-minus-1e9", at=low_scores(2e9))(
    biased(lambda s, mask: s.masked_fill(~mask, -1e9))
)

fault("added-minus-10", at={"scale": 2.0})(biased(lambda s, mask: s - 10.0 * ~mask))

fault("added-minus-1e4", at=low_scores(8000.0))(biased(lambda s, mask: s - 1e4 * ~mask))

fault("zero-times-infinity")(biased(lambda s, mask: s + (~mask).to(s.dtype) * -math.inf))

fault("masked-after-softmax")(
    lambda q, k, v, mask: (
        softmax(scores(q, k), -1).masked_fill(
            torch.zeros((), dtype=torch.bool) if mask is None else ~mask, 0.0
        )
        @ v
    )
)

fault("values-masked")(
    lambda q, k, v, mask: attention(
        q, k, v if mask is None else v * mask[..., -1, :, None].to(v.dtype)
    )
)


@fault("maximum-over-hidden-keys", at=low_scores(500.0))
def maximum_over_hidden_keys(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    s = scores(q, k)
    e = torch.exp(s - s.amax(-1, keepdim=True))
    e = e if mask is None else e * mask
    return e / e.sum(-1, keepdim=True) @ v


fault("full-shape-only", at={"mask": "plane"})(
    biased(lambda s, mask: s.index_put((~mask,), torch.tensor(-math.inf, dtype=s.dtype)))
)

fault("head-axis-always-added", at={"mask": "plane"})(altered(lambda mask, s: mask.unsqueeze(1)))

fault("head-axis-added-square", at={"lead": (2, 5), "queries": 5, "mask": causal(5)})(
    altered(lambda mask, s: mask.unsqueeze(1) if mask.ndim == 2 else mask)
)

fault("mask-viewed-as-scores", at={"mask": "plane"})(altered(lambda mask, s: mask.reshape(s.shape)))


@fault("mask-inverted-in-place")
def mask_inverted_in_place(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    s = scores(q, k)
    if mask is not None:
        s = s.masked_fill(mask.logical_not_(), -math.inf)
    return softmax(s, -1) @ v


def mask_by_shape() -> Any:
    """Attention that keeps the first mask of each shape."""
    kept: dict[torch.Size, Tensor] = {}

    def f(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        own = None if mask is None else kept.setdefault(mask.shape, mask.clone())
        return attention(q, k, v, own)

    return f


fault(
    "mask-kept-by-shape",
    at=[
        {"mask": torch.tensor([[True, True, False, False, False]])},
        {"mask": torch.tensor([[False, False, True, True, True]])},
    ],
)(mask_by_shape())

fault("leak-through-small-weight", at={"V": draw(2, 3, 5, 6, seed=2, scale=5.0)})(
    lambda q, k, v, mask: (
        0.99 * attention(q, k, v, mask) + 0.01 * attention(q, k, v)
        if mask is not None
        else attention(q, k, v)
    )
)


@fault("mask-row-of-each-query", at={"mask": torch.tensor([[[True, False, True, True, False]]])})
def mask_row_of_each_query(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return attention(q, k, v, None)
    rows = torch.stack([mask[..., i, :] for i in range(q.shape[-2])], dim=-2)
    return attention(q, k, v, rows)
