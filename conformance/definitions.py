"""Pieces of the definitions, which a fault replaces by what people write instead.

Every function that a definition consists of is marked with `@piece` and can be exchanged by name
for the time of an evaluation: the whole component (`rope`), or a part of it (`causal_mask`). A
mistake in one component can so be evaluated inside every other one that is built on it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from conformance.errors import InternalError

F = TypeVar("F", bound=Callable[..., Any])
Pieces = Mapping[str, Callable[..., Any]]

_known: set[str] = set()
_replaced: ContextVar[Pieces | None] = ContextVar("replaced", default=None)
_used: ContextVar[set[str] | None] = ContextVar("used", default=None)


def piece(function: F) -> F:
    """Mark a function of a definition as exchangeable under its own name."""
    name = function.__name__
    if name in _known:
        raise InternalError(f"two pieces of definitions are called {name}")
    _known.add(name)

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        used = _used.get()
        if used is not None:
            used.add(name)
        pieces = _replaced.get()
        if pieces is None or name not in pieces:
            return function(*arguments, **keywords)
        rest = {other: by for other, by in pieces.items() if other != name}
        with _in_force(rest):  # what stands in for a piece may use the right one
            return pieces[name](*arguments, **keywords)

    return call  # type: ignore[return-value]


@contextmanager
def replaced(pieces: Pieces) -> Iterator[None]:
    """Evaluate with other pieces; InternalError for a name that no piece has."""
    unknown = sorted(set(pieces) - _known)
    if unknown:
        raise InternalError(f"no piece of a definition is called {', '.join(unknown)}")
    with _in_force({**(_replaced.get() or {}), **pieces}):
        yield


@contextmanager
def pieces_used() -> Iterator[set[str]]:
    """The names of the pieces that are evaluated in the meantime."""
    names: set[str] = set()
    token = _used.set(names)
    try:
        yield names
    finally:
        _used.reset(token)


@contextmanager
def _in_force(pieces: Pieces) -> Iterator[None]:
    token = _replaced.set(pieces)
    try:
        yield
    finally:
        _replaced.reset(token)
