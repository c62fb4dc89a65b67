"""The differentiable arrays: every operation's derivative, formats, and how operands mix."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest

from conformance.numerics import array as m
from conformance.numerics.arithmetic import Arithmetic, Honest, Perturbed
from conformance.numerics.array import Array
from conformance.numerics.draw import Draw
from conformance.numerics.dtypes import FLOAT32, FLOAT64, FORMATS, round_to

STEP = 1e-4
BFLOAT16, FLOAT16 = FORMATS["bfloat16"], FORMATS["float16"]


@dataclass(frozen=True)
class Operation:
    """An operation as a function of arrays, and the shapes of its operands.

    `positive` keeps operands away from zero and below; `far_apart` makes their entries differ by
    much more than a step, where a derivative depends on which one is the largest.
    """

    apply: Callable[..., Array]
    shapes: tuple[tuple[int, ...], ...] = ((3, 4),)
    positive: bool = False
    far_apart: bool = False


ROWS = np.array([[2, 0, 2], [1, 2, 2]])
KEEP = np.array([[True, False, True, True], [False, False, True, False], [True, True, False, True]])

OPERATIONS: dict[str, Operation] = {
    "add": Operation(m.add, ((3, 4), (4,))),
    "add, broadcast": Operation(m.add, ((3, 1), (2, 1, 4))),
    "negative": Operation(m.negative),
    "multiply": Operation(m.multiply, ((3, 4), (3, 1))),
    "multiply by itself": Operation(lambda x: x * x * x),
    "divide": Operation(m.divide, ((3, 4), (1, 4)), positive=True),
    "numbers on the left": Operation(lambda x: 2.0 / (3.0 - 1.5 * (0.5 + x)), positive=True),
    "numbers on the right": Operation(lambda x: ((x - 3.0) * 1.5 + 0.5) / 2.0),
    "exp": Operation(m.exp),
    "exp2": Operation(m.exp2),
    "log": Operation(m.log, positive=True),
    "power": Operation(lambda x: m.power(10.0, x)),
    "sqrt": Operation(m.sqrt, positive=True),
    "sin": Operation(m.sin),
    "cos": Operation(m.cos),
    "tanh": Operation(m.tanh),
    "logistic": Operation(m.logistic),
    "square": Operation(m.square),
    "total": Operation(m.total),
    "total, other axis": Operation(lambda x: m.total(x, axis=0)),
    "mean": Operation(lambda x: m.mean(x, axis=-2)),
    "maximum": Operation(lambda x: m.maximum(x, axis=0, through=True), far_apart=True),
    "log_sum_exp": Operation(lambda x: m.log_sum_exp(x, axis=0)),
    "matmul": Operation(m.matmul, ((2, 3, 4), (4, 5))),
    "matmul, broadcast": Operation(m.matmul, ((2, 1, 3, 4), (3, 4, 2))),
    "matmul of matrices": Operation(lambda x, y: x @ y, ((3, 4), (4, 2))),
    "reshape": Operation(lambda x: m.reshape(x, (2, 6)) * np.arange(6.0)),
    "swap": Operation(lambda x: m.swap(x) * np.arange(3.0)),
    "swap, other axes": Operation(lambda x: m.swap(x, 0, 2), ((2, 3, 4),)),
    "broadcast_to": Operation(lambda x: m.broadcast_to(x, (5, 3, 4)), ((3, 1),)),
    "take": Operation(lambda x: m.take(x, ROWS)),
    "take, slices": Operation(lambda x: x[..., 1::2]),
    "stack": Operation(lambda x, y: m.stack([x, y, x], axis=1), ((3, 4), (3, 4))),
    "where": Operation(lambda x, y: m.where(KEEP, x, y), ((3, 4), (1, 4))),
    "where, constant": Operation(lambda x: m.where(KEEP, x, -np.inf)[0, 2:]),
    "cast": Operation(lambda x: m.cast(x, FLOAT32)),
    "upcast": Operation(m.upcast),
    "rounded": Operation(lambda x: m.rounded(x, FLOAT64)),  # steps have no slope; these are fine
}

NOT_DIFFERENTIATED = {"constant", "fresh", "detach", "gradients"}


def _operands(operation: Operation, draw: Draw) -> list[Any]:
    operands = []
    for shape in operation.shapes:
        values = draw.normal(*shape)
        if operation.positive:
            values = 0.5 + np.abs(values)
        if operation.far_apart:
            values = draw.permutation(values.size).reshape(shape).astype(np.float64)
        operands.append(values)
    return operands


def _apply(operation: Operation, operands: list[Any], arithmetic: Arithmetic) -> Any:
    wrapped = [Array(value, FLOAT64, arithmetic, needs_gradient=True) for value in operands]
    return operation.apply(*wrapped), wrapped


def _loss(operation: Operation, operands: list[Any], cotangent: Any) -> float:
    output, _ = _apply(operation, operands, Arithmetic())
    return float((output.value * cotangent).sum())


def _central_differences(
    operation: Operation, operands: list[Any], which: int, cotangent: Any
) -> Any:
    """Fourth-order central differences of the loss with respect to one operand."""
    found = np.zeros_like(operands[which])
    for index in np.ndindex(found.shape):

        def at(steps: float, index: tuple[int, ...] = index) -> float:
            moved = [value.copy() for value in operands]
            moved[which][index] += steps * STEP
            return _loss(operation, moved, cotangent)

        found[index] = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * STEP)
    return found


@pytest.mark.parametrize("name", OPERATIONS)
def test_gradient_equals_central_differences(name: str) -> None:
    operation, draw = OPERATIONS[name], Draw("array", name)
    operands = _operands(operation, draw)
    output, wrapped = _apply(operation, operands, Arithmetic())
    cotangent = draw.normal(*output.shape)
    found = m.gradients(output, cotangent, wrapped)
    for which, gradient in enumerate(found):
        expected = _central_differences(operation, operands, which, cotangent)
        assert gradient.shape == operands[which].shape
        largest = np.abs(expected).max()
        assert np.abs(gradient - expected).max() < 1e-9 * max(largest, 1.0)


def test_every_operation_is_differentiated_here() -> None:
    public = {
        name
        for name, value in vars(m).items()
        if inspect.isfunction(value) and value.__module__ == m.__name__ and not name.startswith("_")
    }
    covered = {name.partition(",")[0].partition(" ")[0] for name in OPERATIONS}
    assert public - NOT_DIFFERENTIATED <= covered


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("arithmetic", [Perturbed(3), Honest("pairwise")], ids=["moved", "rounded"])
def test_inexact_arithmetic_stays_near_the_exact_result(name: str, arithmetic: Arithmetic) -> None:
    operation, draw = OPERATIONS[name], Draw("array", name)
    operands = [round_to(value, FLOAT32) for value in _operands(operation, draw)]
    exact, _ = _apply(operation, operands, Arithmetic())
    wrapped = [Array(value, FLOAT32, arithmetic, needs_gradient=True) for value in operands]
    output = operation.apply(*wrapped)
    finite = np.isfinite(exact.value)
    assert np.array_equal(finite, np.isfinite(output.value))
    error = np.abs(output.value[finite] - exact.value[finite])
    assert error.max() <= 64 * FLOAT32.unit * np.abs(exact.value[finite]).max()
    gradients = m.gradients(output, np.ones(output.shape), wrapped)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_maximum_is_a_constant_unless_told_otherwise() -> None:
    x = Array(np.array([1.0, 3.0, 2.0]), FLOAT64, Arithmetic(), needs_gradient=True)
    assert m.gradients(x * m.maximum(x), np.ones(3), [x])[0].tolist() == [3.0, 3.0, 3.0]
    through = m.gradients(x * m.maximum(x, through=True), np.ones(3), [x])[0]
    assert through.tolist() == [3.0, 3.0 + 6.0, 3.0]


def test_ties_of_a_maximum_give_the_derivative_to_the_first() -> None:
    x = Array(np.array([[1.0, 3.0, 3.0]]), FLOAT64, Arithmetic(), needs_gradient=True)
    assert m.gradients(m.maximum(x, through=True), np.ones((1, 1)), [x])[0].tolist() == [[0, 1, 0]]


def test_rounding_on_purpose_happens_in_exact_arithmetic_too() -> None:
    x = Array(np.array([1.0, 1.0 + 2.0**-30]), FLOAT64, Arithmetic(), needs_gradient=True)
    rounded = m.rounded(x, FLOAT32)
    assert rounded.value.tolist() == [1.0, 1.0]
    assert m.gradients(rounded, np.array([2.0, 3.0]), [x])[0].tolist() == [2.0, 3.0]


def test_detached_values_get_no_gradient() -> None:
    x = Array(np.array([2.0]), FLOAT64, Arithmetic(), needs_gradient=True)
    assert m.gradients(x * m.detach(x), np.ones(1), [x])[0].tolist() == [2.0]


def test_an_array_that_takes_no_part_gets_zeros() -> None:
    x, y = (Array(np.ones(2), FLOAT64, Arithmetic(), needs_gradient=True) for _ in range(2))
    assert m.gradients(x * 2.0, np.ones(2), [y])[0].tolist() == [0.0, 0.0]


def test_entries_that_were_not_chosen_get_exactly_zero() -> None:
    x = Array(np.array([1.0, -np.inf]), FLOAT64, Arithmetic(), needs_gradient=True)
    kept = m.where(np.array([True, False]), x, 0.0)
    assert m.gradients(m.exp(kept), np.ones(2), [x])[0].tolist() == [np.e, 0.0]


def test_numpy_operands_on_the_left_are_left_to_the_class() -> None:
    x = Array(np.arange(3.0), FLOAT32, Arithmetic())
    result = np.array([1.0, 2.0, 3.0]) * x
    assert isinstance(result, Array)
    assert result.value.tolist() == [0.0, 2.0, 6.0]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("float32", "float32", "float32"),
        ("bfloat16", "float32", "float32"),
        ("float16", "float64", "float64"),
        ("bfloat16", "float16", "float32"),
        ("bfloat16", "bfloat16", "bfloat16"),
    ],
)
def test_formats_follow_type_promotion(left: str, right: str, expected: str) -> None:
    x, y = (Array(np.ones(2), FORMATS[name], Arithmetic()) for name in (left, right))
    for result in (x + y, x * y, x / y, m.matmul(m.reshape(x, (1, 2)), m.reshape(y, (2, 1)))):
        assert result.format.name == expected


def test_bare_numbers_take_the_format_of_the_array() -> None:
    x = Array(np.ones(2), BFLOAT16, Honest("running"))
    assert (x * 1.001).format is BFLOAT16
    assert (x + 2.0**-12).value.tolist() == [1.0, 1.0]


def test_cast_rounds_downwards_and_keeps_numbers_upwards() -> None:
    x = Array(np.array([1.0 + 2.0**-20]), FLOAT32, Honest("running"), needs_gradient=True)
    assert m.cast(x, BFLOAT16).value.tolist() == [1.0]
    assert m.upcast(m.cast(x, BFLOAT16)).format is FLOAT32
    assert m.upcast(x) is x
    wide = m.cast(Array(np.array([0.1]), FLOAT16, Honest("running")), FLOAT64)
    assert wide.value.tolist() == [0.1]


def test_gradient_of_a_cast_has_the_format_of_the_operand() -> None:
    x = Array(np.array([1.0]), BFLOAT16, Honest("running"), needs_gradient=True)
    gradient = m.gradients(m.upcast(x) * (1.0 + 2.0**-12), np.ones(1), [x])[0]
    assert gradient.tolist() == [1.0]  # 1 + 2^-12 is no bfloat16 number


def test_gradient_of_rows_that_were_taken_repeatedly_adds_up() -> None:
    table = Array(np.zeros((4, 2)), FLOAT32, Arithmetic(), needs_gradient=True)
    taken = m.take(table, np.array([[1, 1], [3, 1]]))
    gradient = m.gradients(taken, np.ones((2, 2, 2)), [table])[0]
    assert gradient.tolist() == [[0, 0], [3, 3], [0, 0], [1, 1]]


def test_fifty_digits_go_through_the_same_definitions() -> None:
    exact = Arithmetic()
    exact.numbers = object
    with mpmath.workdps(50):
        value = np.array([mpmath.mpf(1) / 3], dtype=object)
        x = Array(value, FLOAT64, exact, needs_gradient=True)
        output = m.exp(m.sqrt(x)) / 3.0
        gradient = m.gradients(output, np.ones(1), [x])[0]
        expected = mpmath.exp(mpmath.sqrt(value[0])) / 3
        slope = expected / (2 * mpmath.sqrt(value[0]))
        assert abs(output.value[0] - expected) < mpmath.mpf(10) ** -48
        assert abs(gradient[0] - slope) < mpmath.mpf(10) ** -48
