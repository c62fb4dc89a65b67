"""Embedding, a row lookup, written in different ways."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..adapting import embedding_by
from .catalogue import COPIES, COURSES, PRACTICE, TEXTBOOK, TORCH, Entry, registrar

ENTRIES: list[Entry] = []
variant = registrar(ENTRIES, "embedding", "embedding", embedding_by)


@variant("indexing", "weights[ids].", PRACTICE)
def indexing(w: Tensor, ids: Tensor) -> Tensor:
    return w[ids]


@variant("index-select", "index_select on flat ids, shape restored.", PRACTICE)
def index_select(w: Tensor, ids: Tensor) -> Tensor:
    return w.index_select(0, ids.reshape(-1)).reshape(*ids.shape, w.shape[1])


@variant("functional", "F.embedding.", TORCH)
def functional(w: Tensor, ids: Tensor) -> Tensor:
    return F.embedding(ids, w)


@variant("one-hot", "One-hot rows times the table: exact, since all other terms are 0.", TEXTBOOK)
def one_hot(w: Tensor, ids: Tensor) -> Tensor:
    return F.one_hot(ids, w.shape[0]).to(w.dtype) @ w


@variant("gather", "torch.gather with ids repeated over the features.", PRACTICE)
def gather(w: Tensor, ids: Tensor) -> Tensor:
    rows = ids.reshape(-1, 1).expand(-1, w.shape[1])
    return w.gather(0, rows).reshape(*ids.shape, w.shape[1])


@variant("stacked-rows", "A Python loop over the ids that stacks rows.", TEXTBOOK)
def stacked_rows(w: Tensor, ids: Tensor) -> Tensor:
    rows = [w[int(i)] for i in ids.reshape(-1)]
    return torch.stack(rows).reshape(*ids.shape, w.shape[1]) if rows else w[ids]


@variant("vmap", "One id at a time, vectorised by torch.vmap.", PRACTICE)
def mapped(w: Tensor, ids: Tensor) -> Tensor:
    rows = torch.vmap(lambda i: torch.index_select(w, 0, i[None])[0])(ids.reshape(-1))
    return rows.reshape(*ids.shape, w.shape[1])


@variant("module", "A float32 table filled by load_state_dict.", COURSES, "must-only", COPIES)
def module(w: Tensor, ids: Tensor) -> Tensor:
    layer = nn.Embedding(*w.shape)
    layer.load_state_dict({"weight": w})
    return layer(ids)


@variant("module-data", "A float32 table filled by .data.copy_.", COURSES, "must-only", COPIES)
def module_data(w: Tensor, ids: Tensor) -> Tensor:
    table = nn.Parameter(torch.empty(*w.shape))
    table.data.copy_(w)
    return table[ids]
