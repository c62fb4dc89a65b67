"""Checks of the module form: the classes that a candidate exposes beside its adapters.

Shared by all components that have a class in the specification; the component's own folder names
the requirements and the form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.candidate.messages import ModuleCall, Outcome, Reply
from conformance.numerics.dtypes import FLOAT32, FloatArray, is_float
from conformance.suite.case import Arguments, Case, cast_arguments
from conformance.suite.failure import CheckFailure
from conformance.suite.grader import Example, Grader

FALSE_ALARM = 1e-7
"""Chance that a correct initialisation is called wrong, per check."""

ONE = ""
"""Name of a parameter that is the only one of its class and may be called anything."""


@dataclass(frozen=True)
class ModuleForm:
    """A class of the specification, in terms of the adapter function's arguments.

    `constructor` maps its keywords to arguments, `parameters` arguments to state-dict keys;
    `inputs` are the arguments that `forward` takes, in order.
    """

    class_name: str
    constructor: Mapping[str, str]
    parameters: Mapping[str, str]
    inputs: tuple[str, ...]

    def built_with(self, arguments: Arguments) -> dict[str, Any]:
        """The constructor's keywords for the adapter's arguments."""
        return {keyword: arguments[name] for keyword, name in self.constructor.items()}


def build(grade: Grader, form: ModuleForm, arguments: Arguments, **more: Any) -> Reply:
    """Construct the class for these arguments; CheckFailure when that does not work."""
    constructor = {**form.built_with(arguments), **more.pop("keywords", {})}
    return constructed(grade, form.class_name, constructor, **more)


def constructed(
    grade: Grader, class_name: str, constructor: Mapping[str, Any], **more: Any
) -> Reply:
    """One use of a class, built with these keywords; CheckFailure when that does not work."""
    call = ModuleCall(class_name=class_name, constructor=constructor, **more)
    reply = grade.context.caller.call(call)
    if reply.outcome is not Outcome.PASSED:
        outcome = Outcome.RAISED if reply.outcome is Outcome.NOT_IMPLEMENTED else reply.outcome
        example = Example(constructor, class_name, "the class by itself")
        evidence = grade.evidence(example, reply)
        raise CheckFailure(outcome, f"{class_name}: {reply.message}", evidence)
    return reply


def _built(form: ModuleForm, arguments: Arguments) -> Example:
    return Example(form.built_with(arguments), form.class_name, "the class by itself")


def constructs(grade: Grader, form: ModuleForm, case: Case) -> None:
    """Built by its keywords, with exactly the parameters of the specification, all trainable."""
    arguments = case.arguments("float32")
    reply = build(grade, form, arguments)
    example = _built(form, arguments)
    found = reply.module["parameters"]
    wanted = sorted(arguments[name].shape for name in form.parameters)
    got = sorted(tuple(p["shape"]) for p in found)
    grade.holds(got == wanted, f"parameters of shapes {got} instead of {wanted}", example, reply)
    frozen = [p["name"] for p in found if not p["requires_grad"]]
    grade.holds(not frozen, f"not trainable: {', '.join(frozen)}", example, reply)


def state_dict(grade: Grader, form: ModuleForm, case: Case) -> None:
    """The state dict holds the parameters under their names, and no tables."""
    arguments = case.arguments("float32")
    reply = build(grade, form, arguments)
    example = _built(form, arguments)
    parameters = {p["name"] for p in reply.module["parameters"]}
    got = sorted(entry["name"] for entry in reply.module["state"])
    extra = sorted(set(got) - parameters)
    grade.holds(not extra, f"the state dict holds {extra} beside parameters", example, reply)
    wanted = sorted(form.parameters.values())
    if wanted != [ONE]:
        grade.holds(got == wanted, f"state dict {got} instead of {wanted}", example, reply)


def honours_dtype(grade: Grader, form: ModuleForm, case: Case) -> None:
    """`dtype` at construction, and `.to(dtype)` afterwards, decide the dtype of parameters."""
    arguments = case.arguments("float32")
    ways: dict[str, dict[str, Any]] = {
        "built with dtype": {"keywords": {"dtype": grade.dtype}},
        "converted with .to": {"convert": grade.dtype},
    }
    for way, how in ways.items():
        reply = build(grade, form, arguments, **how)
        wrong = [p["name"] for p in reply.module["parameters"] if p["dtype"] != grade.dtype]
        message = f"{', '.join(wrong)} not {grade.dtype} when {way}"
        grade.holds(not wrong, message, _built(form, arguments), reply)


def forward_matches(grade: Grader, form: ModuleForm, case: Case) -> None:
    """With given weights, result and gradients are those of the definition.

    Gradients are taken with respect to the input, where it is a float, and to every parameter.
    """
    arguments = cast_arguments(case.arguments("float64"), grade.dtype)
    names = _parameter_names(grade, form, arguments)
    first = form.inputs[:1] if is_float(arguments[form.inputs[0]]) else ()
    wrt = (*first, *names)
    example = grade.bounded(Example(arguments, case.name, case.why, wrt))
    assert example.bounds is not None
    reply = build(
        grade,
        form,
        arguments,
        keywords={"dtype": grade.dtype} if names else {},
        state={to: arguments[name] for name, to in names.items()} if names else None,
        inputs=tuple(arguments[name] for name in form.inputs),
        cotangent=example.cotangent,
    )
    grade.within(reply.outputs[0], example.bounds.result, example, reply, "the result of forward")
    for name in wrt:
        got = reply.gradients.get("input" if name in first else names[name])
        grade.holds(got is not None, f"no gradient reaches {name}", example, reply)
        what = f"the gradient with respect to {name}"
        grade.within(got, example.bounds.gradients[name], example, reply, what)


def _parameter_names(grade: Grader, form: ModuleForm, arguments: Arguments) -> dict[str, str]:
    """Argument -> state-dict key; an only parameter is asked for its name."""
    if list(form.parameters.values()) != [ONE]:
        return dict(form.parameters)
    reply = build(grade, form, arguments)
    found = [p["name"] for p in reply.module["parameters"]]
    example = _built(form, arguments)
    grade.holds(len(found) == 1, f"{len(found)} parameters instead of one", example, reply)
    return dict.fromkeys(form.parameters, found[0])


def learns(grade: Grader, form: ModuleForm, case: Case) -> None:
    """A few optimiser steps on the module's own parameters lower a loss."""
    arguments = case.arguments("float32")
    inputs = tuple(arguments[name] for name in form.inputs)
    reply = build(grade, form, arguments, inputs=inputs, steps=5)
    first, *_, last = reply.module["losses"]
    message = f"five steps of Adam take the loss from {first:.6g} to {last:.6g}"
    grade.holds(last < first, message, _built(form, arguments), reply)


# ---------------------------------------------------------------- initialisation


def starts_at_one(grade: Grader, form: ModuleForm, case: Case) -> None:
    """Every parameter starts at one."""
    arguments = case.arguments("float32")
    reply = build(grade, form, arguments, return_state=True)
    for name, value in reply.state.items():
        ones = bool((value.astype(np.float64) == 1.0).all())
        grade.holds(ones, f"{name} does not start at one", _built(form, arguments), reply)


def truncated_normal(
    grade: Grader,
    form: ModuleForm,
    arguments: Arguments,
    deviation: Callable[[tuple[int, ...]], float],
) -> None:
    """Parameters are drawn from N(0, s^2), truncated at 3 s; `deviation` gives s by shape.

    The largest distance between the empirical and the wanted distribution function is compared
    with the bound of Dvoretzky, Kiefer and Wolfowitz (Massart 1990), which holds for every size.
    """
    reply = build(grade, form, arguments, return_state=True, seed=1)
    other = build(grade, form, arguments, return_state=True, seed=2)
    example = _built(form, arguments)
    for name, value in reply.state.items():
        sample = np.sort(value.astype(np.float64).reshape(-1))
        problem = _unlike(sample, deviation(value.shape))
        grade.holds(not problem, f"{name} {problem}", example, reply)
        same = bool((value == other.state[name]).all())
        grade.holds(not same, f"{name} is the same for two seeds", example, reply)


def _unlike(sample: FloatArray, scale: float) -> str:
    """How a sorted sample differs from the truncated normal distribution; empty when it fits."""
    largest = float(np.abs(sample).max())
    if largest > 3 * scale * (1 + 4 * FLOAT32.unit):
        return f"holds {largest:.4g}, beyond 3 standard deviations of {scale:.4g}"
    distance = _distance(sample, scale)
    chance = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * sample.size))
    if distance <= chance:
        return ""
    return (
        f"is not drawn from N(0, {scale:.4g}^2) truncated at 3 sigma: its distribution function is "
        f"off by {distance:.3g} where {chance:.3g} can be chance (its standard deviation is "
        f"{sample.std():.4g})"
    )


def _distance(sample: FloatArray, scale: float) -> float:
    """Kolmogorov's distance between a sorted sample and the truncated normal distribution."""
    below = np.array([math.erf(x / (scale * math.sqrt(2))) for x in sample.tolist()])
    wanted = 0.5 + 0.5 * below / math.erf(3 / math.sqrt(2))
    steps = np.arange(sample.size + 1) / sample.size
    return float(max(np.abs(wanted - steps[1:]).max(), np.abs(wanted - steps[:-1]).max()))
