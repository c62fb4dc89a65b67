"""Checks that several components share, as functions of a grader and a case.

Each of them states one requirement that is not about the values of a single call: purity, memory,
repetition, modes, dtypes. The component's own file names the requirement and the case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from conformance.candidate.messages import Outcome
from conformance.numerics.dtypes import FLOAT32
from conformance.numerics.ensemble import Bound
from conformance.suite.case import Arguments, Case
from conformance.suite.failure import CheckFailure
from conformance.suite.grader import Example, Grader


def inputs_unchanged(grade: Grader, case: Case, arguments: Sequence[str]) -> None:
    """The named arguments hold the same bits after the call (and its backward pass)."""
    example = grade.bounded(grade.example(case))
    for how in _modes_of_asking(example):
        reply = grade.answer(example, **how)
        for name in reply.modified:
            base = name.partition(".")[0]
            message = f"the call changed its argument {name}"
            about = ("changed", *arguments)
            grade.holds(base not in arguments, message, example, reply, about)


def dictionary_unchanged(grade: Grader, case: Case, argument: str) -> None:
    """A dictionary that is passed in has the same entries after the call."""
    example = grade.bounded(grade.example(case))
    for how in _modes_of_asking(example):
        reply = grade.answer(example, **how)
        changed = [name for name in reply.modified if name.startswith(f"{argument}[")]
        grade.holds(
            not changed,
            f"the call changed the dictionary it was given: {', '.join(changed)}",
            example,
            reply,
            ("dictionary", argument),
        )


def _modes_of_asking(example: Example) -> Iterable[dict[str, Any]]:
    yield {"mode": "no_grad"}
    yield {}
    if example.wrt:
        yield {"wrt": example.wrt, "cotangent": example.cotangent}


def result_is_fresh(grade: Grader, case: Case, arguments: Sequence[str]) -> None:
    """The result shares no memory with the named arguments, nor with an earlier result."""
    example = grade.bounded(grade.example(case))
    reply = grade.answer(example, repeat=2)
    shared = [name for name in reply.aliased if name.partition(".")[0] in arguments]
    grade.holds(
        not shared,
        f"the result shares memory with {', '.join(shared)}: changing one changes the other",
        example,
        reply,
        ("shared", *arguments),
    )
    grade.holds(
        not reply.overwritten,
        "a second call changed the result of the first: both live in one buffer",
        example,
        reply,
        ("overwritten",),
    )


def repeats(grade: Grader, case: Case) -> None:
    """Asked twice in a row, with equal inputs, the answer is right both times."""
    grade.example_matches(grade.example(case), repeat=2)


def independent_of_other_calls(grade: Grader, *cases: Case) -> None:
    """Right in any order of calls with other sizes and constants in between, back and forth."""
    examples = [grade.bounded(grade.example(case)) for case in cases]
    for example in [*examples, *reversed(examples), *examples[::2], *examples[1::2]]:
        try:
            grade.example_matches(example)
        except CheckFailure as failure:
            failure.message += " (after calls with other sizes or constants)"
            raise


def layouts(
    grade: Grader, case: Case, argument: str, kinds: Sequence[str] = ("transposed", "sliced")
) -> None:
    """Equal values in other memory layouts give the same result."""
    for kind in kinds:
        example = grade.example(case)
        if kind == "expanded":
            example = _with_equal_rows(grade, example, argument)
        try:
            grade.example_matches(example, layouts={argument: kind})
        except CheckFailure as failure:
            failure.message = f"with a non-contiguous {argument} ({kind}): {failure.message}"
            raise


def _with_equal_rows(grade: Grader, example: Example, argument: str) -> Example:
    value = example.arguments[argument]
    rows = np.ascontiguousarray(np.broadcast_to(value[:1], value.shape))
    return replace(example, arguments={**example.arguments, argument: rows}, bounds=None)


def without_gradients(grade: Grader, case: Case) -> None:
    """The same result under `torch.no_grad`."""
    _in_mode(grade, case, "no_grad")


def in_inference_mode(grade: Grader, case: Case) -> None:
    """The same result under `torch.inference_mode`."""
    _in_mode(grade, case, "inference")


def _in_mode(grade: Grader, case: Case, mode: str) -> None:
    example = replace(grade.bounded(grade.example(case)), wrt=())
    try:
        grade.example_matches(example, mode=mode)
    except CheckFailure as failure:
        failure.message = f"under torch {mode} mode: {failure.message}"
        raise


def result_dtype(grade: Grader, case: Case) -> None:
    """The result has the dtype of the input."""
    example = grade.example(case)
    reply = grade.answer(example)
    grade.holds(
        reply.dtype == grade.dtype,
        f"the result is {reply.dtype} for {grade.dtype} input",
        example,
        reply,
        ("dtype",),
    )


def accepted(grade: Grader, *cases: Case) -> None:
    """The dtype is accepted, answered in the same dtype, and right."""
    for case in cases:
        result_dtype(grade, case)
    grade.matches_definition(*cases)


def right_where_answered(grade: Grader, *cases: Case) -> None:
    """Where the dtype is accepted at all, the answer is right at its accuracy.

    float64 may be answered at float32 accuracy here.
    """
    working = FLOAT32 if grade.dtype == "float64" else None
    grade.matches_definition(*cases, working=working, may_decline=True)


def unaffected(
    grade: Grader, example: Example, changed: Arguments, part: Any, of: Any, claim: str
) -> None:
    """With `changed` arguments, `part` of the answer is what the definition gives without, in `of`.

    For laws that say what has no influence. The bounds of the unchanged example serve, so that
    such a law costs one evaluation of the definition and nothing that is wrong anyway can keep it.
    """
    bounds = grade.bounded(replace(example, wrt=())).bounds
    assert bounds is not None
    bound = Bound(bounds.result.expected[of], bounds.result.tolerance[of])
    other = replace(
        example, arguments={**example.arguments, **changed}, wrt=(), cotangent=None, bounds=None
    )
    reply = grade.answer(other)
    output = reply.outputs[0]
    got = output[part] if output.ndim == bounds.result.expected.ndim else output
    grade.within(got, bound, other, reply, claim)


def exactly(grade: Grader, *cases: Case) -> None:
    """The answer equals the exact value to the last bit: nothing is rounded on these inputs."""
    for case in cases:
        for drawn in grade.examples(case):
            example = grade.bounded(drawn)
            assert example.bounds is not None
            expected = example.bounds.result.expected
            reply = grade.answer(example)
            bound = Bound(expected, np.zeros_like(expected))
            grade.within(reply.outputs[0], bound, example, reply, "the result")


def backward_twice(grade: Grader, case: Case) -> None:
    """The graph can be used for a second backward pass and gives the same gradients."""
    example = grade.bounded(grade.example(case))
    assert example.bounds is not None
    assert example.wrt
    reply = grade.answer(example, wrt=example.wrt, cotangent=example.cotangent, backward_passes=2)
    grade.gradients_match(example, reply)
    second = replace(reply, gradients=reply.second_gradients)
    grade.gradients_match(example, second)


def result_device(grade: Grader, case: Case) -> None:
    """The result lies on the device of the input."""
    example = grade.example(case)
    reply = grade.answer(example)
    wanted = grade.context.device.partition(":")[0]
    grade.holds(
        reply.device.partition(":")[0] == wanted,
        f"the result is on {reply.device} for input on {grade.context.device}",
        example,
        reply,
    )


def observe(grade: Grader, case: Case, describe: Any) -> None:
    """What the candidate does where the specification leaves it free: noted, never failed."""
    example = grade.example(case)
    reply = grade.ask(example.arguments)
    if reply.outcome is Outcome.PASSED:
        grade.note(describe(reply.outputs[0].astype(np.float64)))
    else:
        grade.note(f"{reply.outcome}: {reply.message}")
