"""What did not run is found by reading, and told apart from what did."""

from __future__ import annotations

import pytest

from .conftest import Look

SOFTMAX = "torch.nn.functional.softmax"

READ = {
    "dead code": (
        "softmax",
        """
        import torch
        import torch.nn.functional as F
        def old(x):
            return F.softmax(x, -1)
        def run_softmax(in_features, dim):
            e = torch.exp(in_features - in_features.amax(dim, keepdim=True))
            return e / e.sum(dim, keepdim=True)
        """,
        [(f"{SOFTMAX} adapters.py:4", "")],
    ),
    "a branch that is not taken": (
        "softmax",
        """
        import torch
        import torch.nn.functional as F
        FAST = False
        def run_softmax(in_features, dim):
            if FAST:
                return F.softmax(in_features, dim)
            e = torch.exp(in_features - in_features.amax(dim, keepdim=True))
            return e / e.sum(dim, keepdim=True)
        """,
        [(f"{SOFTMAX} adapters.py:6", "softmax")],
    ),
    "another method of a class": (
        "linear",
        """
        import torch
        from torch import nn
        class Mine(nn.Module):
            def __init__(self, w):
                super().__init__()
                self.w = nn.Parameter(w)
            def forward(self, x):
                return self.project(x)
            def project(self, x):
                if x.shape[-1] == 0:
                    return nn.functional.linear(x, self.w)
                return x @ self.w.T
            def sample(self, x):
                return torch.softmax(x, -1), getattr(nn, "Softmax")
        def run_linear(d_in, d_out, weights, in_features):
            return Mine(weights)(in_features)
        """,
        [
            ("torch.nn.functional.linear adapters.py:11", "linear"),
            ("torch.nn.Softmax adapters.py:14", ""),
        ],
    ),
    "a name that is computed": (
        "silu",
        """
        import torch
        import torch.nn.functional as F
        def other(x, name):
            return getattr(F, name)(x)
        def run_silu(in_features):
            return in_features * torch.sigmoid(in_features)
        """,
        [("torch.nn.functional.? adapters.py:4", "")],
    ),
    "an optimiser": (
        "silu",
        """
        import torch
        class Own(torch.optim.Optimizer):
            pass
        def train(p):
            return torch.optim.AdamW(p)
        def run_silu(in_features):
            return in_features * torch.sigmoid(in_features)
        """,
        [("torch.optim.AdamW adapters.py:5", "")],
    ),
}


@pytest.mark.parametrize("case", READ)
def test_what_does_not_run_is_read(case: str, look: Look) -> None:
    component, source, expected = READ[case]
    found = look(component, source)
    assert found.ran == []
    told = [(f"{u.name} {u.place}", u.component) for u in found.record.uses]
    assert sorted(told) == sorted(expected)
    assert {use.effect for use in found.record.uses} == {"report"}


def test_an_unused_import_is_a_remark(look: Look) -> None:
    found = look(
        "silu",
        """
        import torch
        import torch.nn.functional as F
        from torch.nn import Linear, Module
        def run_silu(in_features):
            return in_features * torch.sigmoid(in_features)
        """,
    )
    assert found.record.uses == ()
    assert found.record.remarks == (
        "adapters.py:2 imports torch.nn.functional and does not use it",
        "adapters.py:3 imports torch.nn.Linear and does not use it",
    )


def test_means_against_observation_count(look: Look) -> None:
    found = look(
        "softmax",
        """
        import torch
        def run_softmax(in_features, dim):
            if torch._C._len_torch_function_stack() == 0:
                return torch.nn.functional.softmax(in_features, dim)
            e = torch.exp(in_features - in_features.amax(dim, keepdim=True))
            return e / e.sum(dim, keepdim=True)
        """,
    )
    (blinding, hidden) = found.record.uses
    assert (blinding.name, blinding.effect) == ("torch._C._len_torch_function_stack", "fail")
    assert (hidden.name, hidden.seen, hidden.effect) == (SOFTMAX, "read", "report")


def test_a_file_that_cannot_be_read_is_named(look: Look) -> None:
    deep = "x = " + "-" * 3000 + "1"
    found = look(
        "silu",
        """
        import torch
        def run_silu(in_features):
            return in_features * torch.sigmoid(in_features)
        def run_other(x):
            import deep
        """,
        {"deep.py": deep},
    )
    assert found.record.remarks == (
        "deep.py could not be read, so what it does not run is not known",
    )
