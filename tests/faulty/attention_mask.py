"""Faults of scaled dot-product attention that concern the mask."""

import math
from typing import Any

import torch
from torch import Tensor

from ..adapting import attention_by
from ..parts import attention, causal, softmax
from ..witnesses import attention as witness
from ..witnesses import draw
from .catalogue import CONVENTION, PYTORCH, REPORTS, SPEED, SUBMISSIONS, Entry, registrar

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


fault(
    "mask-ignored",
    "Does not use the mask.",
    "Change the value of a masked key: does the output move?",
)(altered(lambda mask, s: torch.ones_like(mask)))

fault(
    "mask-inverted",
    "Takes True to mean hidden.",
    "Which keys may be seen where the mask is True?",
    source=CONVENTION,
    at={"mask": torch.tensor([[True, False, True, False, False]])},
)(altered(lambda mask, s: ~mask))

fault(
    "mask-transposed",
    "Transposes the mask, unseen while it is symmetric.",
    "Which axis of the mask belongs to the queries?",
    at={"queries": 5, "mask": causal(5)},
)(altered(lambda mask, s: mask.mT))

fault(
    "mask-from-first-query",
    "Applies the first query's row of the mask to all queries.",
    "Each query has a row of its own.",
    source=REPORTS,
)(altered(lambda mask, s: mask[..., :1, :]))

fault(
    "mask-from-first-sample",
    "Applies the first sample's mask to the whole batch.",
    "Give each sample another mask.",
)(altered(lambda mask, s: mask[:1] if mask.ndim == s.ndim else mask))

fault(
    "mask-from-first-head",
    "Applies the first head's mask to all heads.",
    "Give each head another mask.",
)(altered(lambda mask, s: mask[..., :1, :, :] if mask.ndim == s.ndim else mask))

fault(
    "mask-on-keys-only",
    "Hides a key when it is hidden from any query.",
    "Each query has a row of its own.",
    at={"queries": 5, "mask": causal(5)},
)(altered(lambda mask, s: mask.all(-2, keepdim=True)))

fault(
    "mask-shifted",
    "Shifts the mask by one key.",
    "Which column of the mask belongs to the first key?",
    at={"queries": 5, "mask": causal(5)},
)(altered(lambda mask, s: torch.cat((torch.ones_like(mask[..., :1]), mask[..., :-1]), -1)))

fault(
    "causal-as-well",
    "Hides later keys in addition to what the mask hides.",
    "Who says that attention is causal?",
    source=SUBMISSIONS,
)(altered(lambda mask, s: mask & causal(max(s.shape[-2:]))[: s.shape[-2], : s.shape[-1]]))

fault(
    "none-means-causal",
    "Hides later keys when no mask is given.",
    "What does a missing mask hide?",
    source=SUBMISSIONS,
    at={"queries": 5, "mask": None},
)(
    lambda q, k, v, mask: attention(
        q, k, v, causal(k.shape[-2])[: q.shape[-2]] if mask is None else mask
    )
)

fault(
    "none-crashes",
    "Uses the mask without asking whether there is one.",
    "The mask is optional.",
    source=SUBMISSIONS,
    visible="crash",
    at=NONE,
)(lambda q, k, v, mask: attention(q, k, v, mask.bool()))

fault(
    "single-query-unmasked",
    "Skips the mask when there is one query.",
    "A single query may have hidden keys too.",
    source=SPEED,
    at={"queries": 1, "mask": torch.tensor([[True, False, True, False, False]])},
)(lambda q, k, v, mask: attention(q, k, v, None if q.shape[-2] == 1 else mask))

fault(
    "square-masks-only",
    "Applies the mask only when it is square.",
    "Queries and keys need not be equally many.",
    source=SPEED,
)(
    lambda q, k, v, mask: attention(
        q, k, v, None if mask is None or mask.shape[-1] != mask.shape[-2] else mask
    )
)

fault(
    "mask-added-as-number",
    "Adds the mask to the scores as 0 and 1.",
    "How much must be added to hide a key?",
    source=PYTORCH,
)(biased(lambda s, mask: s + mask.to(s.dtype)))

fault(
    "mask-multiplied",
    "Multiplies scores by the mask, so hidden keys have score 0.",
    "What weight does a score of 0 get?",
)(biased(lambda s, mask: s * mask))

fault(
    "filled-with-zero",
    "Fills hidden scores with a number just above zero.",
    "What weight does a score of 0 get?",
    source=SUBMISSIONS,
)(biased(lambda s, mask: s.masked_fill(~mask, 1e-9)))

fault(
    "filled-with-minus-100",
    "Fills hidden scores with -100.",
    "Can an allowed score be lower than that?",
    source=SUBMISSIONS,
    at=low_scores(150.0),
)(biased(lambda s, mask: s.masked_fill(~mask, -100.0)))

fault(
    "filled-with-minus-1e4",
    "Fills hidden scores with -10000.",
    "Can an allowed score be lower than that?",
    source=REPORTS,
    at=low_scores(20000.0),
)(biased(lambda s, mask: s.masked_fill(~mask, -1e4)))

fault(
    "filled-with-minus-1e9",
    "Fills hidden scores with -1e9, a number that float16 does not have.",
    "Which fill exists in every floating dtype and is below every score?",
    source=SUBMISSIONS,
    level="SHOULD",
    visible="crash",
    at={"dtype": torch.float16},
)(biased(lambda s, mask: s.masked_fill(~mask, -1e9)))

fault(
    "added-minus-10",
    "Adds -10 to hidden scores.",
    "What weight is left?",
    at={"scale": 2.0},
)(biased(lambda s, mask: s - 10.0 * ~mask))

fault(
    "added-minus-1e4",
    "Adds -10000 to hidden scores, so a large one survives.",
    "Can the difference of two scores be larger than that?",
    source=REPORTS,
    at=low_scores(8000.0),
)(biased(lambda s, mask: s - 1e4 * ~mask))

fault(
    "zero-times-infinity",
    "Multiplies the inverted mask by minus infinity, which is not a number where it is 0.",
    "What is 0 times infinity?",
    source=PYTORCH,
)(biased(lambda s, mask: s + (~mask).to(s.dtype) * -math.inf))

fault(
    "masked-after-softmax",
    "Sets weights of hidden keys to 0 after the softmax.",
    "What is the sum of the weights that are left?",
    source=SUBMISSIONS,
)(
    lambda q, k, v, mask: (
        softmax(scores(q, k), -1).masked_fill(
            torch.zeros((), dtype=torch.bool) if mask is None else ~mask, 0.0
        )
        @ v
    )
)

fault(
    "values-masked",
    "Sets values of keys that are hidden from the last query to 0 instead of hiding scores.",
    "Does a hidden key still take part in the softmax?",
)(
    lambda q, k, v, mask: attention(
        q, k, v if mask is None else v * mask[..., -1, :, None].to(v.dtype)
    )
)


@fault(
    "maximum-over-hidden-keys",
    "Takes the maximum over hidden keys too, so a large hidden score empties the row.",
    "Which scores may enter the maximum?",
    at=low_scores(150.0),
)
def maximum_over_hidden_keys(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    s = scores(q, k)
    e = torch.exp(s - s.amax(-1, keepdim=True))
    e = e if mask is None else e * mask
    return e / e.sum(-1, keepdim=True) @ v


fault(
    "full-shape-only",
    "Indexes the scores with the mask, which needs the full shape.",
    "A (queries, keys) mask holds for every batch element and head.",
    source=SUBMISSIONS,
    visible="crash",
    at={"mask": "plane"},
)(biased(lambda s, mask: s.index_put((~mask,), torch.tensor(-math.inf))))

fault(
    "head-axis-always-added",
    "Adds a head axis to the mask whatever its axes are.",
    "Count the axes of the mask before you add one.",
    source=SUBMISSIONS,
    visible="crash",
    at={"mask": "plane"},
)(altered(lambda mask, s: mask.unsqueeze(1)))

fault(
    "head-axis-added-square",
    "Adds an axis in the middle of a 2-D mask, which runs when sizes agree.",
    "Which axis of the mask meets which axis of the scores?",
    source=SUBMISSIONS,
    at={"lead": (2, 5), "queries": 5, "mask": causal(5)},
)(altered(lambda mask, s: mask.unsqueeze(1) if mask.ndim == 2 else mask))

fault(
    "mask-viewed-as-scores",
    "Gives the mask the shape of the scores, which fails when it has fewer elements.",
    "Fewer elements that hold for several places: what is that called?",
    source=SUBMISSIONS,
    visible="crash",
    at={"mask": "plane"},
)(altered(lambda mask, s: mask.reshape(s.shape)))


@fault(
    "mask-inverted-in-place",
    "Inverts the caller's mask in place.",
    "A name ending in an underscore changes the caller's tensor.",
    source=PYTORCH,
    visible="purity",
)
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
    "Keeps the first mask of each shape for later calls.",
    "Call it twice with different masks of one shape.",
    source=SPEED,
    visible="state",
    at=[
        {"mask": torch.tensor([[True, True, False, False, False]])},
        {"mask": torch.tensor([[False, False, True, True, True]])},
    ],
)(mask_by_shape())

fault(
    "leak-through-small-weight",
    "Gives hidden keys a weight of one percent.",
    "A hidden key's weight is exactly zero.",
    at={"V": draw(2, 3, 5, 6, seed=2, scale=5.0)},
)(
    lambda q, k, v, mask: (
        0.99 * attention(q, k, v, mask) + 0.01 * attention(q, k, v)
        if mask is not None
        else attention(q, k, v)
    )
)
