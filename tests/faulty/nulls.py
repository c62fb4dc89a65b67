"""Null models: answers of the right shape and dtype that compute nothing.

Each must fail every value check of every component; a check that one of them passes is a defect
of the check. They compute the right answer only to learn its shape, dtype and scale.
"""

import inspect
from typing import Any

import torch
from torch import Tensor

from .. import witnesses
from ..adapting import CORRECT
from .catalogue import Entry


def first_input(component: str, arguments: dict[str, Any]) -> Tensor:
    """The tensor that an echo answers: the floating input, or ids or positions."""
    names = (*witnesses.INPUTS[component], "token_ids", "token_positions", "in_indices")
    return next(arguments[name] for name in names if torch.is_tensor(arguments.get(name)))


def fitted(source: Tensor, like: Tensor) -> Tensor:
    """The numbers of source, repeated or cut to the shape of like."""
    flat = source.reshape(-1).to(like.dtype)
    if source.shape == like.shape:
        return flat.reshape(like.shape)
    times = like.numel() // max(flat.numel(), 1) + 1
    return flat.repeat(times)[: like.numel()].reshape(like.shape)


def mean(source: Tensor, like: Tensor) -> Tensor:
    """The input's mean along its last axis, repeated along the output's last axis."""
    averages = source.to(torch.float64).mean(-1) if source.ndim else source.to(torch.float64)
    rows = fitted(averages, like[..., 0].to(torch.float64))
    return rows.unsqueeze(-1).expand(like.shape).to(like.dtype)


def noise(source: Tensor, like: Tensor) -> Tensor:
    """Seeded noise with the mean and spread of the right answer."""
    x = like.double()
    drawn = witnesses.draw(*like.shape, seed=123).double()
    spread = x.std() if x.numel() > 1 else x.abs().sum()
    return (x.mean() + spread * drawn).to(like.dtype)


MODELS = {
    "zeros": ("Answers zeros.", lambda source, like: torch.zeros_like(like)),
    "ones": ("Answers ones.", lambda source, like: torch.ones_like(like)),
    "half": ("Answers one half everywhere.", lambda source, like: torch.full_like(like, 0.5)),
    "mean": ("Answers the mean of each row of the input.", mean),
    "echo": ("Answers the input.", fitted),
    "permuted-echo": (
        "Answers the input in reverse order.",
        lambda source, like: fitted(source.reshape(-1).flip(0).reshape(source.shape), like),
    ),
    "noise": ("Answers noise of the right scale.", noise),
    "constant-mean": (
        "Answers the mean of the right answer everywhere.",
        lambda source, like: torch.full_like(like, like.double().mean().item()),
    ),
}


def null(component: str, model: Any) -> Any:
    """The adapter of a component that answers model(first input, right answer)."""

    def adapter(**arguments: Any) -> Tensor:
        with torch.no_grad():
            like = CORRECT[component](**arguments)
            return model(first_input(component, arguments), like).clone()

    # Callers look at the parameters' names, which ** does not show.
    adapter.__signature__ = inspect.signature(CORRECT[component])  # type: ignore[attr-defined]
    return adapter


def entry(component: str, name: str) -> Entry:
    """One null model of one component."""
    sentence, model = MODELS[name]
    return Entry(
        id=f"null-{name}-{component}".replace("_", "-"),
        component=component,
        function=null(component, model),
        sentence=sentence,
        hint="Nothing has been computed yet.",
        source="null models",
        level="MUST",
        visible="value",
        witness=lambda: [witnesses.DEFAULT[component]()],
        note="null model",
    )


ENTRIES: list[Entry] = [entry(component, name) for component in CORRECT for name in MODELS]
