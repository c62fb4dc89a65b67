"""Stored inputs in another form: whoever has learnt the stored answers does not know these.

The rows of a batch are put in another order, some of them are left out, or an argument in which the
definition is homogeneous is multiplied by a power of two. What is expected is worked out anew, with
its tolerance, from the definition on the very input that is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from conformance.numerics.draw import Draw
from conformance.spec import Level
from conformance.suite.case import Arguments, size
from conformance.suite.failure import CheckFailure
from conformance.suite.grader import FATAL, Example, Grader

LARGEST = 20_000
"""Inputs with more numbers are not asked again."""

FACTORS = (-1.0, 0.5, -0.5)
"""Exact in every format, and none that makes a large number larger."""


@dataclass(frozen=True)
class Form:
    """How the arguments of one component may be changed.

    `rows` are the arguments that have the leading axes of the result, each with the number of its
    axes that are not leading; the first axis of the first of them is the batch. `scaled` are
    arguments to which the result is proportional, an entry of a dictionary as `weights.x`.
    """

    rows: Mapping[str, int]
    scaled: tuple[str, ...] = ()


FORMS: Mapping[str, Form] = {
    "linear": Form({"in_features": 1}, ("in_features", "weights")),
    "embedding": Form({"token_ids": 0}, ("weights",)),
    "rmsnorm": Form({"in_features": 1}, ("weights",)),
    "silu": Form({"in_features": 0}),
    "glu": Form({"in_features": 1}, ("w2_weight",)),
    "swiglu": Form({"in_features": 1}, ("w2_weight", "w3_weight")),
    "softmax": Form({"in_features": 0}),
    "sinusoidal": Form({"token_positions": 0}),
    "rotation": Form({"angles": 0}),
    "rope": Form({"in_query_or_key": 2, "token_positions": 1}, ("in_query_or_key",)),
    "scaled_dot_product_attention": Form({"Q": 2, "K": 2, "V": 2, "mask": 2}, ("V",)),
    "multihead_self_attention": Form({"in_features": 2}, ("o_proj_weight",)),
    "multihead_self_attention_with_rope": Form(
        {"in_features": 2, "token_positions": 1}, ("o_proj_weight",)
    ),
    "transformer_block": Form({"in_features": 2}),
    "transformer_lm": Form({"in_indices": 1}, ("weights.lm_head.weight",)),
    "next_token": Form({"logits": 2}),
}


def asked_in_other_forms(grade: Grader) -> None:
    """Stored inputs of MUST requirements are answered rightly in other forms as well."""
    failures: list[CheckFailure] = []
    for example in _examples(grade):
        try:
            grade.example_matches(example)
        except CheckFailure as failure:
            failures.append(failure)
            if failure.outcome in FATAL:
                raise
    if failures:
        raise min(failures, key=lambda failure: failure.evidence.size)


def _examples(grade: Grader) -> Iterator[Example]:
    """Half as many as a law is asked examples in this profile, chosen by the seeds."""
    owner, context = grade.component, grade.context
    form = FORMS[owner.name]
    key = f"{grade.key}, other forms"
    fitting = [
        case
        for case in owner.cases
        if case.golden
        and grade.dtype in case.dtypes
        and owner.requirement(case.requirement).level == Level.MUST
        and size(grade.example(case).arguments) <= LARGEST
    ]
    most, made = grade.effort().examples // 2, 0
    for place in context.order(key, len(fitting)):
        stored = grade.example(fitting[place])
        draw = context.draw(key, stored.case)
        ways = _ways(form, stored.arguments)
        if made >= most or not ways:
            continue
        made += 1
        name, change = ways[int(draw.integers(0, len(ways), 1)[0])]
        yield replace(
            stored,
            arguments=change(draw),
            why=f"the stored input, {name}: {stored.why}",
            wrt=(),
            cotangent=None,
            bounds=None,
            hidden=context.hidden is not None,
        )


Way = tuple[str, Callable[[Draw], Arguments]]


def _ways(form: Form, arguments: Arguments) -> list[Way]:
    """What can be done to these arguments, each with words for it."""
    found: list[Way] = []
    together = _batch(form, arguments)
    count = arguments[together[0]].shape[0] if together else 0
    if count >= 2:
        found.append(
            ("rows in another order", lambda draw: _taken(arguments, together, _mixed(draw, count)))
        )
    if count >= 2 and not _normalised_over_rows(arguments):
        found.append(
            ("one row left out", lambda draw: _taken(arguments, together, _fewer(draw, count)))
        )
    for path in form.scaled:
        if _at(arguments, path) is not None:
            found.append((f"{path} scaled", partial(_scaled, arguments, path)))
    return found


def _batch(form: Form, arguments: Arguments) -> list[str]:
    """The arguments whose first axis is the batch; none where the first of them has no such axis.

    What has fewer leading axes, or one entry for all rows, stays as it is.
    """
    (first, inner), *others = form.rows.items()
    leading = arguments[first].ndim - inner
    if leading < 1:
        return []
    count = arguments[first].shape[0]
    return [first] + [
        name
        for name, own in others
        if isinstance(arguments.get(name), np.ndarray)
        and arguments[name].ndim - own == leading
        and arguments[name].shape[0] == count
    ]


def _normalised_over_rows(arguments: Arguments) -> bool:
    """Softmax along the first axis: what is left may be nothing but -inf."""
    dim = arguments.get("dim")
    return dim is not None and dim % arguments["in_features"].ndim == 0


def _mixed(draw: Draw, count: int) -> Any:
    order = draw.permutation(count)
    return order if (order != np.arange(count)).any() else order[::-1]


def _fewer(draw: Draw, count: int) -> Any:
    """Any order, without one."""
    return draw.permutation(count)[1:]


def _taken(arguments: Arguments, names: list[str], rows: Any) -> Arguments:
    return {**arguments, **{name: np.ascontiguousarray(arguments[name][rows]) for name in names}}


def _at(arguments: Arguments, path: str) -> Any:
    holder, _, key = path.partition(".")
    return arguments[holder].get(key) if key else arguments[holder]


def _scaled(arguments: Arguments, path: str, draw: Draw) -> Arguments:
    factor = FACTORS[int(draw.integers(0, len(FACTORS), 1)[0])]
    holder, _, key = path.partition(".")
    array = _at(arguments, path)
    scaled = array * array.dtype.type(factor)
    return {**arguments, holder: {**arguments[holder], key: scaled} if key else scaled}
