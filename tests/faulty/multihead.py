"""Faults of causal multi-head self-attention, with and without rotary positions.

The wrong pieces come from `pieces` and `rotations`; here stands what concerns the component as a
whole.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import mha_by, mha_rope_by
from ..parts import Attention, attention, causal, keep, self_attention
from ..witnesses import weight
from .catalogue import (
    PYTORCH,
    SPEED,
    SUBMISSIONS,
    Entry,
    Function,
    registrar,
)
from .pieces import ATTENTION, register
from .rotations import ROTATIONS

ENTRIES: list[Entry] = []
plain = registrar(ENTRIES, "multihead_self_attention", "mha", mha_by)
turned = registrar(ENTRIES, "multihead_self_attention_with_rope", "mha-rope", mha_rope_by)
RIGHT = Attention()

register(plain, ATTENTION, keep)
register(turned, [*ATTENTION, *ROTATIONS], keep)


def both(name: str, sentence: str, hint: str, **more: Any) -> Callable[[Function], Function]:
    """Registers f(x, weights, heads, *positions...) for both components."""

    def describe(f: Function) -> Function:
        plain(name, sentence, hint, **more)(f)
        turned(name, sentence, hint, **more)(f)
        return f

    return describe


def around(before: Function = keep, after: Function = keep) -> Function:
    """Right attention of before(x), its result passed through after(result, x)."""
    return lambda x, w, heads, *more: after(self_attention(before(x), w, heads, RIGHT, *more), x)


both(
    "residual-inside",
    "Adds the input to the output.",
    "The residual connection belongs to the block.",
)(around(after=lambda y, x: y + x))

both(
    "input-normalised",
    "Normalises the input first.",
    "Normalisation belongs to the block.",
)(around(before=lambda x: F.rms_norm(x, x.shape[-1:], None, 1e-5)))

both(
    "dropout-active",
    "Applies dropout to the result at every call.",
    "Does the same input give the same output twice?",
    source=PYTORCH,
)(around(after=lambda y, x: F.dropout(y, 0.5, training=True)))

both(
    "drops-size-one-axes",
    "Squeezes the result, which loses every axis of size 1.",
    "Try a batch of one and a single token.",
    visible="shape",
    at={"lead": (1,)},
)(around(after=lambda y, x: y.squeeze()))

both(
    "three-axes-only",
    "Unpacks batch, sequence, features.",
    "A single sequence without a batch axis is legal too.",
    source=SUBMISSIONS,
    level="SHOULD",
    visible="crash",
    at={"lead": ()},
)(around(before=lambda x: torch.einsum("bsd->bsd", x)))

both(
    "batch-of-one-only",
    "Views the input as one sequence, which fails for larger batches.",
    "Try two sequences at once.",
    source=SUBMISSIONS,
    visible="crash",
)(around(before=lambda x: x.reshape(1, x.shape[-2], x.shape[-1])))

both(
    "batch-as-one-sequence",
    "Attends over the whole batch as if it were one long sequence.",
    "Change one sequence of a batch: may another one's output move?",
    source=PYTORCH,
)(
    lambda x, w, heads, *more: self_attention(
        x.flatten(0, -2), w, heads, RIGHT, None, *more[1:]
    ).reshape(x.shape)
)

both(
    "contiguous-only",
    "Uses view on the input, which refuses a transposed one.",
    "Not every tensor lies in memory in the order of its axes.",
    source=PYTORCH,
    visible="strides",
)(around(before=lambda x: x.view(-1).view(x.shape)))

both(
    "input-detached",
    "Detaches the input, so that no gradient reaches earlier layers.",
    "Ask for the gradient with respect to the input.",
    source=PYTORCH,
    visible="gradient",
)(around(before=lambda x: x.detach()))

both(
    "weights-detached",
    "Detaches the attention weights, so queries and keys get no gradient.",
    "Which inputs decide the weights?",
    source=PYTORCH,
    visible="gradient",
)(
    lambda x, w, heads, *more: self_attention(
        x,
        w,
        heads,
        replace(RIGHT, attend=lambda q, k, *rest: attention(q.detach(), k.detach(), *rest)),
        *more,
    )
)

both(
    "output-weight-copied",
    "Copies the output weight without a graph, so that it cannot be trained.",
    "Ask for the gradient of every weight.",
    source=SUBMISSIONS,
    level="SHOULD",
    visible="gradient",
    wrt=("o_proj_weight",),
)(
    lambda x, w, heads, *more: self_attention(
        x, (*w[:3], w[3].detach().clone()), heads, RIGHT, *more
    )
)

both(
    "float32-result",
    "Answers in float32 for input of lower precision.",
    "Widening inside is fine; what leaves has the dtype that came in.",
    level="SHOULD",
    visible="dtype",
    at={"dtype": torch.bfloat16},
)(
    lambda x, w, heads, *more: self_attention(
        x.float(), tuple(m.float() for m in w), heads, RIGHT, *more
    )
)

both(
    "single-token-shortcut",
    "Answers the input itself for a single token, as if there were nothing to attend to.",
    "A single token attends to itself, through all projections.",
    source=SPEED,
    at={"seq": 1},
)(
    lambda x, w, heads, *more: (
        x.clone() if x.shape[-2] == 1 else self_attention(x, w, heads, RIGHT, *more)
    )
)

both(
    "mask-per-sample-not-per-head",
    "Repeats the mask over the batch and meets it with the heads, which runs when both agree.",
    "Which axes does the mask have, which the scores?",
    source=SUBMISSIONS,
    visible="crash",
)(
    lambda x, w, heads, *more: self_attention(
        x, w, heads, replace(RIGHT, mask=lambda n, limit: causal(n).expand(len(x), n, n)), *more
    )
)

both(
    "mask-of-fixed-size",
    "Has a causal mask for four tokens and uses its corner.",
    "How long can a sequence get?",
    source=SUBMISSIONS,
    visible="crash",
)(
    lambda x, w, heads, *more: self_attention(
        x, w, heads, replace(RIGHT, mask=lambda n, limit: causal(4)[:n, :n]), *more
    )
)


@both(
    "input-overwritten",
    "Adds its result to the input in place and answers the result.",
    "An operator like += changes the caller's tensor.",
    source=SUBMISSIONS,
    visible="purity",
)
def input_overwritten(x: Tensor, w: Any, heads: int, *more: Any) -> Tensor:
    result = self_attention(x, w, heads, RIGHT, *more)
    x += result
    return result


def first_weights_kept() -> Function:
    """A layer that is built once for each width."""
    kept: dict[int, Any] = {}
    return lambda x, w, heads, *more: self_attention(
        x, kept.setdefault(x.shape[-1], w), heads, RIGHT, *more
    )


both(
    "first-weights-kept",
    "Keeps the weights of the first call for all later ones of the same width.",
    "Call it twice with different weights.",
    source=SPEED,
    visible="state",
    at=[{}, {"v_proj_weight": weight(12, 12, 8)}],
)(first_weights_kept())


def first_mask_kept() -> Function:
    """Attention with the causal mask of the first call."""
    kept: dict[str, Tensor] = {}
    own = replace(RIGHT, mask=lambda n, limit: kept.setdefault("", causal(n)))
    return lambda x, w, heads, *more: self_attention(x, w, heads, own, *more)


both(
    "first-mask-kept",
    "Keeps the causal mask of the first call, whatever the later lengths.",
    "Call it twice with sequences of different lengths.",
    source=SUBMISSIONS,
    visible="state",
    at=[{"seq": 5}, {"seq": 3}],
)(first_mask_kept())

plain(
    "rotated",
    "Rotates queries and keys although no positions are wanted.",
    "Is there any argument that says where a token stands?",
)(
    lambda x, w, heads: self_attention(
        x, w, heads, RIGHT, torch.arange(x.shape[-2]), 10000.0, x.shape[-2]
    )
)
