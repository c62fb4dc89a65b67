"""Checks of the module form of attention, block and model.

The specification fixes these classes only in part: some keywords of the constructor, and what is
computed. So they are built by what their signature shows, and what right implementations do in
other ways (further arguments, fused projections, names of their own) is noted and never failed.
What can be demanded whatever the names: the number of trainable scalars, that all of them are
registered and reached by gradients, that no tables are saved, that dtypes reach every parameter,
that training lowers a loss; and where the names are those of the course, the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, TypeVar

import numpy as np

from conformance.candidate.messages import Built, ModuleCall, Outcome, Reply
from conformance.numerics.draw import Draw
from conformance.numerics.dtypes import FLOAT32, is_float
from conformance.suite import modules
from conformance.suite.case import Arguments, Case
from conformance.suite.component import Component
from conformance.suite.failure import CheckFailure
from conformance.suite.grader import FATAL, Example, Grader
from conformance.suite.signatures import Match, match, spelled, ways_to_call

ROPE = "RotaryPositionalEmbedding"
THETA = 10000.0
"""The theta that classes have which are not told any (Su et al. 2021, section 3.2.2)."""

LENGTH = 64
OUTPUT_PROJECTIONS = ("output_proj", "o_proj", "out_proj")
"""Names of the output projection; those of the other weights have no such variants."""

POSITIONS = ("max_seq_len", "theta", "token_positions")
"""Arguments of the definition that only rotation needs."""

UNKNOWN = "its forward asks for more than is known"
STEPS = 5
SHOWN = 6

T = TypeVar("T")


def _nothing(arguments: Arguments) -> Mapping[int, str]:
    return {}


@dataclass(frozen=True)
class Composite:
    """A class that the specification names in part, in terms of the adapter's arguments.

    `needed` are the keywords of the course, named like arguments; `known` maps keywords that the
    constructor may take to arguments. `parameters` gives state-dict keys and the arguments that
    hold their values, entries of a dictionary as `weights.ln1.weight`. `rotates` says whether it is
    built with rotary positions. `likely` explains differences in the number of trainable scalars.
    """

    class_name: str
    needed: tuple[str, ...]
    known: Mapping[str, str]
    parameters: Callable[[Arguments], Mapping[str, str]]
    input: str = "in_features"
    rotates: bool = True
    likely: Callable[[Arguments], Mapping[int, str]] = _nothing


@dataclass(frozen=True)
class Use:
    """A class that could be built: with which keywords, and what it then is."""

    form: Composite
    arguments: Arguments
    matched: Match
    reply: Reply

    @property
    def example(self) -> Example:
        """What a reader of a failure is shown."""
        return Example(self.matched.keywords, self.form.class_name, "the class by itself")

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """Name, shape, dtype, requires_grad of every parameter."""
        return list(self.reply.module["parameters"])

    @property
    def told(self) -> bool:
        """Whether the class was told how to rotate: by theta, or by a module that does."""
        return any(self.matched.names.get(n) in self.matched.keywords for n in ("theta", "rope"))

    def ways(self, positions: str = "") -> list[tuple[Any, ...]]:
        """Inputs that `forward` may be called with; at the positions of that argument, if named."""
        at = self.arguments[positions] if positions else None
        return ways_to_call(self.reply.module.get("forward"), self.arguments[self.form.input], at)

    def keys(self) -> dict[str, str] | None:
        """State-dict key -> argument, where names and shapes are those of the course."""
        has = {p["name"]: tuple(p["shape"]) for p in self.parameters}
        for name in OUTPUT_PROJECTIONS:
            keys = {
                key.replace("output_proj", name): argument
                for key, argument in self.form.parameters(self.arguments).items()
            }
            if has == {key: weight(self.arguments, a).shape for key, a in keys.items()}:
                return keys
        return None

    def filled(self) -> dict[str, Any]:
        """Random values for every parameter: nothing then depends on how the class starts."""
        return {p["name"]: _random(p["name"], tuple(p["shape"])) for p in self.parameters}


def weight(arguments: Arguments, path: str) -> Any:
    """The array at `path`: an argument, or an entry of a dictionary as `weights.x`."""
    holder, _, key = path.partition(".")
    return arguments[holder][key] if key else arguments[holder]


def _random(name: str, shape: tuple[int, ...]) -> Any:
    """Gains away from zero and of both signs; matrices that keep the scale of their input."""
    draw = Draw("composite", name)
    if len(shape) < 2:
        values = draw.uniform(*shape, low=0.5, high=1.5) * draw.signs(*shape)
    else:
        values = draw.normal(*shape, scale=shape[-1] ** -0.5)
    return np.asarray(values.astype(np.float32))


# ---------------------------------------------------------------- building


def use(grade: Grader, form: Composite, arguments: Arguments, **more: Any) -> Use | None:
    """The class built for these arguments; None, with a note, where its constructor is not known.

    `more` are further keywords, given where they are taken. CheckFailure when the constructor is
    known and does not work.
    """
    failures: list[CheckFailure] = []
    for matched in _matches(grade, form, arguments, more):
        if matched.problem:
            grade.note(f"{form.class_name} is not checked here: {matched.problem}")
            return None
        try:
            reply = modules.constructed(grade, form.class_name, matched.keywords)
            return Use(form, arguments, matched, reply)
        except CheckFailure as failure:
            failures.append(failure)
            if failure.outcome in FATAL:
                break
    raise failures[0]


def _matches(
    grade: Grader, form: Composite, arguments: Arguments, more: Arguments
) -> Iterator[Match]:
    """Keywords to try: with a module that rotates where only such a one is taken, and without."""
    signature = _signature(grade, form.class_name)
    needed = {name: arguments[name] for name in form.needed}
    known = {name: arguments[of] for name, of in form.known.items() if of in arguments}
    known |= {"device": grade.context.device, "use_rope": form.rotates, **more}
    theta = arguments.get("theta", arguments.get("rope_theta", THETA))
    spare: dict[str, Any] = {
        "eps": 1e-5,
        "dropout": 0.0,
        "bias": False,
        "dtype": "float32",
        "theta": theta,
        "max_seq_len": LENGTH,
    }
    names = spelled((*needed, *known, *spare, "rope"), [a.name for a in signature or ()])
    if "rope" in names:
        rope = _rotation(grade, arguments, theta)
        if rope is not None and form.rotates and "theta" not in names:
            yield match(signature, needed, {**known, "rope": rope}, spare)
        spare["rope"] = rope
    yield match(signature, needed, known, spare)


def _signature(grade: Grader, class_name: str) -> Any:
    reply = modules.constructed(grade, class_name, {}, signature_only=True)
    return reply.module.get("signature")


def _rotation(grade: Grader, arguments: Arguments, theta: float) -> Built | None:
    """The candidate's own rotary embedding, for classes that take one."""
    reply = grade.context.caller.call(ModuleCall(ROPE, {}, signature_only=True))
    wanted = {"theta": theta, "d_k": arguments["d_model"] // arguments["num_heads"]}
    length = arguments.get("max_seq_len", arguments.get("context_length", LENGTH))
    known = {"max_seq_len": length, "device": grade.context.device}
    matched = match(reply.module.get("signature"), wanted, known, {})
    return None if matched.problem else Built(ROPE, matched.keywords)


def _ask(grade: Grader, built: Use, **more: Any) -> Reply:
    """Construct the class once more, in the way that is known to work."""
    keywords = {**built.matched.keywords, **more.pop("keywords", {})}
    return modules.constructed(grade, built.form.class_name, keywords, **more)


def _first(grade: Grader, attempts: Sequence[Callable[[], T]]) -> T:
    """What the first attempt that works gives; the others leave no trace in the margin.

    CheckFailure when none does: the first that says more than that an exception was raised.
    """
    failures: list[CheckFailure] = []
    margin = grade.margin
    for attempt in attempts:
        try:
            return attempt()
        except CheckFailure as failure:
            grade.margin = margin
            failures.append(failure)
            if failure.outcome in FATAL:
                break
    raise next((f for f in failures if f.outcome is not Outcome.RAISED), failures[0])


def _called(grade: Grader, built: Use, **more: Any) -> Reply | None:
    """Forward on the case's input with random parameters; None, with a note, if it is not known."""
    ways = built.ways()
    if not ways:
        grade.note(f"{built.form.class_name} is not run: {UNKNOWN}")
        return None
    how = {"state": built.filled(), "strict": False, **more}
    return _first(grade, [partial(_ask, grade, built, inputs=way, **how) for way in ways])


# ---------------------------------------------------------------- checks


def has_the_parameters(grade: Grader, form: Composite, case: Case) -> None:
    """Built by keyword, with as many trainable scalars as the definition and none that is frozen.

    Whatever the parameters are called and however they are fused.
    """
    built = use(grade, form, case.arguments("float32"))
    if built is None:
        return
    frozen = [p["name"] for p in built.parameters if not p["requires_grad"]]
    grade.holds(not frozen, f"not trainable: {', '.join(frozen)}", built.example, built.reply)
    wanted = sum(weight(built.arguments, a).size for a in form.parameters(built.arguments).values())
    got = sum(prod(p["shape"]) for p in built.parameters)
    message = f"{got} trainable scalars instead of {wanted}"
    hint = form.likely(built.arguments).get(got - wanted)
    message += f": {hint}" if hint else ""
    grade.holds(got == wanted, message, built.example, built.reply)


def keeps_no_tables(grade: Grader, form: Composite, case: Case) -> None:
    """The state dict holds parameters alone: no sines and cosines, no masks."""
    built = use(grade, form, case.arguments("float32"))
    if built is None:
        return
    saved = [b["name"] for b in built.reply.module["buffers"] if b.get("persistent")]
    message = f"the state dict holds {', '.join(saved)} beside parameters"
    grade.holds(not saved, message, built.example, built.reply)


def names_noted(grade: Grader, form: Composite, case: Case) -> None:
    """Names that differ from those of the course are noted, and so is what cannot be built."""
    try:
        built = use(grade, form, case.arguments("float32"))
    except CheckFailure as failure:
        grade.note(f"{failure.outcome}: {failure.message}")
        return
    if built is None:
        return
    names = built.matched.names
    others = [f"{name} as {names[name]}" for name in form.needed if names[name] != name]
    if others:
        grade.note(f"the constructor takes {', '.join(others)}")
    if built.keys() is None:
        found = [p["name"] for p in built.parameters]
        text = ", ".join(found[:SHOWN]) + (", ..." if len(found) > SHOWN else "")
        grade.note(f"parameters of other names or shapes than in the course: {text}")


def honours_dtype(grade: Grader, form: Composite, case: Case) -> None:
    """`dtype` at construction, where it is taken, and `.to(dtype)` decide all parameters' dtype."""
    arguments = case.arguments("float32")
    built = use(grade, form, arguments)
    if built is None:
        return
    replies = {"converted with .to": _ask(grade, built, convert=grade.dtype)}
    with_dtype = use(grade, form, arguments, dtype=grade.dtype)
    if with_dtype is not None and "dtype" in with_dtype.matched.names:
        replies["built with dtype"] = with_dtype.reply
    else:
        grade.note("the constructor takes no dtype")
    for way, reply in replies.items():
        wrong = [p["name"] for p in reply.module["parameters"] if p["dtype"] != grade.dtype]
        message = f"{', '.join(wrong)} not {grade.dtype} when {way}"
        grade.holds(not wrong, message, built.example, reply)


def reaches_every_parameter(grade: Grader, form: Composite, case: Case) -> None:
    """Backward gives every parameter a gradient that is not zero throughout."""
    arguments = case.arguments("float32")
    built = use(grade, form, arguments)
    cotangent = grade.cotangent(Example(arguments, case.name, case.why))
    reply = None if built is None else _called(grade, built, cotangent=cotangent)
    if built is None or reply is None:
        return
    shape = reply.outputs[0].shape
    message = f"forward gives the shape {shape} instead of {cotangent.shape}"
    grade.holds(shape == cotangent.shape, message, built.example, reply)
    for name in (p["name"] for p in built.parameters):
        gradient = reply.gradients.get(name)
        grade.holds(gradient is not None, f"no gradient reaches {name}", built.example, reply)
        some = bool((np.asarray(gradient) != 0).any())
        grade.holds(some, f"the gradient of {name} is zero", built.example, reply)


def learns(grade: Grader, form: Composite, case: Case) -> None:
    """A few optimiser steps on the module's own parameters lower a loss."""
    built = use(grade, form, case.arguments("float32"))
    reply = None if built is None else _called(grade, built, steps=STEPS)
    if built is None or reply is None:
        return
    first, *_, last = reply.module["losses"]
    message = f"{STEPS} steps of Adam take the loss from {first:.6g} to {last:.6g}"
    grade.holds(last < first, message, built.example, reply)


# ---------------------------------------------------------------- values


@dataclass(frozen=True)
class Reading:
    """One way to understand a class: how it is built, and which definition then holds.

    `omitted` are arguments that the definition does not take; `words` say what the class is if this
    reading is the one that holds, and are empty for the expected one. `positions` names the
    argument (seq,) that `forward` has to be given; without it, it is asked at 0 .. seq - 1.
    """

    form: Composite
    component: Component
    arguments: Arguments
    omitted: tuple[str, ...] = ()
    words: str = ""
    positions: str = ""

    def example(self) -> Example:
        """What is evaluated: the result, and gradients of a float input and of every weight."""
        weights = self.form.parameters(self.arguments).values()
        given = {k: v for k, v in self.arguments.items() if k not in self.omitted}
        first = (self.form.input,) if is_float(given[self.form.input]) else ()
        return Example(given, "ordinary", "the class with these weights", (*first, *weights))


def forward_matches(grade: Grader, *readings: Reading, told: bool = False) -> None:
    """With loaded weights, result and gradients are those of the definition in one of its readings.

    Only classes whose parameters have the names and shapes of the course can be given weights. With
    `told`, a class is compared only if its constructor takes what tells it how to rotate. The
    failure that is raised is that of the first reading.
    """
    _first(grade, [partial(_read, grade, reading, told) for reading in readings])


def converted_matches(grade: Grader, *readings: Reading, told: bool = False) -> None:
    """After `.to(dtype)` input of that dtype is answered in it, and right at its accuracy.

    What the class has beside its parameters, such as tables, has to go with them. Gradients are not
    compared; float64 may be answered at float32 accuracy. Otherwise as `forward_matches`.
    """
    _first(grade, [partial(_read, grade, reading, told, grade.dtype) for reading in readings])


def _read(grade: Grader, reading: Reading, told: bool, convert: str | None = None) -> None:
    """Whether a reading holds, in whatever way forward is called."""
    built = use(grade, reading.form, reading.arguments)
    if built is None:
        return
    keys, ways = built.keys(), built.ways(reading.positions)
    problem = "" if built.told or not told else "it is not told how to rotate"
    problem = problem if keys else "its parameters have other names or shapes than in the course"
    if not ways:
        takes_none = reading.positions and built.ways()
        problem = "its forward takes no positions" if takes_none else UNKNOWN
    if problem or keys is None:
        grade.note(f"values of {reading.form.class_name} are not compared: {problem}")
        return
    example, working = reading.example(), FLOAT32 if convert == "float64" else None
    if convert:
        example = replace(example, wrt=())
    example = Grader(reading.component, grade.dtype, grade.context).bounded(example, working)
    _first(grade, [partial(_compared, grade, example, built, way, keys, convert) for way in ways])
    if reading.words:
        grade.note(f"{reading.form.class_name} {reading.words}")


def _compared(
    grade: Grader,
    example: Example,
    built: Use,
    way: tuple[Any, ...],
    keys: Mapping[str, str],
    convert: str | None,
) -> None:
    assert example.bounds is not None
    how = {"cotangent": example.cotangent, "convert": convert}
    state = {key: weight(example.arguments, argument) for key, argument in keys.items()}
    reply = _ask(grade, built, state=state, strict=False, inputs=way, **how)
    message = f"the result is {reply.dtype} after .to({convert})"
    grade.holds(convert in (None, reply.dtype), message, example, reply)
    grade.within(reply.outputs[0], example.bounds.result, example, reply, "the result of forward")
    places = {argument: key for key, argument in keys.items()}
    for name in example.wrt:
        got = reply.gradients.get(places.get(name, "input"))
        grade.holds(got is not None, f"no gradient reaches {name}", example, reply)
        what = f"the gradient with respect to {name}"
        grade.within(got, example.bounds.gradients[name], example, reply, what)
