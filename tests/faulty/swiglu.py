"""Faults of SwiGLU, W2 (silu(W1 x) * W3 x)."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import swiglu_by
from ..parts import linear, silu, swiglu
from ..witnesses import draw, weight
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "swiglu", "swiglu", swiglu_by)
Three = tuple[Tensor, Tensor, Tensor]


def activated(f: Any) -> Any:
    """SwiGLU with f in place of SiLU."""
    return lambda x, w1, w2, w3: linear(f(linear(x, w1)) * linear(x, w3), w2)


fault("gate-and-value-swapped")(lambda x, w1, w2, w3: swiglu(x, w3, w2, w1))

fault("sigmoid-gate")(activated(torch.sigmoid))

fault("gelu-gate")(activated(F.gelu))

fault("quick-gelu-gate")(activated(lambda a: a * torch.sigmoid(1.702 * a)))

fault("relu-gate")(activated(torch.relu))

fault("no-activation")(activated(lambda a: a))

fault("no-gate")(lambda x, w1, w2, w3: linear(silu(linear(x, w1)), w2))

fault("activation-on-both")(
    lambda x, w1, w2, w3: linear(silu(linear(x, w1)) * silu(linear(x, w3)), w2)
)

fault("activation-of-product")(
    lambda x, w1, w2, w3: linear(silu(linear(x, w1) * linear(x, w3)), w2)
)

fault("activation-at-end")(lambda x, w1, w2, w3: silu(linear(linear(x, w1) * linear(x, w3), w2)))

fault("sum-for-product")(lambda x, w1, w2, w3: linear(silu(linear(x, w1)) + linear(x, w3), w2))

fault("first-weight-twice")(lambda x, w1, w2, w3: swiglu(x, w1, w2, w1))

fault("third-weight-twice")(lambda x, w1, w2, w3: swiglu(x, w3, w2, w3))

fault("output-weight-reinterpreted")(
    lambda x, w1, w2, w3: swiglu(x, w1, w2.T.reshape(w2.shape), w3)
)

fault("weights-not-transposed", at={"d": 6, "d_ff": 6})(
    lambda x, w1, w2, w3: swiglu(x, w1.T, w2, w3.T)
)

fault("residual-inside")(lambda x, w1, w2, w3: x + swiglu(x, w1, w2, w3))

fault("hidden-normalised")(
    lambda x, w1, w2, w3: linear(F.normalize(silu(linear(x, w1)) * linear(x, w3), dim=-1), w2)
)


@fault("width-recomputed", at={"d_ff": 40})
def width_recomputed(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    width = round(8 / 3 * x.shape[-1] / 8) * 8
    return swiglu(x, w1[:width], w2[:, :width], w3[:width])


@fault("width-rounded-up")
def width_rounded_up(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    width = (w1.shape[0] + 63) // 64 * 64
    up, down = (torch.empty(width, x.shape[-1], dtype=w1.dtype) for _ in range(2))
    return swiglu(x, up.copy_(w1), w2, down.copy_(w3))


@fault("width-four-times-model", at={"d_ff": 30})
def width_four_times_model(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    width = 4 * x.shape[-1]
    return swiglu(x, w1[:width], w2[:, :width], w3[:width])


@fault("hidden-remainder-dropped", at={"d_ff": 10})
def hidden_remainder_dropped(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    width = w1.shape[0] // 4 * 4
    return swiglu(x, w1[:width], w2[:, :width], w3[:width])


fault("three-axes-only", at={"lead": (2, 3, 2)})(
    lambda x, w1, w2, w3: swiglu(torch.einsum("bsi->bsi", x), w1, w2, w3)
)

fault("drops-size-one-axes", at={"lead": (1, 3)})(
    lambda x, w1, w2, w3: swiglu(x, w1, w2, w3).squeeze()
)

fault("contiguous-only")(
    lambda x, w1, w2, w3: swiglu(x.view(-1, x.shape[-1]), w1, w2, w3).view(x.shape)
)

fault("gate-detached")(
    lambda x, w1, w2, w3: linear(silu(linear(x, w1)).detach() * linear(x, w3), w2)
)

fault("output-weight-copied", wrt=("w2_weight",))(
    lambda x, w1, w2, w3: swiglu(x, w1, w2.detach().clone(), w3)
)


@fault("in-place-breaks-backward")
def in_place_breaks_backward(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    a = linear(x, w1)
    gate = torch.sigmoid(a)
    gate *= a
    return linear(gate * linear(x, w3), w2)


fault("gradient-nan-for-large-negatives", at={"in_features": draw(2, 3, 6, scale=300.0)})(
    activated(lambda a: a / (1 + torch.exp(-a)))
)

fault("activation-zero-for-negatives")(
    activated(lambda a: torch.where(a < -1, torch.zeros_like(a), silu(a)))
)

fault("float32-result", at={"dtype": torch.bfloat16})(
    lambda x, w1, w2, w3: swiglu(x.float(), w1.float(), w2.float(), w3.float())
)

fault("dropout-active")(activated(lambda a: F.dropout(silu(a), 0.5, training=True)))


def first_weights_kept() -> Any:
    """A layer that is built once for each size."""
    kept: dict[torch.Size, Three] = {}
    return lambda x, w1, w2, w3: swiglu(x, *kept.setdefault(w1.shape, (w1, w2, w3)))


fault("first-weights-kept", at=[{}, {"w3_weight": weight(10, 6, 8)}])(first_weights_kept())
