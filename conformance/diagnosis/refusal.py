"""Wrong definitions that refuse an input, as code does that runs on some inputs only.

An exception is what they predict. Where NumPy raises by itself (shapes that do not fit), nothing
has to be said about it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def refusing(right: Callable[..., Any], when: Callable[..., bool]) -> Callable[..., Any]:
    """`right`, but ValueError for the arguments for which `when` holds."""

    def instead(*arguments: Any, **keywords: Any) -> Any:
        if when(*arguments, **keywords):
            raise ValueError("an input that this mistake cannot take")
        return right(*arguments, **keywords)

    return instead


def axes_other_than(count: int) -> Callable[..., bool]:
    """Whether the first argument has another number of axes."""
    return lambda x, *others: bool(x.ndim != count)
