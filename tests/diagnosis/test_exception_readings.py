"""What is read out of exceptions, on the texts that torch and Python really give."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import einops
import numpy as np
import pytest
import torch
from torch import Tensor, nn, ones

from conformance.candidate.inprocess import local_caller
from conformance.candidate.messages import Call, Outcome, Reply
from conformance.diagnosis import exceptions
from conformance.diagnosis.exceptions import reading

X = np.ones((2, 3), np.float32)
Function = Callable[[Tensor], Any]


def reply(function: Function, wrt: tuple[str, ...] = (), **how: Any) -> Reply:
    """What comes back when a candidate runs `function` on ones (2, 3)."""
    caller = local_caller({"run_silu": lambda in_features: function(in_features)})
    arguments = {"in_features": X}
    return caller.call(Call("run_silu", arguments, wrt=wrt, cotangent=X if wrt else None, **how))


def message(function: Function, *wrt: str, **how: Any) -> str:
    """How the exception of a candidate comes back."""
    found = reply(function, wrt, **how)
    assert found.outcome is Outcome.RAISED
    return found.message


def overwrites_what_is_saved(x: Tensor) -> Tensor:
    y = x.sigmoid()
    y.mul_(2.0)
    return y


def unpacks_three(x: Tensor) -> Tensor:
    batch, seq, width = x.shape
    return x.view(batch, seq, width)


def unpacks_one(x: Tensor) -> Tensor:
    (width,) = x.shape
    return x.view(width)


def unpacks_three_at_least(x: Tensor) -> Tensor:
    *_, heads, seq, width = x.shape
    return x.view(heads, seq, width)


def made_in_inference_mode(x: Tensor) -> Tensor:
    with torch.inference_mode():
        table = ones(3)
    return x * table


def writes_past_no_gradient(x: Tensor) -> Tensor:
    x.requires_grad_()
    return x.add_(1.0)


def two_passes_over_one_graph(x: Tensor) -> Tensor:
    result = x.requires_grad_().exp().sum()
    result.backward()
    result.backward()
    return result


def endless(x: Tensor) -> Tensor:
    return endless(x)


def one_argument(x: Tensor) -> Tensor:
    return x


def looks_up_floats(x: Tensor) -> Tensor:
    return nn.functional.embedding(x, ones(4, 4))


def writes_another_dtype(x: Tensor) -> Tensor:
    x[torch.tensor([0, 1])] = ones(2, 3, dtype=torch.float64)
    return x


def loads(**state: Tensor) -> Function:
    def load(x: Tensor) -> Any:
        return nn.Linear(3, 2, bias=False).load_state_dict(state)

    return load


HALF = torch.bfloat16
ELSEWHERE = torch.device("meta")

READINGS: list[tuple[Function, str]] = [
    (writes_past_no_gradient, "an operation in place overwrites"),
    (two_passes_over_one_graph, "the graph serves one backward pass only"),
    (lambda x: np.exp(x.requires_grad_()), "leaves torch for NumPy"),
    (lambda x: x.requires_grad_().numpy(), "leaves torch for NumPy"),
    (unpacks_three, "into 3 names, so it runs for 3 axes only"),
    (unpacks_one, "into 1 names, so it runs for 1 axes only"),
    (unpacks_three_at_least, "a shape that must have 3 axes at least"),
    (lambda x: x.T.view(-1), "`view` needs memory in order"),
    (lambda x: x[:0].reshape(0, -1, 3), "cannot be worked out where another axis has length 0"),
    (lambda x: torch.bmm(ones(2, 3, 3).double(), ones(2, 3, 3)), "a float64 and a float32 tensor"),
    (
        lambda x: torch.einsum("zab,bc->zac", ones(2, 3, 3).half(), x.T),
        "a float16 and a float32 tensor",
    ),
    (lambda x: x.double() @ x.T, "a product of float64 and float32"),
    (lambda x: x.to(HALF) @ x.T, "a product of bfloat16 and float32"),
    (lambda x: nn.functional.linear(x, x.to(HALF)), "a product of float32 and bfloat16"),
    (lambda x: x[0].double() @ x[0], "two dtypes meet"),
    (lambda x: x.double() @ x[0], "two dtypes meet"),
    (lambda x: nn.functional.layer_norm(x, (3,), x[0].double()), "two dtypes meet"),
    (writes_another_dtype, "two dtypes meet"),
    (lambda x: torch.lerp(x, x.double(), 0.5), "two dtypes meet"),
    (lambda x: x.masked_fill(x, 0.0), "a mask is used that is not of dtype bool"),
    (lambda x: torch.where(x, x, 0.0), "a mask is used that is not of dtype bool"),
    (lambda x: ~x, "a mask is used that is not of dtype bool"),
    (looks_up_floats, "numbers that are not integers"),
    (lambda x: x[x], "numbers that are not integers"),
    (lambda x: x if x > 0 else -x, "as if it were one"),
    (lambda x: x * x.item(), "as if it were one"),
    (lambda x: x * int(x), "as if it were one"),
    (lambda x: torch.softmax(x.long(), -1), "torch does not have for Long"),
    (lambda x: x + ones(2, 3, device=ELSEWHERE), "two devices meet"),
    (lambda x: x.view(3, 3), "fixed lengths"),
    (lambda x: x.unflatten(-1, (2, -1)), "fixed lengths"),
    (lambda x: x.sum(2), "axis 2 is written down"),
    (lambda x: x.transpose(-3, -2), "axis -3 is written down"),
    (lambda x: x.permute(0, 2, 1), "number of axes is written down"),
    (lambda x: x[0].mT, "number of axes is written down"),
    (loads(weight=ones(3, 2)), "a module with other lengths"),
    (lambda x: x @ x, "inner lengths differ"),
    (lambda x: x @ x[:, 0], "inner lengths differ"),
    (lambda x: x[0] @ x[:, 0], "inner lengths differ"),
    (lambda x: ones(2, 2, 3) @ ones(2, 4, 5), "inner lengths differ"),
    (lambda x: torch.einsum("ab,bc->ac", x, x), "inner lengths differ"),
    (lambda x: torch.cat((x, x.T)), "joined whose other lengths differ"),
    (lambda x: torch.stack((x, x.T)), "joined whose other lengths differ"),
    (lambda x: x + x.T, "lengths 3 and 2 meet"),
    (lambda x: x[0].clone().add_(x), "cannot grow its target"),
    (lambda x: x[torch.tensor([2])], "beyond the end of a table"),
    (lambda x: nn.functional.embedding(torch.tensor([2]), x), "beyond the end of a table"),
    (lambda x: x.narrow(0, 1, 2), "beyond the end of a table"),
    (lambda x: x.masked_fill(None, 0.0), "may be left out (None)"),
    (lambda x: None @ x, "may be left out (None)"),
    (lambda x: None.to(x.dtype), "may be left out (None)"),
    (lambda x: einops.rearrange(x, "a b c -> a c b"), "fits one number of axes only"),
    (lambda x: torch.einsum("abc,cd->abd", x, x.T), "fits one number of axes only"),
    (lambda x: einops.rearrange(x, "a (h b) -> a h b", h=2), "does not fit this input"),
    (lambda x: {}["attn.q_proj.weight"] @ x, "by a name that the dictionary does not have"),
    (loads(weights=ones(2, 3)), "by a name that the dictionary does not have"),
    (lambda x: one_argument(y=x), "the function takes other arguments"),
    (lambda x: one_argument(), "the function takes other arguments"),
    (lambda x: one_argument(x, x), "the function takes other arguments"),
    (endless, "it calls itself without end"),
    (lambda x: x.expand(3, 3), "cannot be broadcast"),
]
"""Code that raises on ones (2, 3), and a part of what is read out of it."""

IN_BACKWARD: list[tuple[Function, str]] = [
    (overwrites_what_is_saved, "an operation in place overwrites"),
    (lambda x: ones(2, 3) * x.detach().sum().backward(), "the graph is cut"),
    (made_in_inference_mode, "made in inference mode"),
]
"""The same where the gradient of the input is asked for."""


@pytest.mark.parametrize(("function", "words"), READINGS)
def test_an_exception_is_read(function: Function, words: str) -> None:
    said = message(function)
    assert words in reading(said), said


@pytest.mark.parametrize(("function", "words"), IN_BACKWARD)
def test_an_exception_of_a_differentiated_call_is_read(function: Function, words: str) -> None:
    said = message(function, "in_features")
    assert words in reading(said), said


def test_every_kind_is_read_out_of_a_real_exception() -> None:
    said = [message(function) for function, _ in READINGS]
    said += [message(function, "in_features") for function, _ in IN_BACKWARD]
    kinds = [expression for expression, _ in exceptions._KINDS]
    told = {next((kind for kind in kinds if re.search(kind, text)), None) for text in said}
    assert [kind for kind in kinds if kind not in told] == []


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.no_such_method(),
        lambda x: 1 / 0,
        lambda x: torch.linalg.cholesky(-ones(3, 3)),
    ],
)
def test_nothing_is_read_out_of_other_exceptions(function: Function) -> None:
    assert reading(message(function)) == ""
