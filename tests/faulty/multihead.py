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
from .catalogue import Entry, Function, registrar
from .pieces import ATTENTION, register
from .rotations import ROTATIONS

ENTRIES: list[Entry] = []
plain = registrar(ENTRIES, "multihead_self_attention", "mha", mha_by)
turned = registrar(ENTRIES, "multihead_self_attention_with_rope", "mha-rope", mha_rope_by)
RIGHT = Attention()

register(plain, ATTENTION, keep)
register(turned, [*ATTENTION, *ROTATIONS], keep)


def both(name: str, **more: Any) -> Callable[[Function], Function]:
    """Registers f(x, weights, heads, *positions...) for both components."""

    def describe(f: Function) -> Function:
        plain(name, **more)(f)
        turned(name, **more)(f)
        return f

    return describe


def around(before: Function = keep, after: Function = keep) -> Function:
    """Right attention of before(x), its result passed through after(result, x)."""
    return lambda x, w, heads, *more: after(self_attention(before(x), w, heads, RIGHT, *more), x)


both("residual-inside")(around(after=lambda y, x: y + x))

both("input-normalised")(around(before=lambda x: F.rms_norm(x, x.shape[-1:], None, 1e-5)))

both("dropout-active")(around(after=lambda y, x: F.dropout(y, 0.5, training=True)))

both("drops-size-one-axes", at={"lead": (1,)})(around(after=lambda y, x: y.squeeze()))

both("three-axes-only", at={"lead": ()})(around(before=lambda x: torch.einsum("bsd->bsd", x)))

both("batch-of-one-only")(around(before=lambda x: x.reshape(1, x.shape[-2], x.shape[-1])))

both("batch-as-one-sequence")(
    lambda x, w, heads, *more: self_attention(
        x.flatten(0, -2), w, heads, RIGHT, None, *more[1:]
    ).reshape(x.shape)
)

both("contiguous-only")(around(before=lambda x: x.view(-1).view(x.shape)))

both("input-detached")(around(before=lambda x: x.detach()))

both("weights-detached")(
    lambda x, w, heads, *more: self_attention(
        x,
        w,
        heads,
        replace(RIGHT, attend=lambda q, k, *rest: attention(q.detach(), k.detach(), *rest)),
        *more,
    )
)

both("output-weight-copied", wrt=("o_proj_weight",))(
    lambda x, w, heads, *more: self_attention(
        x, (*w[:3], w[3].detach().clone()), heads, RIGHT, *more
    )
)

both("float32-result", at={"dtype": torch.bfloat16})(
    lambda x, w, heads, *more: self_attention(
        x.float(), tuple(m.float() for m in w), heads, RIGHT, *more
    )
)

both("single-token-shortcut", at={"seq": 1})(
    lambda x, w, heads, *more: (
        x.clone() if x.shape[-2] == 1 else self_attention(x, w, heads, RIGHT, *more)
    )
)

both("mask-per-sample-not-per-head")(
    lambda x, w, heads, *more: self_attention(
        x, w, heads, replace(RIGHT, mask=lambda n, limit: causal(n).expand(len(x), n, n)), *more
    )
)

both("mask-of-fixed-size")(
    lambda x, w, heads, *more: self_attention(
        x, w, heads, replace(RIGHT, mask=lambda n, limit: causal(4)[:n, :n]), *more
    )
)


@both("input-overwritten")
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


both("first-weights-kept", at=[{}, {"v_proj_weight": weight(12, 12, 8)}])(first_weights_kept())


def first_mask_kept() -> Function:
    """Attention with the causal mask of the first call."""
    kept: dict[str, Tensor] = {}
    own = replace(RIGHT, mask=lambda n, limit: kept.setdefault("", causal(n)))
    return lambda x, w, heads, *more: self_attention(x, w, heads, own, *more)


both("first-mask-kept", at=[{"seq": 5}, {"seq": 3}])(first_mask_kept())

plain("rotated")(
    lambda x, w, heads: self_attention(
        x, w, heads, RIGHT, torch.arange(x.shape[-2]), 10000.0, x.shape[-2]
    )
)
