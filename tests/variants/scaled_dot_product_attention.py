"""softmax(Q K^T / sqrt(d_k)) V with an optional boolean mask, written in different ways.

All take masks of full shape, 2-D masks and whatever broadcasts. Rows with nothing to attend to
are left unspecified: some answer NaN, some a mean.
"""

import math

import einops
import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import attention_by
from ..parts import wide
from .catalogue import (
    COURSES,
    LIBRARIES,
    NUMERICS,
    PRACTICE,
    TEXTBOOK,
    TORCH,
    Entry,
    registrar,
)

ENTRIES: list[Entry] = []
variant = registrar(ENTRIES, "scaled_dot_product_attention", "attention", attention_by)
AFTER = "scales after the product: float16 scores overflow where Q K^T exceeds 65504"


@variant("masked-fill", "masked_fill with -inf, F.softmax.", TEXTBOOK, note=AFTER)
def masked_fill(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


@variant("where", "torch.where between scores and -inf.", PRACTICE)
def where(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = (q / q.shape[-1] ** 0.5) @ k.mT
    if mask is not None:
        scores = torch.where(mask, scores, -math.inf)
    return F.softmax(scores, dim=-1) @ v


@variant("additive-mask", "Adds a mask of 0 and -inf to the scores.", LIBRARIES)
def additive_mask(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = (q * q.shape[-1] ** -0.5) @ k.mT
    if mask is not None:
        scores = scores + torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, -math.inf)
    e = torch.exp(scores - scores.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True) @ v


@variant("smallest-finite-fill", "Fills with the dtype's most negative finite number.", LIBRARIES)
def smallest_finite_fill(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = (q * q.shape[-1] ** -0.5) @ k.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1) @ v


@variant("functional", "F.scaled_dot_product_attention.", TORCH)
def functional(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    if mask is not None:
        mask = mask.expand(*q.shape[:-1], k.shape[-2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@variant("einsum", "Both products by einsum with named axes.", COURSES, note=AFTER)
def einsum(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(k.size(-1))
    if mask is not None:
        scores = torch.where(mask, scores, torch.tensor(-math.inf, dtype=scores.dtype))
    return torch.einsum("...qk,...kv->...qv", torch.softmax(scores, -1), v)


@variant("einops", "Both products by einops.einsum, softmax upcast.", COURSES, note=AFTER)
def einops_einsum(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = einops.einsum(q, k, "... q d, ... k d -> ... q k") * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -math.inf)
    p = torch.softmax(wide(scores), dim=-1).to(v.dtype)
    return einops.einsum(p, v, "... q k, ... k d -> ... q d")


@variant("float32-inside", "Widened throughout, rounded once.", PRACTICE)
def rounded_once(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = wide(q) @ wide(k).mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return (torch.softmax(scores, dim=-1) @ wide(v)).to(q.dtype)


@variant("both-sides-scaled", "d_k^(-1/4) on queries and on keys.", NUMERICS)
def both_sides_scaled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    quarter = q.shape[-1] ** -0.25
    scores = (q * quarter) @ (k * quarter).mT
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, dim=-1) @ v


@variant("log-sum-exp", "exp(score - logsumexp).", NUMERICS)
def log_sum_exp(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = wide(q) @ wide(k).mT * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    p = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    return (p @ wide(v)).to(v.dtype)


@variant("divided-last", "Divides by the sum after the product with the values.", NUMERICS)
def divided_last(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = wide(q) @ wide(k).mT * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    e = torch.exp(scores - scores.detach().amax(-1, keepdim=True))
    return (e @ wide(v) / e.sum(-1, keepdim=True)).to(v.dtype)


@variant("online", "Keys in chunks with a running maximum, as in flash attention.", NUMERICS)
def online(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    q_scaled, keys, values = wide(q) * q.shape[-1] ** -0.5, wide(k), wide(v)
    top = torch.full_like(q_scaled[..., :1], -math.inf).detach()
    total, result = torch.zeros_like(top), torch.zeros_like(q_scaled[..., :1]) * values[..., :1, :]
    for start in range(0, k.shape[-2], 2):
        chunk = slice(start, start + 2)
        scores = q_scaled @ keys[..., chunk, :].mT
        if mask is not None:
            seen = mask.expand(*q.shape[:-1], k.shape[-2])[..., chunk]
            scores = scores.masked_fill(~seen, -math.inf)
        new = torch.maximum(top, scores.detach().amax(-1, keepdim=True))
        shift = torch.where(new.isinf(), torch.zeros_like(new), new)
        old, e = torch.exp(top - shift), torch.exp(scores - shift)
        total = total * old + e.sum(-1, keepdim=True)
        result = result * old + e @ values[..., chunk, :]
        top = new
    return (result / total).to(v.dtype)


@variant("baddbmm", "Leading axes flattened, torch.baddbmm with the additive mask.", LIBRARIES)
def batched(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    lead, n, m = q.shape[:-2], q.shape[-2], k.shape[-2]
    bias = torch.zeros(*lead, n, m, dtype=q.dtype)
    if mask is not None:
        bias = bias.masked_fill(~mask, -math.inf)
    flat = [t.expand(*lead, *t.shape[-2:]).reshape(-1, *t.shape[-2:]) for t in (q, k, v, bias)]
    scores = torch.baddbmm(flat[3], flat[0], flat[1].mT, alpha=q.shape[-1] ** -0.5)
    return torch.bmm(scores.softmax(-1), flat[2]).reshape(*lead, n, v.shape[-1])


@variant("row-loop", "One query after the other, over the keys it may see.", TEXTBOOK)
def row_loop(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    rows = []
    for i in range(q.shape[-2]):
        scores = (k @ q[..., i, :, None]).squeeze(-1) * q.shape[-1] ** -0.5
        if mask is not None:
            row = mask[..., min(i, mask.shape[-2] - 1), :]
            scores = scores.masked_fill(~row, -math.inf)
        rows.append((scores.softmax(-1).unsqueeze(-2) @ v).squeeze(-2))
    return torch.stack(rows, dim=-2)


@variant("exp2", "Powers of two with log2(e) in the scale.", NUMERICS)
def powers_of_two(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = wide(q) * (math.log2(math.e) / math.sqrt(q.shape[-1])) @ wide(k).mT
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    e = torch.exp2(scores - scores.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True) @ wide(v)).to(v.dtype)
