"""Faults of Embedding, a row lookup."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..adapting import embedding_by
from ..parts import embedding, sinusoidal
from ..witnesses import draw
from .catalogue import CONVENTION, PYTORCH, REPORTS, SPEED, SUBMISSIONS, Entry, registrar

ENTRIES: list[Entry] = []
fault = registrar(ENTRIES, "embedding", "embedding", embedding_by)

fault(
    "scaled-by-root-width",
    "Multiplies the rows by the root of d_model.",
    "That factor is another architecture's; here the rows come out as they are.",
    source=CONVENTION,
)(lambda w, ids: w[ids] * w.shape[1] ** 0.5)

fault(
    "scaled-slightly",
    "Multiplies the rows by 1.004.",
    "A lookup changes no bit of what it finds.",
    source=SUBMISSIONS,
)(lambda w, ids: w[ids] * 1.004)

fault(
    "next-row",
    "Takes the row after the one that is asked for.",
    "The first token has the id 0.",
)(lambda w, ids: w[(ids + 1) % w.shape[0]])

fault(
    "previous-row",
    "Takes the row before; id 0 wraps round to the last row without an error.",
    "Ids count from 0, and a negative index is legal.",
    source=PYTORCH,
)(lambda w, ids: w[ids - 1])

fault(
    "zero-is-padding",
    "Treats id 0 as padding and answers zeros for it.",
    "No id is special here.",
    source=CONVENTION,
)(lambda w, ids: w[ids] * (ids != 0)[..., None])

fault(
    "padding-gets-no-gradient",
    "Treats id 0 as padding, whose row gets no gradient.",
    "No id is special here; look at the gradient of every row that was used.",
    source=PYTORCH,
    level="SHOULD",
    visible="gradient",
    wrt=("weights",),
)(lambda w, ids: F.embedding(ids, w, padding_idx=0))

fault(
    "last-id-clamped",
    "Clamps ids to one below the last row.",
    "The largest id is vocab_size - 1: is it inside your bounds?",
)(lambda w, ids: w[ids.clamp(max=w.shape[0] - 2)])

fault(
    "ids-as-bytes",
    "Converts ids to 8-bit integers, which wrap at 256.",
    "How large can an id get?",
    at={"ids": (255, 256, 299), "vocab": 300},
)(lambda w, ids: w[ids.to(torch.uint8).long()])

fault(
    "ids-through-bfloat16",
    "Converts ids to bfloat16 on the way, which has no odd integers above 256.",
    "Ids are integers; nothing that rounds may touch them.",
    source=REPORTS,
    at={"ids": (3, 255, 257, 299), "vocab": 400},
)(lambda w, ids: w[ids.to(torch.bfloat16).long()])

fault(
    "modulo-width",
    "Takes the ids modulo d_model, having the two sizes the wrong way round.",
    "Which of the two sizes counts rows?",
)(lambda w, ids: w[ids % w.shape[1]])

fault(
    "table-transposed",
    "Looks up columns instead of rows, which runs when the table is square.",
    "Rows are tokens, columns are features.",
    at={"vocab": 11, "d": 11},
)(lambda w, ids: w.T[ids])

fault(
    "table-reinterpreted",
    "Views the table's memory as (d_model, vocab) and picks columns.",
    "Changing a shape and exchanging axes are different things.",
)(lambda w, ids: w.reshape(w.shape[1], w.shape[0])[:, ids].movedim(0, -1))

fault(
    "rows-in-sorted-order",
    "Answers the rows in the order of sorted ids.",
    "Which row belongs to which position?",
)(lambda w, ids: w[ids.sort(dim=-1).values])

fault(
    "rows-normalised",
    "Divides every row by its length.",
    "A lookup changes nothing; normalisation is another layer's business.",
    source=CONVENTION,
)(lambda w, ids: F.normalize(w[ids], dim=-1))

fault(
    "positions-added",
    "Adds a sinusoidal encoding of the place in the sequence.",
    "Positions enter elsewhere; here equal ids have equal rows.",
    source=CONVENTION,
)(lambda w, ids: w[ids] + sinusoidal(w.shape[1], torch.arange(ids.shape[-1])))

fault(
    "first-batch-row-for-all",
    "Looks up the first sequence of the batch and repeats it.",
    "Try two different sequences in one batch.",
)(lambda w, ids: w[ids[:1].expand_as(ids)])

fault(
    "one-hot-too-narrow",
    "Makes one-hot rows as wide as the largest id of this call instead of the vocabulary.",
    "What if the largest id of the vocabulary does not occur?",
    visible="crash",
    at={"ids": ((3, 0), (7, 1))},
)(lambda w, ids: F.one_hot(ids).to(w.dtype) @ w)


@fault(
    "two-axes-only",
    "Unpacks the ids' shape into batch and sequence.",
    "A single sequence, or one more axis, is just as legal.",
    source=SUBMISSIONS,
    visible="crash",
    at={"ids": (3, 0, 10)},
)
def two_axes_only(w: Tensor, ids: Tensor) -> Tensor:
    batch, length = ids.shape
    return w[ids.reshape(-1)].reshape(batch, length, -1)


fault(
    "stays-flat",
    "Flattens the ids and does not restore their axes.",
    "The answer has the ids' shape and one more axis.",
    visible="shape",
)(lambda w, ids: w[ids.reshape(-1)])

fault(
    "drops-size-one-axes",
    "Squeezes the result, which loses every axis of size 1.",
    "Try a single token, and a batch of one.",
    visible="shape",
    at={"ids": ((3,), (7,))},
)(lambda w, ids: w[ids].squeeze())

fault(
    "contiguous-ids-only",
    "Uses view on the ids, which refuses transposed ones.",
    "Not every tensor lies in memory in the order of its axes.",
    source=PYTORCH,
    visible="crash",
    at={"token_ids": torch.tensor([[3, 0, 10], [7, 7, 1]]).T},
    note="strides of the ids, which are integers",
)(lambda w, ids: w[ids.view(-1)].view(*ids.shape, -1))

fault(
    "float32-result",
    "Answers in float32 for a table of lower precision.",
    "The rows keep the table's dtype.",
    level="SHOULD",
    visible="dtype",
    at={"dtype": torch.bfloat16},
)(lambda w, ids: w[ids].float())

fault(
    "table-in-dtype-of-ids",
    "Builds the table with the dtype of the ids, which truncates it to integers.",
    "Two tensors come in: whose dtype does a parameter have?",
    source=SUBMISSIONS,
)(lambda w, ids: w.to(ids.dtype)[ids].to(w.dtype))

fault(
    "table-detached",
    "Detaches the table, so that it cannot be trained.",
    "Ask for the gradient of the table.",
    source=PYTORCH,
    level="SHOULD",
    visible="gradient",
    wrt=("weights",),
)(lambda w, ids: w.data[ids])


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


fault(
    "repeated-ids-counted-once",
    "The hand-written backward pass keeps only one of the gradients of a repeated id.",
    "A row that is used twice gets the sum of both gradients.",
    level="SHOULD",
    visible="gradient",
    wrt=("weights",),
)(Overwriting.apply)

fault(
    "view-for-single-id",
    "Answers a view of the table when there is one id.",
    "What happens to the table when the caller changes the answer in place?",
    source=PYTORCH,
    visible="purity",
    at={"ids": ((3,),)},
)(lambda w, ids: w[int(ids)].view(*ids.shape, -1) if ids.numel() == 1 else w[ids])

fault(
    "rows-scaled-in-place",
    "Shortens long rows in the table itself before the lookup.",
    "Two things are wrong with that: what comes out, and what is left behind.",
    source=PYTORCH,
)(lambda w, ids: F.embedding(ids, w.detach(), max_norm=1.0))


def first_table_kept() -> Any:
    """A lookup that remembers the first table of each size."""
    tables: dict[torch.Size, Tensor] = {}
    return lambda w, ids: tables.setdefault(w.shape, w)[ids]


fault(
    "first-table-kept",
    "Keeps the table of the first call for all later ones of the same size.",
    "Call it twice with different tables.",
    source=SPEED,
    visible="state",
    at=[{}, {"weights": draw(11, 4, seed=8)}],
)(first_table_kept())
