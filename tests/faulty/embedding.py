"""Faults of Embedding, a row lookup."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import embedding_by
from ..parts import embedding, sinusoidal
from ..witnesses import draw
from .catalogue import Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "embedding", "embedding", embedding_by)

fault("scaled-by-root-width")(lambda w, ids: w[ids] * w.shape[1] ** 0.5)

fault("scaled-slightly")(lambda w, ids: w[ids] * 1.004)

fault("next-row")(lambda w, ids: w[(ids + 1) % w.shape[0]])

fault("previous-row")(lambda w, ids: w[ids - 1])

fault("zero-is-padding")(lambda w, ids: w[ids] * (ids != 0)[..., None])

fault("padding-gets-no-gradient", wrt=("weights",))(
    lambda w, ids: F.embedding(ids, w, padding_idx=0)
)

fault("last-id-clamped")(lambda w, ids: w[ids.clamp(max=w.shape[0] - 2)])

fault("ids-as-bytes", at={"ids": (255, 256, 299), "vocab": 300})(
    lambda w, ids: w[ids.to(torch.uint8).long()]
)

fault("ids-through-bfloat16", at={"ids": (3, 255, 257, 299), "vocab": 400})(
    lambda w, ids: w[ids.to(torch.bfloat16).long()]
)

fault("modulo-width")(lambda w, ids: w[ids % w.shape[1]])

fault("table-transposed", at={"vocab": 11, "d": 11})(lambda w, ids: w.T[ids])

fault("table-reinterpreted")(
    lambda w, ids: w.reshape(w.shape[1], w.shape[0])[:, ids].movedim(0, -1)
)

fault("rows-in-sorted-order")(lambda w, ids: w[ids.sort(dim=-1).values])

fault("rows-normalised")(lambda w, ids: F.normalize(w[ids], dim=-1))

fault("positions-added")(
    lambda w, ids: w[ids] + sinusoidal(w.shape[1], torch.arange(ids.shape[-1]))
)

fault("first-batch-row-for-all")(lambda w, ids: w[ids[:1].expand_as(ids)])

fault("one-hot-too-narrow", at={"ids": ((3, 0), (7, 1))})(
    lambda w, ids: F.one_hot(ids.long()).to(w.dtype) @ w
)


@fault("two-axes-only", at={"ids": (3, 0, 10)})
def two_axes_only(w: Tensor, ids: Tensor) -> Tensor:
    batch, length = ids.shape
    return w[ids.reshape(-1)].reshape(batch, length, w.shape[1])


fault("stays-flat")(lambda w, ids: w[ids.reshape(-1)])

fault("drops-size-one-axes", at={"ids": ((3,), (7,))})(lambda w, ids: w[ids].squeeze())

fault(
    "contiguous-ids-only",
    at={"token_ids": torch.tensor([[3, 0, 10], [7, 7, 1]]).T},
    note="strides of the ids, which are integers",
)(lambda w, ids: w[ids.view(-1)].view(*ids.shape, -1))

fault("float32-result", at={"dtype": torch.bfloat16})(lambda w, ids: w[ids].float())

fault("table-in-dtype-of-ids")(lambda w, ids: w.to(ids.dtype)[ids].to(w.dtype))

fault("table-detached", wrt=("weights",))(lambda w, ids: w.data[ids])


class Overwriting(torch.autograd.Function):
    """The right rows with a backward pass that assigns where it should add."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, ids: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.shape = w.shape
        return embedding(w, ids)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:
        (ids,) = ctx.saved_tensors
        gradient = dy.new_zeros(ctx.shape)
        gradient[ids] = dy
        return gradient, None


fault("repeated-ids-counted-once", wrt=("weights",))(Overwriting.apply)

fault("view-for-single-id", at={"ids": ((3,),)})(
    lambda w, ids: w[int(ids)].view(*ids.shape, -1) if ids.numel() == 1 else w[ids]
)

fault("rows-scaled-in-place")(lambda w, ids: F.embedding(ids, w.detach(), max_norm=1.0))


def first_table_kept() -> Any:
    """A lookup that remembers the first table of each size."""
    tables: dict[torch.Size, Tensor] = {}
    return lambda w, ids: tables.setdefault(w.shape, w)[ids]


fault("first-table-kept", at=[{}, {"weights": draw(11, 4, seed=8)}])(first_table_kept())
