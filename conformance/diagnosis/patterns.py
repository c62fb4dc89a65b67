"""What can be said of a wrong answer that no known mistake explains: how it differs.

Each pattern is a relation between what came and what is right that chance does not produce. Those
that hold on all inputs that were asked are told, the plainest first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from conformance.diagnosis.observe import Observation
from conformance.numerics.dtypes import FORMATS, is_float

CLOSE = 1e-3
"""Two numbers are taken for the same, in looking for a pattern, up to this relative difference."""

FEW = 4
"""With fewer numbers than this a pattern may be chance."""

Pattern = Callable[[Any, Any], str]


def pattern(wrong: Sequence[Observation]) -> str:
    """How the wrong answers differ from the right ones, in words; empty if in no simple way."""
    pairs = [
        (observation.output, observation.bounds.result.expected)
        for observation in wrong
        if not observation.raised and observation.wrong_value
    ]
    pairs = [(got, right) for got, right in pairs if right.size >= FEW and np.isfinite(right).all()]
    if not pairs:
        return ""
    shapes = _shapes(pairs)
    if shapes:
        return shapes
    pairs = [(got, right) for got, right in pairs if got.shape == right.shape]
    if not pairs:
        return ""
    if all(_same(got, right) for got, right in pairs):
        return _first((_precision,), pairs, wrong) or _beyond(wrong)
    return (
        _first(_PLAIN, pairs, wrong)
        or _beyond(wrong)
        or _first((_scattered, _precision), pairs, wrong)
    )


def _first(
    patterns: Sequence[Pattern], pairs: Sequence[tuple[Any, Any]], wrong: Sequence[Observation]
) -> str:
    """The first of these patterns that holds on all inputs, in words."""
    for found in patterns:
        words = [found(got, right) for got, right in pairs]
        if all(words) and not (found is _precision and _names_own_dtype(words, wrong)):
            return _common(words)
    return ""


def _names_own_dtype(words: Sequence[str], wrong: Sequence[Observation]) -> bool:
    """Errors as large as the answer's own precision say nothing: that is what was asked for."""
    own = {observation.reply.dtype for observation in wrong if not observation.raised}
    return any(f"precision of {dtype}," in text for dtype in own for text in words)


def _beyond(wrong: Sequence[Observation]) -> str:
    """From which input on single numbers are wrong, where each has an input of its own."""
    seen = [_entries(observation) for observation in wrong if not observation.raised]
    entries = [one for one in seen if one is not None]
    if not entries or len(entries) < len(seen):
        return ""
    x, bad = (np.concatenate(part) for part in zip(*entries, strict=True))
    if bad.sum() < FEW or (~bad).sum() < FEW:
        return ""
    start, end, far = x[bad].min(), x[bad].max(), np.abs(x[bad]).min()
    if (x[~bad] < start).all():
        return f"exactly the numbers are wrong whose input is {start:.4g} or more"
    if (x[~bad] > end).all():
        return f"exactly the numbers are wrong whose input is {end:.4g} or less"
    if (np.abs(x[~bad]) < far).all():
        return f"exactly the numbers are wrong whose input has a magnitude of {far:.4g} or more"
    return ""


def _entries(observation: Observation) -> tuple[Any, Any] | None:
    """The entries of the only input, and which are answered wrongly; None without such an input."""
    bound, output = observation.bounds.result, observation.output
    arrays = [a for a in observation.example.arguments.values() if is_float(a)]
    if len(arrays) != 1 or not arrays[0].shape == output.shape == bound.expected.shape:
        return None
    with np.errstate(invalid="ignore"):
        right = np.abs(output - bound.expected) <= bound.tolerance
    return arrays[0].astype(np.float64).reshape(-1), ~right.reshape(-1)


def _common(words: Sequence[str]) -> str:
    """The same words for all inputs, or those for the first with what varies left to the reader."""
    if len(set(words)) == 1:
        return words[0]
    return f"{words[0]} (on the first input; it varies from input to input)"


def _shapes(pairs: Sequence[tuple[Any, Any]]) -> str:
    different = [(got.shape, right.shape) for got, right in pairs if got.shape != right.shape]
    if len(different) < len(pairs):
        return ""
    if all(tuple(n for n in right if n != 1) == got for got, right in different):
        return "axes of length 1 are missing in the result"
    if all(sorted(got) == sorted(right) for got, right in different):
        return "the axes of the result are in another order"
    if all(int(np.prod(got)) == int(np.prod(right)) for got, right in different):
        return "the result has all its numbers, in other axes"
    return ""


def _same(left: Any, right: Any) -> bool:
    if left.shape != right.shape or not np.isfinite(left).all():
        return False
    scale = np.abs(right).max(initial=0.0)
    return bool((np.abs(left - right) <= CLOSE * np.abs(right) + 1e-5 * scale).all())


def _factor(got: Any, right: Any) -> str:
    factor = _ratio(got, right)
    if factor is None or not _same(got, factor * right):
        return ""
    if abs(factor - 1) < CLOSE:
        return ""
    if abs(factor + 1) < CLOSE:
        return "every number has the opposite sign"
    return f"every number is {factor:.4g} times what it should be"


def _ratio(got: Any, right: Any) -> float | None:
    square = float((right * right).sum())
    if not square or not np.isfinite(got).all():
        return None
    return float((got * right).sum()) / square


def _offset(got: Any, right: Any) -> str:
    if not np.isfinite(got).all():
        return ""
    difference = float((got - right).mean())
    if not difference or not _same(got - difference, right):
        return ""
    return f"every number is off by the same amount, {difference:.4g}"


def _constant(got: Any, right: Any) -> str:
    if np.isfinite(got).all() and np.ptp(got) == 0 and np.ptp(right) > 0:
        return f"every number is {float(got.reshape(-1)[0]):.4g}"
    return ""


def _moved(got: Any, right: Any) -> str:
    """Shifted, reversed or exchanged along an axis."""
    for axis in range(-1, -right.ndim - 1, -1):
        if right.shape[axis] < 2:
            continue
        name = _axis(axis)
        for step, words in ((1, "late"), (-1, "early")):
            inner = [slice(None)] * right.ndim
            outer = [slice(None)] * right.ndim
            inner[axis], outer[axis] = slice(None, -1), slice(1, None)
            if step < 0:
                inner, outer = outer, inner
            if right.shape[axis] > 2 and _same(got[tuple(outer)], right[tuple(inner)]):
                return f"the numbers come one step {words} along {name}"
        if _same(np.flip(got, axis), right):
            return f"the numbers stand in reverse order along {name}"
    for first, second in itertools.combinations(range(right.ndim), 2):
        if right.shape[first] == right.shape[second] and _same(
            np.swapaxes(got, first, second), right
        ):
            return f"{_axis(first - right.ndim)} and {_axis(second - right.ndim)} are exchanged"
    return ""


def _permuted(got: Any, right: Any) -> str:
    if not np.isfinite(got).all() or right.ndim < 1 or right.shape[-1] < 3:
        return ""
    if _same(np.sort(got, axis=-1), np.sort(right, axis=-1)):
        return f"each row holds the right numbers in another order{_order(got, right)}"
    if _same(np.sort(got.reshape(-1)), np.sort(right.reshape(-1))):
        return "the right numbers are all there, in another order"
    return ""


def _order(got: Any, right: Any) -> str:
    """Which entry of the right row each entry is, when that is the same in all rows."""
    rows_got, rows = got.reshape(-1, got.shape[-1]), right.reshape(-1, right.shape[-1])
    if rows.shape[-1] > 16:
        return ""
    places = np.abs(rows_got[:, :, None] - rows[:, None, :]).argmin(axis=-1)
    if (places == places[0]).all():
        return f": {', '.join(str(place) for place in places[0])}"
    return ""


def _row_factor(got: Any, right: Any) -> str:
    return _factor_along(got, right, -1, "each row is off by a factor of its own")


def _column_factor(got: Any, right: Any) -> str:
    if right.ndim < 2:
        return ""
    return _factor_along(
        got.reshape(-1, got.shape[-1]),
        right.reshape(-1, right.shape[-1]),
        0,
        "each feature is off by a factor of its own",
    )


def _factor_along(got: Any, right: Any, axis: int, words: str) -> str:
    if right.ndim < 1 or right.shape[axis] < 3 or not np.isfinite(got).all():
        return ""
    squares = (right * right).sum(axis=axis, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(squares > 0, (got * right).sum(axis=axis, keepdims=True) / squares, 1.0)
    if not _same(got, factors * right):
        return ""
    low, high = float(factors.min()), float(factors.max())
    return f"{words}, from {low:.4g} to {high:.4g}"


def _precision(got: Any, right: Any) -> str:
    """Errors of the size that a lower precision makes.

    The size of the typical error decides between formats: half a unit where a number is rounded
    once.
    """
    if not np.isfinite(got).all():
        return ""
    scale = np.abs(right).max(initial=0.0)
    if not scale:
        return ""
    error = float(np.abs(got - right).max()) / float(scale)
    formats = [FORMATS[name] for name in ("float32", "float16", "bfloat16")]
    possible = [fmt for fmt in formats if fmt.unit / 8 <= error <= 16 * fmt.unit]
    telling = (right != 0) & (got != right)
    if not possible or not telling.any():
        return ""
    typical = float(np.median(np.abs(got - right)[telling] / np.abs(right[telling])))
    nearest = min(possible, key=lambda fmt: abs(np.log2(2 * typical / fmt.unit)))
    return f"it is right up to the precision of {nearest.name}, and no further"


def _part(got: Any, right: Any) -> str:
    """Only some signs, or regular rows or features, are wrong."""
    bad = _bad(got, right)
    if not bad.any():
        return ""
    if bad[right < 0].all() and not bad[right > 0].any() and (right < 0).any():
        return "exactly the negative numbers are wrong"
    if bad[right > 0].all() and not bad[right < 0].any() and (right < 0).any():
        return "exactly the positive numbers are wrong"
    return _along_an_axis(bad, regular=True)


def _scattered(got: Any, right: Any) -> str:
    """Only some rows or features are wrong, in no order."""
    return _along_an_axis(_bad(got, right), regular=False)


def _bad(got: Any, right: Any) -> Any:
    scale = np.abs(right).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(got - right) <= CLOSE * np.abs(right) + 1e-5 * scale)
    return np.zeros_like(bad) if bad.all() else bad


def _along_an_axis(bad: Any, *, regular: bool) -> str:
    """Which entries of an axis are wrong, when the others are right everywhere."""
    for axis in range(-1, -bad.ndim - 1, -1):
        others = tuple(a for a in range(bad.ndim) if a != axis % bad.ndim)
        places = np.flatnonzero(bad.any(axis=others))
        length = bad.shape[axis]
        if 0 < places.size < length:
            said = _regular(places, length) or ("" if regular else _listed(places))
            if said:
                return f"only {said} along {_axis(axis)} {_is(places)} wrong"
    return ""


def _regular(places: Any, length: int) -> str:
    first, last = int(places[0]), int(places[-1])
    if places.size == 1:
        return f"entry {first}"
    if last == length - 1 and places.size == length - first:
        return f"the entries from {first} on"
    if first == 0 and places.size == last + 1:
        return f"the entries up to {last}"
    if places.size > 2 and (np.diff(places) == 2).all():
        return f"the {'odd' if first % 2 else 'even'} entries"
    return ""


def _listed(places: Any) -> str:
    shown = ", ".join(str(int(place)) for place in places[:8])
    return f"entries {shown}{', ...' if places.size > 8 else ''}"


def _is(places: Any) -> str:
    return "is" if places.size == 1 else "are"


def _axis(axis: int) -> str:
    return {-1: "the last axis", -2: "the last axis but one"}.get(axis, f"axis {axis}")


_PLAIN: Sequence[Pattern] = (
    _factor,
    _constant,
    _offset,
    _moved,
    _permuted,
    _row_factor,
    _column_factor,
    _part,
)
