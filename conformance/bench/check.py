"""Are the values right? Outputs of a benchmark against the definition, and against the reference.

One entry of the batch of one call is held against the definition, with a derived tolerance. All
calls of a sample are held against the reference implementation, which a process without a candidate
runs on the same inputs: products of the results with random vectors that are drawn afterwards.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from conformance.bench.inputs import Pool, entry, float_names, materialise
from conformance.bench.timing import Asked
from conformance.numerics import ensemble
from conformance.numerics.arithmetic import Arithmetic, Perturbed
from conformance.numerics.compare import compare
from conformance.numerics.dtypes import FORMATS
from conformance.numerics.ensemble import MULTIPLE, Bound, Question
from conformance.suite.component import component

SAME = {"float64": 1e-4, "float32": 1e-3, "float16": 2e-2, "bfloat16": 1e-1}
"""How far products may be apart, relative to the norm: above rounding, below another input's."""

SHORT = tuple(Perturbed(seed=run + 1, form=run) for run in range(2))
"""The evaluations from which tolerances are derived here; grading takes twelve."""

LOOSER = 2.0
"""For the deviations that so few evaluations do not show."""

RESULT = ""


def gradient_names(asked: Asked) -> list[str]:
    """The arguments whose gradients are compared: those of the batch."""
    if asked.cotangent is None:
        return []
    arguments = asked.workload.arguments(asked.sizes)
    return [name for name in float_names(arguments, rows=True) if "." not in name]


class Definition:
    """Holds outputs of one component in one format against its definition.

    Tolerances come from a short ensemble on the first input and hold for the later ones: inputs
    are all of one kind, and an ensemble costs more than what is measured. Grading is stricter.
    """

    def __init__(self, asked: Asked, pool: Pool) -> None:
        self.asked = asked
        self.pool = pool
        self._tolerances: dict[str, float] = {}

    def problem(self, which: str, seed: int, output: Any, gradients: Mapping[str, Any]) -> str:
        """What is wrong with the answer to the input of that seed; empty if nothing is."""
        asked = replace(self.asked, which=which)
        shape = asked.workload.output(asked.sizes)
        if tuple(output.shape) != shape:
            return f"the result has the shape {tuple(output.shape)} instead of {shape}"
        if output.dtype != self._dtype():
            return f"the result has the dtype {output.dtype} instead of {self._dtype()}"
        place = secrets.randbelow(shape[0])
        names = gradient_names(asked)
        bounds = self._bounds(asked, seed, place)
        found = compare(output[place : place + 1], bounds[RESULT]).problem
        for name in names:
            if not found and name not in gradients:
                found = f"no gradient reaches {name}"
            if not found:
                part = gradients[name][place : place + 1]
                found = compare(part, bounds[name], f"the gradient with respect to {name}").problem
        return found

    def _dtype(self) -> Any:
        sinusoidal = self.asked.workload.component == "sinusoidal"  # float32 by its contract
        return FORMATS["float32" if sinusoidal else self.asked.dtype].numpy

    def _bounds(self, asked: Asked, seed: int, place: int) -> dict[str, Bound]:
        """Exact values and tolerances of the result and the gradients of one entry."""
        arguments = asked.workload.arguments(asked.sizes)
        values, cotangent = materialise(self.pool, arguments, seed, asked.cotangent)
        owner = component(asked.workload.component)
        names = gradient_names(asked)
        question = Question(
            oracle=owner.oracle,
            arguments=entry(arguments, values, place),
            wrt=tuple(names),
            cotangent=None
            if cotangent is None
            else cotangent[place : place + 1].astype(np.float64),
        )
        exact = ensemble.evaluate(question, Arithmetic())
        keys = [RESULT, *names]
        if not all(key in self._tolerances for key in keys):
            others = [ensemble.evaluate(question, a) for a in SHORT]
            for number, key in enumerate(keys):
                spread = max(float(np.abs(o[number] - exact[number]).max()) for o in others)
                self._tolerances[key] = MULTIPLE * spread + FORMATS[asked.dtype].tiny
        return {
            key: Bound(value, np.full(value.shape, LOOSER * self._tolerances[key]))
            for key, value in zip(keys, exact, strict=True)
        }


def against_reference(got: Any, right: Any, dtype: str) -> str:
    """What is wrong with digests of a sample, given those of the reference; empty if nothing is."""
    if got.shape != right.shape:
        return "calls of a timed sample have no result"
    products, norms = right[:, 0::2], right[:, 1::2]
    with np.errstate(invalid="ignore"):
        off = np.abs(got[:, 0::2] - products) > SAME[dtype] * np.maximum(norms, 1e-30)
    bad = off | ~np.isfinite(got[:, 0::2])
    wrong = int(bad.any(axis=1).sum())
    return f"{wrong} of {len(got)} calls of a timed sample gave a wrong result" if wrong else ""


def peek_differs(peek: Any, places: Sequence[float], output: Any) -> bool:
    """Has the output changed since right after the clock had stopped?"""
    if peek is None or not output.size or len(peek) != len(places):
        return bool(output.size)
    flat = output.reshape(-1).astype(np.float64)
    now = np.array([flat[int(place * flat.size)] for place in places])
    return not np.array_equal(now, np.asarray(peek, dtype=np.float64), equal_nan=True)
