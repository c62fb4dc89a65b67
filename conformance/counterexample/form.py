"""One counterexample: what it says, and how that is written as a safetensors file.

The tensors are the arguments (`argument/x`; entries of a dictionary as `argument/weights/key`), the
`cotangent`, and with `/expected` and `/tolerance` the `result` and each `gradient/x`. All else is
the JSON text in the metadata. `docs/counterexamples.md` describes both.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformance import SPEC_VERSION, __version__, adapters
from conformance.adapters import COURSE_FUNCTIONS, OPTIONAL_FUNCTIONS
from conformance.candidate.encode import encode_call
from conformance.candidate.messages import Call, Outcome
from conformance.counterexample.head import ENTRY, SCHEMA, Head
from conformance.errors import InternalError
from conformance.numerics.dtypes import FORMATS
from conformance.numerics.ensemble import Bound, Bounds
from conformance.numerics.tensors import decode, encode
from conformance.report import shape
from conformance.report.shape import Convert, RecordError, read_fields

MOST_CALLS = 100
FUNCTIONS: Mapping[str, str] = {**COURSE_FUNCTIONS, **OPTIONAL_FUNCTIONS}
MODES = ("grad", "no_grad", "inference")


@dataclass(frozen=True)
class Counterexample:
    """One input that made a check fail, and what is needed to ask it again.

    `how` it was asked: layouts, mode, repeat, backward_passes where they are not the usual ones;
    `wrt` names the arguments that were differentiated. `about` says which fact beside the values
    the check looked at (see `judge`), `alone` whether the answer to this one call was wrong. `impl`
    and `options` are those of the command that found it.
    """

    check: str
    requirement: str
    component: str
    function: str
    dtype: str
    arguments: Mapping[str, Any]
    case: str = ""
    why: str = ""
    how: Mapping[str, Any] = field(default_factory=dict)
    wrt: tuple[str, ...] = ()
    cotangent: Any = None
    bounds: Bounds | None = None
    outcome: str = Outcome.FAILED.value
    message: str = ""
    about: tuple[str, ...] = ()
    alone: bool = False
    impl: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def call(self) -> Call:
        """The question, as the check asked it."""
        cotangent = self.cotangent if self.wrt else None
        return Call(self.function, self.arguments, wrt=self.wrt, cotangent=cotangent, **self.how)

    def to_bytes(self) -> bytes:
        """The file; the same bytes for the same counterexample."""
        description = {
            "schema": SCHEMA,
            "suite_version": __version__,
            "spec_version": SPEC_VERSION,
            "check": self.check,
            "requirement": self.requirement,
            "component": self.component,
            "function": self.function,
            "dtype": self.dtype,
            "case": self.case,
            "why": self.why,
            "arguments": list(self.arguments),
            "dictionaries": {n: list(v) for n, v in _dictionaries(self.arguments).items()},
            "parameters": _parameters(self.arguments),
            "how": {name: _plain(value) for name, value in self.how.items()},
            "wrt": list(self.wrt),
            "gradients": list(self.bounds.gradients) if self.bounds else [],
            "failed": {
                "outcome": str(self.outcome),
                "message": self.message,
                "about": list(self.about),
                "alone": self.alone,
            },
            "candidate": {"impl": self.impl, "options": dict(self.options)},
        }
        return encode(self._tensors(), {ENTRY: json.dumps(description, allow_nan=False)})

    def _tensors(self) -> dict[str, np.ndarray]:
        tensors: dict[str, Any] = {}
        for name, value in self.arguments.items():
            if isinstance(value, Mapping):
                tensors |= {f"argument/{name}/{key}": item for key, item in value.items()}
            elif isinstance(value, np.ndarray):
                tensors[f"argument/{name}"] = value
        if self.cotangent is not None:
            tensors["cotangent"] = self.cotangent
        if self.bounds is not None:
            gradients = {f"gradient/{name}": b for name, b in self.bounds.gradients.items()}
            for name, bound in {"result": self.bounds.result, **gradients}.items():
                tensors[f"{name}/expected"] = bound.expected
                tensors[f"{name}/tolerance"] = bound.tolerance
        return {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}


def accepts(function: str, arguments: Mapping[str, Any]) -> bool:
    """Whether an adapter function can be called with these arguments."""
    try:
        inspect.signature(getattr(adapters, function)).bind(**arguments)
    except TypeError:
        return False
    return True


def from_head(head: Head) -> Counterexample:
    """The counterexample in a file whose head has been read; UsageError when it is none."""
    try:
        tensors = decode(head.data)
        found = _assembled(read_fields(head.description, _DESCRIPTION), tensors)
        encode_call(found.call, "")
    except (RecordError, ValueError, InternalError) as error:
        raise head.bad(f"not a counterexample as this suite writes it: {error!s:.500}") from None
    return found


def _assembled(values: Mapping[str, Any], tensors: dict[str, np.ndarray]) -> Counterexample:
    component, function = values["component"], values["function"]
    if FUNCTIONS.get(component) != function or not values["check"].startswith(f"{component}::"):
        raise RecordError("check, component and function do not belong together")
    arguments = {n: _argument(n, values, tensors) for n in values["arguments"]}
    cotangent = tensors.pop("cotangent", None)
    bounds = None
    if "result/expected" in tensors:
        gradients = {name: _bound(f"gradient/{name}", tensors) for name in values["gradients"]}
        bounds = Bounds(_bound("result", tensors), gradients)
        _must_fit(bounds, cotangent)
        missing = [name for name in values["wrt"] if name not in gradients]
        if missing:
            raise RecordError(f"there is no expected gradient of {missing[0]}")
    if not accepts(function, arguments):
        raise RecordError(f"{function} does not take the arguments {', '.join(arguments):.200}")
    if tensors:
        raise RecordError(f"tensor {min(tensors)[:200]!r} belongs to nothing")
    return Counterexample(
        **{name: values[name] for name in ("check", "requirement", "dtype", "case", "why")},
        component=component,
        function=function,
        arguments=arguments,
        how=values["how"],
        wrt=values["wrt"],
        cotangent=cotangent,
        bounds=bounds,
        **values["failed"],
        **values["candidate"],
    )


def _argument(name: str, values: Mapping[str, Any], tensors: dict[str, np.ndarray]) -> Any:
    if name in values["parameters"]:
        return values["parameters"][name]
    if name in values["dictionaries"]:
        keys = values["dictionaries"][name]
        return {key: _taken(f"argument/{name}/{key}", tensors) for key in keys}
    return _taken(f"argument/{name}", tensors)


def _taken(name: str, tensors: dict[str, np.ndarray]) -> np.ndarray:
    try:
        return tensors.pop(name)
    except KeyError:
        raise RecordError(f"the tensor {name[:200]!r} is missing") from None


def _bound(name: str, tensors: dict[str, np.ndarray]) -> Bound:
    expected, tolerance = (_taken(f"{name}/{part}", tensors) for part in ("expected", "tolerance"))
    if expected.dtype != np.float64 or tolerance.dtype.kind != "f":
        raise RecordError(f"{name}: expected values and tolerances are not float64")
    if expected.shape != tolerance.shape:
        raise RecordError(f"{name}: expected values and tolerances differ in shape")
    return Bound(expected, tolerance)


def _must_fit(bounds: Bounds, cotangent: Any) -> None:
    if cotangent is not None and cotangent.shape != bounds.result.expected.shape:
        raise RecordError("the cotangent does not have the shape of the result")


# -- plain values --------------------------------------------------------------------------------


def _dictionaries(arguments: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The arguments that are dictionaries of tensors; the order of their entries is kept."""
    return {name: value for name, value in arguments.items() if isinstance(value, Mapping)}


def _parameters(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are neither tensors nor dictionaries of them."""
    return {
        name: _plain(value)
        for name, value in arguments.items()
        if not isinstance(value, np.ndarray | Mapping)
    }


def _plain(value: Any) -> Any:
    """A value as strict JSON; {"float": "inf"} stands for a number that JSON cannot write."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": str(value)}
    return value


def _parameter(value: Any) -> Any:
    if isinstance(value, Mapping) and set(value) == {"float"}:
        return shape.number(value["float"])
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise RecordError("neither a number, a text, nor null")


def _each_parameter(value: Any) -> dict[str, Any]:
    return {name: _parameter(item) for name, item in shape.mapping(value).items()}


def _few(value: Any) -> int:
    number = shape.count(value)
    if not 1 <= number <= MOST_CALLS:
        raise RecordError(f"not a number from 1 to {MOST_CALLS}")
    return number


def _each_keys(value: Any) -> dict[str, tuple[str, ...]]:
    return {name: shape.texts(item) for name, item in shape.mapping(value).items()}


def _layouts(value: Any) -> dict[str, str]:
    return {name: shape.text(item) for name, item in shape.mapping(value).items()}


def _how(value: Any) -> dict[str, Any]:
    return read_fields(value, _HOW, partial=True)


_HOW: Mapping[str, Convert] = {
    "layouts": _layouts,
    "mode": shape.one_of(MODES),
    "repeat": _few,
    "backward_passes": _few,
}
_FAILED: Mapping[str, Convert] = {
    "outcome": shape.one_of([outcome.value for outcome in Outcome]),
    "message": shape.text,
    "about": shape.texts,
    "alone": shape.flag,
}
_CANDIDATE: Mapping[str, Convert] = {"impl": shape.text, "options": shape.mapping}
_DESCRIPTION: Mapping[str, Convert] = {
    "schema": shape.one_of((SCHEMA,)),
    "suite_version": shape.text,
    "spec_version": shape.text,
    "check": shape.name,
    "requirement": shape.name,
    "component": shape.name,
    "function": shape.name,
    "dtype": shape.one_of(tuple(FORMATS)),
    "case": shape.text,
    "why": shape.text,
    "arguments": shape.texts,
    "dictionaries": _each_keys,
    "parameters": _each_parameter,
    "how": _how,
    "wrt": shape.texts,
    "gradients": shape.texts,
    "failed": lambda value: read_fields(value, _FAILED),
    "candidate": lambda value: read_fields(value, _CANDIDATE),
}
