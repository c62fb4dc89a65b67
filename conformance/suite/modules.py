"""Checks of the module form: the classes that a candidate exposes beside its adapters.

Shared by all components that have a class in the specification; the component's own file names the
requirement and the form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from conformance.candidate.messages import ModuleCall, Outcome, Reply
from conformance.numerics import ensemble
from conformance.numerics.dtypes import FORMATS, FloatArray
from conformance.numerics.ensemble import Bounds, Question
from conformance.suite.case import Case, cast_arguments
from conformance.suite.failure import CheckFailure
from conformance.suite.grader import Example, Grader

FALSE_ALARM = 1e-7
"""Chance that a correct initialisation is called wrong, per check."""


@dataclass(frozen=True)
class ModuleForm:
    """A class of the specification.

    `constructor` are small sizes to build it with. `parameters` maps the adapter's argument (or the
    key inside `weights`) to the name that the parameter should have; an empty name where the class
    has a single parameter whose name is its own affair. `inputs` are the adapter's arguments that
    `forward` takes, in order.
    """

    class_name: str
    constructor: Mapping[str, Any]
    parameters: Mapping[str, str]
    inputs: tuple[str, ...]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def build(grade: Grader, form: ModuleForm, **more: Any) -> tuple[Reply, Example]:
    """Construct the class; CheckFailure when that does not work."""
    constructor = {**form.constructor, **more.pop("constructor", {})}
    example = Example(constructor, "construction", f"{form.class_name} built by keyword")
    call = ModuleCall(class_name=form.class_name, constructor=constructor, **more)
    reply = grade.context.caller.call(call)
    if reply.outcome is not Outcome.PASSED:
        outcome = Outcome.RAISED if reply.outcome is Outcome.NOT_IMPLEMENTED else reply.outcome
        raise CheckFailure(outcome, reply.message, grade.evidence(example, reply))
    return reply, example


def constructs(grade: Grader, form: ModuleForm) -> None:
    """Built by the keywords of the specification, with exactly its parameters, all trainable."""
    reply, example = build(grade, form)
    found = reply.module["parameters"]
    wanted = sorted(form.shapes.values())
    got = sorted(tuple(p["shape"]) for p in found)
    grade.holds(got == wanted, f"parameters of shapes {got} instead of {wanted}", example, reply)
    frozen = [p["name"] for p in found if not p["requires_grad"]]
    grade.holds(not frozen, f"not trainable: {', '.join(frozen)}", example, reply)


def names(grade: Grader, form: ModuleForm) -> None:
    """The state dict has the names of the course's contract."""
    reply, example = build(grade, form)
    got = sorted(p["name"] for p in reply.module["state"])
    wanted = sorted(form.parameters.values())
    grade.holds(got == wanted, f"state dict {got} instead of {wanted}", example, reply)


def state_has_parameters_only(grade: Grader, form: ModuleForm) -> None:
    """No table is saved with the weights."""
    reply, example = build(grade, form)
    parameters = {p["name"] for p in reply.module["parameters"]}
    extra = [entry["name"] for entry in reply.module["state"] if entry["name"] not in parameters]
    grade.holds(
        not extra, f"the state dict holds more than parameters: {', '.join(extra)}", example, reply
    )


def honours_dtype(grade: Grader, form: ModuleForm) -> None:
    """`dtype` at construction, and `.to(dtype)` afterwards, decide the dtype of every parameter."""
    for how in ({"constructor": {"dtype": grade.dtype}}, {"convert": grade.dtype}):
        reply, example = build(grade, form, **how)
        wrong = [p["name"] for p in reply.module["parameters"] if p["dtype"] != grade.dtype]
        grade.holds(
            not wrong,
            f"not {grade.dtype} when {'built' if 'constructor' in how else 'converted'} so: "
            f"{', '.join(wrong)}",
            example,
            reply,
        )


def forward_matches(grade: Grader, form: ModuleForm, case: Case) -> None:
    """With given weights, result and gradients of input and parameters are those of the definition."""
    arguments = cast_arguments(case.arguments("float32"), "float32")
    arguments = cast_arguments(_widen(arguments), grade.dtype)
    constructor = {name: arguments.get(name, value) for name, value in form.constructor.items()}
    state, wrt = _state(grade, form, constructor, arguments)
    example = Example(arguments, case.name, case.why, wrt)
    cotangent = grade.cotangent(example)
    found = ensemble.bounds(
        Question(
            grade.component.oracle,
            arguments,
            wrt=wrt,
            cotangent=cotangent,
            pooled=grade.component.pooled,
        )
    )
    reply, _ = build(
        grade,
        form,
        constructor={**constructor, "dtype": grade.dtype} if state else constructor,
        state=state or None,
        inputs=tuple(arguments[name] for name in form.inputs),
        cotangent=cotangent,
    )
    _compare(grade, form, replace(example, bounds=found), reply, found)


def _widen(arguments: Mapping[str, Any]) -> dict[str, Any]:
    def one(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: one(item) for key, item in value.items()}
        is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        return value.astype(np.float64) if is_float else value

    return {name: one(value) for name, value in arguments.items()}


def _lookup(arguments: Mapping[str, Any], name: str) -> Any:
    holder, _, key = name.partition("/")
    return arguments[holder][key] if key else arguments[holder]


def _state(
    grade: Grader, form: ModuleForm, constructor: Mapping[str, Any], arguments: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The state dict to load, and what gradients are asked for."""
    own = form.parameters
    if list(own.values()) == [""]:
        reply, example = build(grade, form, constructor=constructor)
        found = [p["name"] for p in reply.module["parameters"]]
        grade.holds(len(found) == 1, f"{len(found)} parameters instead of one", example, reply)
        own = {name: found[0] for name in own}
    state = {to: _lookup(arguments, name) for name, to in own.items()}
    first = arguments[form.inputs[0]]
    inputs = form.inputs[:1] if np.asarray(first).dtype.kind not in "ib" else ()
    return state, (*inputs, *(name.replace("/", ".") for name in own))


def _compare(
    grade: Grader, form: ModuleForm, example: Example, reply: Reply, found: Bounds
) -> None:
    grade.within(reply.outputs[0], found.result, example, reply, "the result of forward")
    sent = dict(reply.gradients)
    parameters = [name for name in sent if not name.startswith("input")]
    for place, name in enumerate(example.wrt):
        if name in form.inputs:
            got = sent.get("input")
        else:
            own = form.parameters[name.replace(".", "/", 1)] or parameters[0]
            got = sent.get(own)
        what = f"the gradient with respect to {name}"
        if got is None:
            raise CheckFailure(
                Outcome.FAILED, f"no gradient reaches {name}", grade.evidence(example, reply)
            )
        grade.within(got, found.gradients[example.wrt[place]], example, reply, what)


def learns(grade: Grader, form: ModuleForm, case: Case) -> None:
    """A few optimiser steps on the module's own parameters lower a loss."""
    arguments = case.arguments("float32")
    constructor = {name: arguments.get(name, value) for name, value in form.constructor.items()}
    reply, example = build(
        grade,
        form,
        constructor=constructor,
        inputs=tuple(arguments[name] for name in form.inputs),
        steps=5,
    )
    losses = reply.module["losses"]
    grade.holds(
        losses[-1] < losses[0],
        f"the loss goes from {losses[0]:.6g} to {losses[-1]:.6g} in {len(losses) - 1} steps of Adam",
        example,
        reply,
    )


# ---------------------------------------------------------------- initialisation


def starts_at_one(grade: Grader, form: ModuleForm) -> None:
    """Every entry of the only parameter is 1 at the start."""
    reply, example = build(grade, form, return_state=True)
    for name, value in reply.state.items():
        grade.holds(
            bool((value.astype(np.float64) == 1.0).all()),
            f"{name} does not start at one",
            example,
            reply,
        )


def truncated_normal(
    grade: Grader, form: ModuleForm, deviation: Callable[[tuple[int, ...]], float]
) -> None:
    """Parameters are drawn from N(0, s^2), truncated at 3 s; `deviation` gives s by shape.

    The largest distance between the empirical and the wanted distribution function is compared with
    the bound of Dvoretzky, Kiefer and Wolfowitz (Massart 1990), which holds for every sample size.
    """
    reply, example = build(grade, form, return_state=True, seed=1)
    other, _ = build(grade, form, return_state=True, seed=2)
    for name, value in reply.state.items():
        sample = np.sort(value.astype(np.float64).reshape(-1))
        scale = deviation(value.shape)
        largest = float(np.abs(sample).max())
        slack = 1 + 4 * FORMATS["float32"].unit
        grade.holds(
            largest <= 3 * scale * slack,
            f"{name} holds {largest:.4g}, beyond 3 standard deviations of {scale:.4g}",
            example,
            reply,
        )
        distance = _distance(sample, scale)
        bound = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * sample.size))
        grade.holds(
            distance <= bound,
            f"{name} is not drawn from N(0, {scale:.4g}^2) truncated at 3 sigma: its distribution "
            f"function is off by {distance:.3g}, {bound:.3g} is chance (its standard deviation is "
            f"{sample.std():.4g})",
            example,
            reply,
        )
        same = bool((value == other.state[name]).all())
        grade.holds(not same, f"{name} is the same for two seeds", example, reply)


def _distance(sample: FloatArray, scale: float) -> float:
    """Kolmogorov's distance between a sorted sample and the truncated normal distribution."""
    below = np.array([math.erf(x / (scale * math.sqrt(2))) for x in sample.tolist()])
    wanted = 0.5 + 0.5 * below / math.erf(3 / math.sqrt(2))
    steps = np.arange(sample.size + 1) / sample.size
    return float(max(np.abs(wanted - steps[1:]).max(), np.abs(wanted - steps[:-1]).max()))
