"""Do the suite's wrong definitions compute what the torch faults of the same name compute?

    python tests/agreement.py --component rmsnorm

Each fault of `components/*/faults.py` is evaluated on the inputs that show the fault of that id in
`faulty/`, and on the component's default input, and the two answers are compared. One that refuses
some inputs is evaluated on the component's small cases as well: it must raise where the torch fault
raises.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import corpus
import ml_dtypes
import numpy as np
import torch

from conformance.diagnosis.catalogue import Fault, faults
from conformance.numerics import ensemble
from conformance.numerics.arithmetic import Arithmetic
from conformance.spec import Level, component_names
from conformance.suite.case import size
from conformance.suite.component import component

witnesses = corpus.module("witnesses")

AGREE = {torch.float64: 1e-5, torch.float32: 1e-4, torch.float16: 0.02, torch.bfloat16: 0.15}
"""Largest difference over largest magnitude: generous, it tells a mistake from rounding."""

DIFFERENT = 1e-4
"""A wrong definition differs from the right one by more than this, relatively."""

ROUNDED = 0.01
"""The same for float32 in the cases, some of which are made to be hard on rounding."""

LARGEST = 3000
"""Cases with more entries than this are left out."""


@dataclass(frozen=True)
class Disagreement:
    """A fault whose two forms differ, and how."""

    fault: str
    problem: str


def to_numpy(value: Any) -> Any:
    """Torch arguments as the suite's own: arrays, and dictionaries of arrays."""
    if isinstance(value, dict):
        return {name: to_numpy(part) for name, part in value.items()}
    if not torch.is_tensor(value):
        return value
    if value.dtype == torch.bfloat16:
        return value.detach().float().numpy().astype(ml_dtypes.bfloat16)
    return value.detach().numpy().copy()


def to_torch(value: Any) -> Any:
    """The suite's arguments as torch's: tensors, and dictionaries of tensors."""
    if isinstance(value, dict):
        return {name: to_torch(part) for name, part in value.items()}
    return torch.tensor(value) if isinstance(value, np.ndarray) else value


def predicted(oracle: Any, fault: Fault, arguments: Any, wrt: tuple[str, ...]) -> list[Any]:
    """Result and gradients of a definition, exactly."""
    right = component(fault.component)
    shape = evaluate(oracle, arguments, (), None)[0].shape
    cotangent = witnesses.draw(*shape, seed=77).double().numpy()
    return evaluate(oracle, arguments, wrt, cotangent, right.pooled)


def evaluate(
    oracle: Any, arguments: Any, wrt: Any, cotangent: Any, pooled: Any = (-1,)
) -> list[Any]:
    question = ensemble.Question(oracle, arguments, None, wrt, cotangent, pooled)
    with np.errstate(all="ignore"):
        return ensemble.evaluate(question, Arithmetic())


def answered(function: Any, arguments: Any, wrt: tuple[str, ...]) -> list[Any]:
    """Result and gradients of a torch fault."""
    leaves = {}
    for name, value in arguments.items():
        leaves |= (
            {f"{name}.{key}": part for key, part in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
    for name in wrt:
        leaves[name].requires_grad_()
    output = function(**arguments)
    values = [output]
    if wrt:
        cotangent = witnesses.draw(*output.shape, seed=77).to(output.dtype)
        inputs = [leaves[name] for name in wrt]
        if not output.requires_grad:
            return [output.detach().double().numpy(), *(np.zeros(i.shape) for i in inputs)]
        found = torch.autograd.grad(output, inputs, cotangent, allow_unused=True)
        values += [
            torch.zeros_like(i) if g is None else g for g, i in zip(found, inputs, strict=True)
        ]
    return [value.detach().double().numpy() for value in values]


def difference(left: Any, right: Any) -> float:
    """Largest difference over the largest magnitude of `right`; infinite for other shapes."""
    if left.shape != right.shape:
        return float("inf")
    unfit = (np.isfinite(left) != np.isfinite(right)).any()
    finite = np.isfinite(right)
    if unfit:
        return float("inf")
    largest = max(float(np.abs(right[finite]).max(initial=0.0)), 1e-30)
    return float(np.abs(left[finite] - right[finite]).max(initial=0.0)) / largest


def compare(fault: Fault, entry: Any) -> list[Disagreement]:
    """How the wrong definition and the torch fault differ; and whether it is wrong at all."""
    owner = component(fault.component)
    oracle = fault.inside(owner.oracle)
    found: list[Disagreement] = []
    for which, calls in (("its input", entry.witness()), ("the default", None)):
        default = calls is None
        arguments = witnesses.DEFAULT[fault.component]() if calls is None else calls[-1]
        wrt = entry.wrt if fault.visible == "gradient" and not default else ()
        dtypes = {v.dtype for v in arguments.values() if torch.is_tensor(v)}
        half = dtypes & {torch.float16, torch.bfloat16}
        if not half and fault.visible != "gradient":
            arguments = witnesses.double(arguments)
        numbers = to_numpy(arguments)
        try:
            want = answered(entry.function, arguments, wrt)
        except Exception as error:
            if not default:
                found.append(Disagreement(fault.id, f"the torch fault raises: {error}"))
            continue
        try:
            got = predicted(oracle, fault, numbers, wrt)
        except Exception as error:
            found.append(
                Disagreement(fault.id, f"on {which}: {type(error).__name__}: {str(error)[:200]}")
            )
            continue
        limit = max([AGREE[d] for d in half], default=AGREE[torch.float32])
        worst = max(difference(g, w) for g, w in zip(got, want, strict=True))
        if not worst <= limit:
            found.append(Disagreement(fault.id, f"on {which}: off by {worst:.3g}"))
        right = predicted(owner.oracle, fault, numbers, wrt)
        if got[0].shape == right[0].shape and not default:
            away = max(difference(g, r) for g, r in zip(got, right, strict=True))
            if not away > DIFFERENT:
                found.append(Disagreement(fault.id, "is no different from the right definition"))
    return found


def refusals(fault: Fault, entry: Any) -> list[Disagreement]:
    """Where only one of the two forms raises, and where they answer something else."""
    oracle = fault.inside(component(fault.component).oracle)
    found: list[Disagreement] = []
    for which, arguments in inputs(fault, entry):
        numbers = to_numpy(arguments)
        want, got = attempt(entry.function, arguments), refused(oracle, numbers)
        if isinstance(want, str) != isinstance(got, str):
            found.append(
                Disagreement(fault.id, f"on {which}: torch {told(want)}, here {told(got)}")
            )
        elif isinstance(want, str):
            continue
        elif which == "its input":
            found.append(Disagreement(fault.id, "the torch fault raises nothing on its input"))
        elif not difference(got, want) <= ROUNDED:
            found.append(Disagreement(fault.id, f"on {which}: off by {difference(got, want):.3g}"))
    return found


def inputs(fault: Fault, entry: Any) -> Iterator[tuple[str, Any]]:
    """Its own input, the default one, and the small cases of what is demanded."""
    owner = component(fault.component)
    yield "its input", entry.witness()[-1]
    yield "the default", witnesses.DEFAULT[fault.component]()
    for case in owner.cases:
        if "float32" in case.dtypes and owner.requirement(case.requirement).level is not Level.MAY:
            arguments = case.arguments("float32")
            if size(arguments) <= LARGEST:
                yield f"case {case.name}", to_torch(arguments)


def attempt(function: Any, arguments: Any) -> Any:
    """The answer of a torch fault, or what it raises."""
    try:
        return answered(function, arguments, ())[0]
    except Exception as error:  # any exception is the fault
        return type(error).__name__


def refused(oracle: Any, numbers: Any) -> Any:
    """The answer of a wrong definition, or what it refuses with."""
    try:
        return evaluate(oracle, numbers, (), None)[0]
    except ValueError as error:
        return type(error).__name__


def told(result: Any) -> str:
    """What a form does, in a word or two."""
    return f"raises {result}" if isinstance(result, str) else "answers"


def disagreements(name: str, every: int = 1) -> tuple[list[Disagreement], int]:
    """The disagreements of a component, and how many faults were compared: one in `every`."""
    entries = {entry.id: entry for entry in corpus.faults() if entry.component == name}
    chosen = [fault for fault in faults(name).values() if fault.pieces][::every]
    found: list[Disagreement] = []
    for fault in chosen:
        if fault.id not in entries:
            found.append(Disagreement(fault.id, "has no counterpart in tests/faulty"))
        else:
            by = refusals if fault.visible == "crash" else compare
            found += by(fault, entries[fault.id])
    return found, len(chosen)


def main() -> int:
    """Command line; the exit status is 1 when something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--component", action="append")
    options = parser.parse_args()
    problems = 0
    for name in options.component or component_names():
        found, compared = disagreements(name)
        for one in found:
            print(f"{one.fault}: {one.problem}")
        without = [f.id for f in faults(name).values() if not f.pieces]
        unstated = [f.id for f in faults(name).values() if not f.requirements]
        print(f"{name}: {compared} compared, {len(found)} problems")
        print(f"  without pieces ({len(without)}): {', '.join(without)}")
        print(f"  without requirements: {len(unstated)}")
        problems += len(found)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
