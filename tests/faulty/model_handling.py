"""Faults of the language model: wrong blocks, tables and masks, shapes, memory, state."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import lm_by
from ..parts import (
    Attention,
    Block,
    Function,
    Model,
    angles,
    causal,
    language_model,
    linear,
    rmsnorm,
    swiglu,
    turn,
)
from ..witnesses import lm as witness
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "transformer_lm", "lm", lm_by)
RIGHT = Model()


def attending(pieces: Attention) -> Model:
    """The model with other pieces of attention in every block."""
    return Model(block=Block(attention=pieces))


def built_of(**parts: Any) -> Model:
    """The model with other pieces in every block."""
    return Model(block=Block(**parts))


fault("post-norm")(built_of(wire=lambda x, n1, a, n2, f: n2(n1(x + a(x)) + f(n1(x + a(x))))))

fault("parallel-blocks")(built_of(wire=lambda x, n1, a, n2, f: x + a(n1(x)) + f(n2(x))))

fault("gains-ignored")(built_of(norm=lambda x, g, eps: rmsnorm(x, torch.ones_like(g), eps)))

fault("feed-forward-gate-swapped")(built_of(feed=lambda x, w1, w2, w3: swiglu(x, w3, w2, w1)))

fault("feed-forward-gelu")(
    built_of(feed=lambda x, w1, w2, w3: linear(F.gelu(linear(x, w1)) * linear(x, w3), w2))
)

fault("norm-eps-large")(built_of(eps=0.1))

fault("mask-of-full-length")(attending(Attention(mask=lambda n, limit: causal(limit))))

fault("positions-meet-heads")(
    attending(Attention(place=lambda p, x: torch.arange(x.shape[-2]).repeat(len(x), 1)))
)


def short_table(t: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    """Rotation by a table that lacks the last position."""
    return turn(t, angles(torch.arange(limit - 1), t.shape[-1], theta)[p])


fault("table-one-short", at={"seq": 9, "limit": 9})(
    attending(Attention(rotate_q=short_table, rotate_k=short_table))
)


def adapted(f: Function) -> Function:
    """f(right, ids, weights, layers, heads, theta, limit), where right is the plain model."""
    return lambda *arguments: f(lambda *own: language_model(*own, RIGHT), *arguments)


fault("batch-of-one-only")(
    adapted(lambda right, ids, *more: right(ids.reshape(1, ids.shape[-1]), *more))
)

fault("ids-must-fill-context")(
    adapted(
        lambda right, ids, w, n, h, theta, limit: right(
            ids.reshape(-1, limit), w, n, h, theta, limit
        )
    )
)

fault("padded-to-context")(
    adapted(
        lambda right, ids, w, n, h, theta, limit: right(
            F.pad(ids, (0, limit - ids.shape[-1])), w, n, h, theta, limit
        )
    )
)

fault("batch-shares-first-sequence")(
    adapted(lambda right, ids, *more: right(ids[:1], *more).expand(len(ids), -1, -1))
)


@adapted
def weights_taken_out(right: Function, ids: Tensor, w: Any, *more: Any) -> Tensor:
    own = {name: w.pop(name) for name in list(w)}
    return right(ids, own, *more)


fault("weights-taken-out")(weights_taken_out)


@adapted
def embedding_overwritten(right: Function, ids: Tensor, w: Any, *more: Any) -> Tensor:
    result = right(ids, dict(w), *more)
    w["token_embeddings.weight"].detach().mul_(0.5)
    return result


fault("embedding-overwritten")(embedding_overwritten)


def model_kept() -> Function:
    """A model that is built once for each number of layers."""
    kept: dict[int, Any] = {}
    return adapted(
        lambda right, ids, w, n, *more: right(ids, kept.setdefault(n, dict(w)), n, *more)
    )


fault(
    "first-weights-kept",
    at=lambda: [witness(), witness() | {"weights": shuffled(witness()["weights"])}],
)(model_kept())


def shuffled(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Other weights of the same shapes: rows in reverse."""
    return {name: value.flip(0) for name, value in weights.items()}


def table_kept() -> Model:
    """The model with the angles that the first call has made."""
    kept: dict[str, Tensor] = {}

    def rotate(t: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
        table = angles(torch.arange(limit), t.shape[-1], theta)
        return turn(t, kept.setdefault("", table)[p])

    return attending(Attention(rotate_q=rotate, rotate_k=rotate))


fault("first-table-kept", at=[{"theta": 500.0}, {"theta": 30.0}])(table_kept())


def tokens_remembered() -> Function:
    """A model that starts with what the last call has left in its cache."""
    last: dict[torch.Size, Tensor] = {}

    def f(right: Function, ids: Tensor, *more: Any) -> Tensor:
        before = last.get(ids.shape[:-1], ids[..., :0])
        last[ids.shape[:-1]] = ids
        return right(torch.cat((before, ids), -1), *more)[..., before.shape[-1] :, :]

    return adapted(f)


fault("cache-not-cleared", at=[{}, {"seq": 3}])(tokens_remembered())


@fault("two-axes-only", at={"lead": ()})
@adapted
def two_axes_only(right: Function, ids: Tensor, *more: Any) -> Tensor:
    batch, sequence = ids.shape
    return right(ids.reshape(batch, sequence), *more)


@fault("largest-id-asked-for", at={"lead": (0,)})
@adapted
def largest_id_asked_for(right: Function, ids: Tensor, w: Any, *more: Any) -> Tensor:
    if int(ids.max()) >= len(w["token_embeddings.weight"]):
        raise IndexError("a token that is not in the vocabulary")
    return right(ids, w, *more)


class Consuming(torch.autograd.Function):
    """A linear map whose right derivative is written over the input that it has kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.x, ctx.w = x.clone(), w
        return x @ w.mT

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        for_weights = gradients[0].flatten(0, -2).mT @ ctx.x.flatten(0, -2)
        return ctx.x.copy_(gradients[0] @ ctx.w).clone(), for_weights


fault(
    "backward-consumes-saved-tensors",
    wrt=("weights.lm_head.weight",),
    note="the second backward pass is wrong",
)(Model(head=lambda x, weights: Consuming.apply(x, weights["lm_head.weight"])))
