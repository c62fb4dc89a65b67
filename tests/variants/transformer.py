"""The pre-norm block and the language model, written in different ways.

Blocks are composed of the other files' variants, so that each family of styles is tried as a
whole; the models put those blocks together in different ways.
"""

import math
from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..adapting import block_by, lm_by
from ..parts import wide
from . import embedding, multihead, rmsnorm, rope, swiglu
from .catalogue import COPIES, COURSES, LIBRARIES, PRACTICE, TEXTBOOK, TORCH, Entry, registrar

ENTRIES: list[Entry] = []
Weights = Mapping[str, Tensor]
BlockFunction = Callable[[Tensor, Weights, int, float, int], Tensor]
block_variant = registrar(ENTRIES, "transformer_block", "block", block_by)
model_variant = registrar(ENTRIES, "transformer_lm", "lm", lm_by)


def projections(w: Weights) -> multihead.Four:
    """The four attention weights in the order q, k, v, output."""
    q, k, v, o = (w[f"attn.{n}.weight"] for n in ("q_proj", "k_proj", "v_proj", "output_proj"))
    return q, k, v, o


def feed_forward(w: Weights) -> tuple[Tensor, Tensor, Tensor]:
    """w1, w2, w3 of the feed-forward network."""
    return w["ffn.w1.weight"], w["ffn.w2.weight"], w["ffn.w3.weight"]


def layers(weights: Weights, count: int) -> list[dict[str, Tensor]]:
    """The weights of each layer, in numerical order."""
    found: list[dict[str, Tensor]] = [{} for _ in range(count)]
    for name, value in weights.items():
        if name.startswith("layers."):
            _, number, rest = name.split(".", 2)
            found[int(number)][rest] = value
    return found


@block_variant("textbook", "z = x + attention(norm(x)); z + feed-forward(norm(z)).", TEXTBOOK)
def textbook(x: Tensor, w: Weights, heads: int, theta: float, limit: int) -> Tensor:
    normal = rmsnorm.textbook(x, w["ln1.weight"], 1e-5)
    z = x + multihead.textbook(normal, projections(w), heads, None, theta, limit)
    return z + swiglu.textbook(rmsnorm.textbook(z, w["ln2.weight"], 1e-5), *feed_forward(w))


@block_variant("functional", "Fused torch operators throughout.", TORCH)
def functional(x: Tensor, w: Weights, heads: int, theta: float, limit: int) -> Tensor:
    normal = rmsnorm.functional(x, w["ln1.weight"], 1e-5)
    z = torch.add(x, multihead.fused(normal, projections(w), heads, None, theta, limit))
    normal = rmsnorm.functional(z, w["ln2.weight"], 1e-5)
    return torch.add(z, swiglu.functional(normal, *feed_forward(w)))


@block_variant("einsum", "einsum throughout, rotation by 2x2 matrices.", PRACTICE)
def einsum(x: Tensor, w: Weights, heads: int, theta: float, limit: int) -> Tensor:
    normal = rmsnorm.einsum(x, w["ln1.weight"], 1e-5)
    x = x + multihead.einsum(normal, projections(w), heads, None, theta, limit)
    return x + swiglu.einsum(rmsnorm.einsum(x, w["ln2.weight"], 1e-5), *feed_forward(w))


@block_variant("flattened", "Leading axes flattened to one batch axis, tokens to rows.", PRACTICE)
def flattened(x: Tensor, w: Weights, heads: int, theta: float, limit: int) -> Tensor:
    rows = x.reshape(-1, *x.shape[-2:])
    normal = rmsnorm.flattened(rows, w["ln1.weight"], 1e-5)
    z = rows + multihead.flattened(normal, projections(w), heads, None, theta, limit)
    normal = rmsnorm.flattened(z, w["ln2.weight"], 1e-5)
    return (z + swiglu.flattened(normal, *feed_forward(w))).reshape(x.shape)


@block_variant(
    "token-by-token", "Attention as in decoding, feed-forward as one fused product.", LIBRARIES
)
def token_by_token(x: Tensor, w: Weights, heads: int, theta: float, limit: int) -> Tensor:
    normal = rmsnorm.reciprocal_root(x, w["ln1.weight"], 1e-5)
    z = multihead.token_by_token(normal, projections(w), heads, None, theta, limit) + x
    return swiglu.fused(rmsnorm.gain_after_cast(z, w["ln2.weight"], 1e-5), *feed_forward(w)) + z


@block_variant("float32-inside", "Widened once at the start, rounded once at the end.", PRACTICE)
def rounded_once(x: Tensor, w: Weights, heads: int, theta: float, limit: int) -> Tensor:
    widened = {name: wide(value) for name, value in w.items()}
    return textbook(wide(x), widened, heads, theta, limit).to(x.dtype)


class Norm(nn.Module):
    """RMSNorm with a gain of its own."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        y = wide(x)
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight).to(x.dtype)


class Heads(nn.Module):
    """Causal attention with rotary positions 0, 1, 2, ..."""

    def __init__(self, d_model: int, heads: int, theta: float) -> None:
        super().__init__()
        self.heads, self.theta = heads, theta
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, d_model, bias=False)
        self.v_proj = nn.Linear(d_model, d_model, bias=False)
        self.output_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-2]
        parts = (self.q_proj(x), self.k_proj(x), self.v_proj(x))
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(-3, -2) for t in parts)
        where = torch.arange(n)
        q, k = (rope.complex_product(t, where, self.theta, n) for t in (q, k))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        p = scores.masked_fill(~multihead.visible(n), -math.inf).softmax(-1)
        return self.output_proj((p @ v).transpose(-3, -2).flatten(-2))


class Block(nn.Module):
    """A module whose parameter names are those of the contract."""

    def __init__(self, d_model: int, heads: int, d_ff: int, theta: float) -> None:
        super().__init__()
        self.ln1, self.ln2 = Norm(d_model), Norm(d_model)
        self.attn = Heads(d_model, heads, theta)
        self.ffn = swiglu.SwiGLU(d_model, d_ff)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.ffn(self.ln2(x))


class Model(nn.Module):
    """The language model as a module whose parameter names are those of the contract."""

    def __init__(self, shape: torch.Size, count: int, heads: int, d_ff: int, theta: float) -> None:
        super().__init__()
        self.token_embeddings = nn.Embedding(*shape)
        self.layers = nn.ModuleList(Block(shape[1], heads, d_ff, theta) for _ in range(count))
        self.ln_final = Norm(shape[1])
        self.lm_head = nn.Linear(shape[1], shape[0], bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token_embeddings(ids)
        for block in self.layers:
            x = block(x)
        return self.lm_head(self.ln_final(x))


def build_block(x: Tensor, w: Weights, heads: int, theta: float) -> Block:
    """A float32 block of the sizes that the weights have."""
    return Block(x.shape[-1], heads, w["ffn.w1.weight"].shape[0], theta)


def build_model(w: Weights, count: int, heads: int, theta: float) -> Model:
    """A float32 model of the sizes that the weights have."""
    d_ff = w["layers.0.ffn.w1.weight"].shape[0] if count else 1
    return Model(w["token_embeddings.weight"].shape, count, heads, d_ff, theta)


@block_variant(
    "module", "A float32 module filled by load_state_dict.", COURSES, "must-only", COPIES
)
def module(x: Tensor, w: Weights, heads: int, theta: float, limit: int) -> Tensor:
    block = build_block(x, w, heads, theta)
    block.load_state_dict(dict(w))
    return block(x)


@block_variant(
    "functional-call", "A module called with the given weights as its parameters.", PRACTICE
)
def functional_call(x: Tensor, w: Weights, heads: int, theta: float, limit: int) -> Tensor:
    return torch.func.functional_call(build_block(x, w, heads, theta), dict(w), (x,))


def run_layers(
    block: BlockFunction, ids: Tensor, w: Weights, count: int, heads: int, theta: float, limit: int
) -> Tensor:
    """Embedding, blocks, final norm, head, with the block given."""
    x = embedding.indexing(w["token_embeddings.weight"], ids)
    for own in layers(w, count):
        x = block(x, own, heads, theta, limit)
    return rmsnorm.textbook(x, w["ln_final.weight"], 1e-5) @ w["lm_head.weight"].T


@model_variant("textbook", "A loop over the layers.", TEXTBOOK)
def textbook_model(
    ids: Tensor, w: Weights, count: int, heads: int, theta: float, limit: int
) -> Tensor:
    return run_layers(textbook, ids, w, count, heads, theta, limit)


@model_variant("functional", "Fused torch operators throughout.", TORCH)
def functional_model(
    ids: Tensor, w: Weights, count: int, heads: int, theta: float, limit: int
) -> Tensor:
    x = F.embedding(ids, w["token_embeddings.weight"])
    for own in layers(w, count):
        x = functional(x, own, heads, theta, limit)
    return F.linear(rmsnorm.functional(x, w["ln_final.weight"], 1e-5), w["lm_head.weight"])


@model_variant("flattened", "Leading axes of the ids flattened to one batch axis.", PRACTICE)
def flattened_model(
    ids: Tensor, w: Weights, count: int, heads: int, theta: float, limit: int
) -> Tensor:
    logits = run_layers(flattened, ids.reshape(-1, ids.shape[-1]), w, count, heads, theta, limit)
    return logits.reshape(*ids.shape, logits.shape[-1])


@model_variant("token-by-token", "Attention as in decoding in every layer.", LIBRARIES)
def token_by_token_model(
    ids: Tensor, w: Weights, count: int, heads: int, theta: float, limit: int
) -> Tensor:
    return run_layers(token_by_token, ids, w, count, heads, theta, limit)


@model_variant("prefixes", "Each position's logits from its own prefix alone.", TEXTBOOK)
def prefixes_model(
    ids: Tensor, w: Weights, count: int, heads: int, theta: float, limit: int
) -> Tensor:
    rows = []
    for n in range(1, ids.shape[-1] + 1):
        logits = run_layers(einsum, ids[..., :n], w, count, heads, theta, limit)
        rows.append(logits[..., -1, :])
    return torch.stack(rows, dim=-2)


@model_variant(
    "module", "A float32 module filled by load_state_dict.", COURSES, "must-only", COPIES
)
def module_model(
    ids: Tensor, w: Weights, count: int, heads: int, theta: float, limit: int
) -> Tensor:
    model = build_model(w, count, heads, theta)
    model.load_state_dict(dict(w))
    return model(ids)


@model_variant(
    "functional-call", "A module called with the given weights as its parameters.", PRACTICE
)
def functional_call_model(
    ids: Tensor, w: Weights, count: int, heads: int, theta: float, limit: int
) -> Tensor:
    return torch.func.functional_call(build_model(w, count, heads, theta), dict(w), (ids,))
