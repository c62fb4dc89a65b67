"""The checks of the module form: right classes pass, each kind of wrong one fails its own check."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from conformance.candidate.inprocess import local_caller
from conformance.suite.check import checks
from conformance.suite.grader import Context
from conformance.suite.profile import PROFILE
from conformance.suite.run import run_check


def missed(component: str, kind: type) -> set[str]:
    """Requirements of the module form that a class does not meet."""
    caller = local_caller({}, classes={kind.__name__: kind})
    context = Context(caller, PROFILE["quick"])
    found = [check for check in checks(component) if check.module]
    assert found
    results = {check.requirement.id: run_check(check, context) for check in found}
    return {name for name, result in results.items() if result.outcome != "passed"}


class Linear(nn.Module):
    """Right; the others are made from it."""

    def __init__(
        self, in_features: int, out_features: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(
            torch.empty(out_features, in_features, device=device, dtype=dtype)
        )
        self.reset()

    def reset(self) -> None:
        sigma = (2 / sum(self.weight.shape)) ** 0.5
        nn.init.trunc_normal_(self.weight, 0.0, sigma, -3 * sigma, 3 * sigma)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.T


def named(base: type, **members: Any) -> type:
    """A class of the same name with other members."""
    return type(base.__name__, (base,), members)


def untruncated(self: Any) -> None:
    nn.init.normal_(self.weight, 0.0, (2 / sum(self.weight.shape)) ** 0.5)


def xavier_uniform(self: Any) -> None:
    nn.init.xavier_uniform_(self.weight)


def always_the_same(self: Any) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        Linear.reset(self)


class WithBias(Linear):
    def __init__(self, in_features: int, out_features: int, device: Any = None, dtype: Any = None):
        super().__init__(in_features, out_features, device, dtype)
        self.bias = nn.Parameter(torch.zeros(out_features, device=device, dtype=dtype))


class DtypeIgnored(Linear):
    def __init__(self, in_features: int, out_features: int, device: Any = None, dtype: Any = None):
        super().__init__(in_features, out_features, device)


class Frozen(Linear):
    def __init__(self, in_features: int, out_features: int, device: Any = None, dtype: Any = None):
        super().__init__(in_features, out_features, device, dtype)
        self.weight.requires_grad_(False)


def test_a_right_class_passes() -> None:
    assert missed("linear", Linear) == set()


@pytest.mark.parametrize(
    ("kind", "requirement"),
    [
        (named(Linear, reset=untruncated), "LINEAR-MODULE-INIT"),
        (named(Linear, reset=xavier_uniform), "LINEAR-MODULE-INIT"),
        (named(Linear, reset=always_the_same), "LINEAR-MODULE-INIT"),
        (named(WithBias), "LINEAR-MODULE"),
        (named(DtypeIgnored), "LINEAR-MODULE-DTYPE"),
        (named(Frozen), "LINEAR-MODULE"),
        (
            named(Linear, forward=lambda self, x: x @ self.weight.detach().T),
            "LINEAR-MODULE-FORWARD",
        ),
        (named(Linear, forward=lambda self, x: x @ self.weight.T + 1), "LINEAR-MODULE-FORWARD"),
    ],
)
def test_a_wrong_class_misses_its_requirement(kind: type, requirement: str) -> None:
    kind.__name__ = "Linear"
    assert requirement in missed("linear", kind)


class RMSNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5, device: Any = None, dtype: Any = None):
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.full((d_model,), 0.1, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        mean_square = x.float().pow(2).mean(-1, keepdim=True)
        return (x.float() * torch.rsqrt(mean_square + self.eps) * self.gain).to(x.dtype)


def test_a_gain_that_does_not_start_at_one_is_found() -> None:
    assert missed("rmsnorm", RMSNorm) == {"RMSNORM-MODULE-INIT"}


class RotaryPositionalEmbedding(nn.Module):
    def __init__(self, theta: float, d_k: int, max_seq_len: int, device: Any = None):
        super().__init__()
        rate = theta ** (-torch.arange(0, d_k, 2, device=device) / d_k)
        angles = torch.arange(max_seq_len, device=device)[:, None] * rate
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x: Tensor, token_positions: Tensor) -> Tensor:
        cos, sin = self.cos[token_positions], self.sin[token_positions]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def test_tables_in_the_state_dict_are_found() -> None:
    assert missed("rope", RotaryPositionalEmbedding) == {"ROPE-MODULE-STATE"}
