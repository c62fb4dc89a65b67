"""Faults of GLU, sigmoid(x W1^T) * (x W2^T)."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import glu_by
from ..parts import glu, linear, silu
from ..witnesses import draw, weight
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "glu", "glu", glu_by)
FAR = {"in_features": draw(2, 3, 6, scale=300.0)}

fault("gate-and-value-swapped")(lambda x, w1, w2: glu(x, w2, w1))

fault("silu-gate")(lambda x, w1, w2: silu(linear(x, w1)) * linear(x, w2))

fault("no-activation")(lambda x, w1, w2: linear(x, w1) * linear(x, w2))

fault("tanh-gate")(lambda x, w1, w2: torch.tanh(linear(x, w1)) * linear(x, w2))

fault("relu-gate")(lambda x, w1, w2: torch.relu(linear(x, w1)) * linear(x, w2))

fault("softmax-gate")(lambda x, w1, w2: torch.softmax(linear(x, w1), dim=-1) * linear(x, w2))

fault("closed-gate")(lambda x, w1, w2: torch.sigmoid(-linear(x, w1)) * linear(x, w2))

fault("sigmoid-on-both")(
    lambda x, w1, w2: torch.sigmoid(linear(x, w1)) * torch.sigmoid(linear(x, w2))
)

fault("sigmoid-of-product")(lambda x, w1, w2: torch.sigmoid(linear(x, w1) * linear(x, w2)))

fault("sigmoid-of-input")(lambda x, w1, w2: linear(torch.sigmoid(x), w1) * linear(x, w2))

fault("sum-for-product")(lambda x, w1, w2: torch.sigmoid(linear(x, w1)) + linear(x, w2))

fault("first-weight-twice")(lambda x, w1, w2: glu(x, w1, w1))

fault("second-weight-twice")(lambda x, w1, w2: glu(x, w2, w2))

fault("weights-not-transposed", at={"d": 6, "d_ff": 6})(lambda x, w1, w2: glu(x, w1.T, w2.T))

fault("weights-reinterpreted")(
    lambda x, w1, w2: glu(x, w1.T.reshape(w1.shape), w2.T.reshape(w2.shape))
)

fault("clamped-gate", at={"w1_weight": -torch.ones(10, 6) * 2, "in_features": torch.ones(2, 6)})(
    lambda x, w1, w2: torch.sigmoid(linear(x, w1).clamp(-5, 5)) * linear(x, w2)
)


@fault("width-recomputed", at={"d_ff": 20})
def width_recomputed(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    width = int(8 / 3 * x.shape[-1])
    return glu(x, w1[:width], w2[:width])


fault("three-axes-only", at={"lead": (4,)})(
    lambda x, w1, w2: (
        torch.sigmoid(torch.einsum("bsi,oi->bso", x, w1)) * torch.einsum("bsi,oi->bso", x, w2)
    )
)

fault("drops-size-one-axes", at={"lead": (1, 3)})(lambda x, w1, w2: glu(x, w1, w2).squeeze())

fault("contiguous-only")(
    lambda x, w1, w2: glu(x.view(-1, x.shape[-1]), w1, w2).view(*x.shape[:-1], -1)
)

fault("gate-detached")(lambda x, w1, w2: torch.sigmoid(linear(x, w1)).detach() * linear(x, w2))


@fault("in-place-breaks-backward")
def in_place_breaks_backward(x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    gate = torch.sigmoid(linear(x, w1))
    gate *= linear(x, w2)
    return gate


fault("gradient-nan-for-large-negatives", at=FAR)(
    lambda x, w1, w2: 1 / (1 + torch.exp(-linear(x, w1))) * linear(x, w2)
)

fault("float32-result", at={"dtype": torch.bfloat16})(
    lambda x, w1, w2: glu(x.float(), w1.float(), w2.float())
)


fault("dropout-active")(lambda x, w1, w2: F.dropout(glu(x, w1, w2), 0.5, training=True))


def first_weights_kept() -> Any:
    """A layer that is built once for each size."""
    kept: dict[torch.Size, tuple[Tensor, Tensor]] = {}
    return lambda x, w1, w2: glu(x, *kept.setdefault(w1.shape, (w1, w2)))


fault("first-weights-kept", at=[{}, {"w1_weight": weight(10, 6, 8)}])(first_weights_kept())
