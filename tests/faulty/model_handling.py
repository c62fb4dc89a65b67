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
from .catalogue import CONVENTION, PYTORCH, REPORTS, SPEED, SUBMISSIONS, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "transformer_lm", "lm", lm_by)
RIGHT = Model()


def attending(pieces: Attention) -> Model:
    """The model with other pieces of attention in every block."""
    return Model(block=Block(attention=pieces))


def built_of(**parts: Any) -> Model:
    """The model with other pieces in every block."""
    return Model(block=Block(**parts))


fault(
    "post-norm",
    "Normalises after the residual additions in every block.",
    "Follow the residual stream: may a norm stand on it?",
    source=CONVENTION,
)(built_of(wire=lambda x, n1, a, n2, f: n2(n1(x + a(x)) + f(n1(x + a(x))))))

fault(
    "parallel-blocks",
    "Runs attention and feed-forward network side by side.",
    "What does the second sublayer see?",
    source=CONVENTION,
)(built_of(wire=lambda x, n1, a, n2, f: x + a(n1(x)) + f(n2(x))))

fault(
    "gains-ignored",
    "Does not apply the gains of the blocks' norms.",
    "Gains of all ones hide this.",
)(built_of(norm=lambda x, g, eps: rmsnorm(x, torch.ones_like(g), eps)))

fault(
    "feed-forward-gate-swapped",
    "Puts the activation on W3 x instead of W1 x.",
    "Which of the two weights belongs to the gate?",
    source=CONVENTION,
)(built_of(feed=lambda x, w1, w2, w3: swiglu(x, w3, w2, w1)))

fault(
    "feed-forward-gelu",
    "Gates with GELU.",
    "Which variant of GLU is this?",
    source=CONVENTION,
)(built_of(feed=lambda x, w1, w2, w3: linear(F.gelu(linear(x, w1)) * linear(x, w3), w2)))

fault(
    "norm-eps-large",
    "Uses 1e-1 for eps in the blocks.",
    "Which eps does the course text give?",
)(built_of(eps=0.1))

fault(
    "mask-of-full-length",
    "Builds the mask for the longest sequence and does not cut it.",
    "How many tokens are there in this call?",
    source=REPORTS,
    visible="crash",
)(attending(Attention(mask=lambda n, limit: causal(limit))))

fault(
    "positions-meet-heads",
    "Repeats positions over the batch and meets them with the heads: only batch 1 or batch = "
    "heads runs.",
    "Which axis of the positions meets which axis of the vectors?",
    source=SUBMISSIONS,
    visible="crash",
)(attending(Attention(place=lambda p, x: torch.arange(x.shape[-2]).repeat(len(x), 1))))


def short_table(t: Tensor, p: Tensor, theta: float, limit: int) -> Tensor:
    """Rotation by a table that lacks the last position."""
    return turn(t, angles(torch.arange(limit - 1), t.shape[-1], theta)[p])


fault(
    "table-one-short",
    "Builds a rotary table that lacks the last position.",
    "Try a sequence as long as the context.",
    source=REPORTS,
    visible="crash",
    at={"seq": 9, "limit": 9},
)(attending(Attention(rotate_q=short_table, rotate_k=short_table)))


def adapted(f: Function) -> Function:
    """f(right, ids, weights, layers, heads, theta, limit), where right is the plain model."""
    return lambda *arguments: f(lambda *own: language_model(*own, RIGHT), *arguments)


fault(
    "batch-of-one-only",
    "Views the ids as one sequence, which fails for larger batches.",
    "Try two sequences at once.",
    source=SUBMISSIONS,
    visible="crash",
)(adapted(lambda right, ids, *more: right(ids.reshape(1, ids.shape[-1]), *more)))

fault(
    "ids-must-fill-context",
    "Shapes the ids as rows of the context's length.",
    "May a sequence be shorter than the context?",
    source=SUBMISSIONS,
    visible="crash",
)(
    adapted(
        lambda right, ids, w, n, h, theta, limit: right(
            ids.reshape(-1, limit), w, n, h, theta, limit
        )
    )
)

fault(
    "padded-to-context",
    "Pads the ids with token 0 up to the context's length and answers all of it.",
    "For how many positions are predictions wanted?",
    source=SPEED,
    visible="shape",
)(
    adapted(
        lambda right, ids, w, n, h, theta, limit: right(
            F.pad(ids, (0, limit - ids.shape[-1])), w, n, h, theta, limit
        )
    )
)

fault(
    "batch-shares-first-sequence",
    "Runs the first sequence and repeats its logits for the batch.",
    "Try two different sequences in one batch.",
    source=SPEED,
)(adapted(lambda right, ids, *more: right(ids[:1], *more).expand(len(ids), -1, -1)))


@adapted
def weights_taken_out(right: Function, ids: Tensor, w: Any, *more: Any) -> Tensor:
    own = {name: w.pop(name) for name in list(w)}
    return right(ids, own, *more)


fault(
    "weights-taken-out",
    "Takes the weights out of the caller's dictionary.",
    "What does the caller find in the dictionary afterwards?",
    source=SUBMISSIONS,
    level="SHOULD",
    visible="purity",
)(weights_taken_out)


@adapted
def embedding_overwritten(right: Function, ids: Tensor, w: Any, *more: Any) -> Tensor:
    result = right(ids, dict(w), *more)
    w["token_embeddings.weight"].detach().mul_(0.5)
    return result


fault(
    "embedding-overwritten",
    "Scales the caller's embedding table in place.",
    "A name ending in an underscore changes the caller's tensor.",
    source=PYTORCH,
    visible="purity",
)(embedding_overwritten)


def model_kept() -> Function:
    """A model that is built once for each number of layers."""
    kept: dict[int, Any] = {}
    return adapted(
        lambda right, ids, w, n, *more: right(ids, kept.setdefault(n, dict(w)), n, *more)
    )


fault(
    "first-weights-kept",
    "Keeps the weights of the first call for all later ones with as many layers.",
    "Call it twice with different weights.",
    source=SPEED,
    visible="state",
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


fault(
    "first-table-kept",
    "Builds one rotary table at the first call, on the class, and uses it for every later model.",
    "What do two models of different theta in one process get?",
    source=SUBMISSIONS,
    visible="state",
    at=[{"theta": 500.0}, {"theta": 30.0}],
)(table_kept())


def tokens_remembered() -> Function:
    """A model that starts with what the last call has left in its cache."""
    last: dict[torch.Size, Tensor] = {}

    def f(right: Function, ids: Tensor, *more: Any) -> Tensor:
        before = last.get(ids.shape[:-1], ids[..., :0])
        last[ids.shape[:-1]] = ids
        return right(torch.cat((before, ids), -1), *more)[..., before.shape[-1] :, :]

    return adapted(f)


fault(
    "cache-not-cleared",
    "Continues the sequence of the last call instead of starting anew.",
    "What does a second, unrelated sequence see?",
    source=REPORTS,
    visible="state",
    at=[{}, {"seq": 3}],
)(tokens_remembered())
