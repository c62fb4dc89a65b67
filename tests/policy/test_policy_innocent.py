"""Nobody is accused of what they have not used."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.candidate import worker
from conformance.candidate.inprocess import LocalCaller
from conformance.candidate.messages import Call, Observe
from conformance.policy import Policy
from conformance.policy.names import judged
from conformance.suite.component import component

from .. import corpus  # type: ignore[attr-defined]
from .conftest import Look

TESTS = Path(__file__).resolve().parents[1]

OWN_SOFTMAX = """
        import torch
        def softmax(x, dim):
            e = torch.exp(x - x.amax(dim, keepdim=True))
            return e / e.sum(dim, keepdim=True)
"""

INNOCENT = {
    "an own function called softmax": (
        "softmax",
        f"""
        {OWN_SOFTMAX}
        def run_softmax(in_features, dim):
            return softmax(in_features, dim)
        """,
    ),
    "an own class with a method called softmax": (
        "softmax",
        """
        import torch
        class Maths:
            def softmax(self, x, dim):
                e = torch.exp(x - x.amax(dim, keepdim=True))
                return e / e.sum(dim, keepdim=True)
        def run_softmax(in_features, dim):
            return Maths().softmax(in_features, dim)
        """,
    ),
    "a function that hides the imported one": (
        "softmax",
        f"""
        from torch.nn.functional import softmax
        {OWN_SOFTMAX}
        def run_softmax(in_features, dim):
            return softmax(in_features, dim)
        """,
    ),
    "comments, strings and annotations": (
        "silu",
        '''
        """Like F.silu and torch.nn.functional.softmax, nn.Linear(3, 4)."""
        import torch
        import torch.nn as nn
        # return F.silu(x)
        NOTE = "torch.nn.functional.softmax"
        layer: nn.Linear | None = None
        def run_silu(in_features: torch.Tensor, act: "nn.SiLU" = None) -> torch.Tensor:
            return in_features * torch.sigmoid(in_features)
        ''',
    ),
    "isinstance": (
        "silu",
        """
        import torch
        from torch import nn
        def initialise(module):
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.trunc_normal_(module.weight)
        def run_silu(in_features):
            initialise(None)
            return in_features * torch.sigmoid(in_features)
        """,
    ),
    "a parameter called F": (
        "silu",
        """
        import torch
        class Box:
            silu = staticmethod(lambda x: x * torch.sigmoid(x))
        def apply(x, F):
            return F.silu(x)
        def run_silu(in_features):
            return apply(in_features, Box)
        """,
    ),
    "parameters, modules and containers": (
        "linear",
        """
        import torch
        from torch import nn
        class Layer(nn.Module):
            def __init__(self, w):
                super().__init__()
                self.w = nn.Parameter(nn.init.trunc_normal_(torch.empty_like(w)))
                self.all = nn.ParameterList([self.w])
                self.register_buffer("table", torch.ones(2), persistent=False)
            def forward(self, x):
                return torch.einsum("...i,oi->...o", x, self.w)
        class Model(nn.Module):
            def __init__(self, w):
                super().__init__()
                self.layers = nn.ModuleList([nn.Sequential(Layer(w))])
                self.named = nn.ModuleDict({"a": self.layers[0]})
            def forward(self, x):
                return self.named["a"](x)
        def run_linear(d_in, d_out, weights, in_features):
            model = Model(weights)
            model.load_state_dict({k: weights for k in model.state_dict()})
            return model.to(weights.dtype)(in_features)
        """,
    ),
    "einops": (
        "linear",
        """
        from einops import einsum, rearrange
        from einops.layers.torch import Rearrange
        def run_linear(d_in, d_out, weights, in_features):
            y = einsum(in_features, weights, "... i, o i -> ... o")
            return Rearrange("... o -> ... o")(rearrange(y, "... o -> ... o"))
        """,
    ),
    "matmul with addmm": (
        "linear",
        """
        import torch
        def run_linear(d_in, d_out, weights, in_features):
            flat = in_features.reshape(-1, d_in)
            y = torch.addmm(torch.zeros(d_out, dtype=flat.dtype), flat, weights.T)
            return y.reshape(*in_features.shape[:-1], d_out)
        """,
    ),
    "softmax where no softmax is asked for": (
        "silu",
        """
        import torch
        def run_silu(in_features):
            two = torch.stack((in_features, torch.zeros_like(in_features)), -1)
            return in_features * torch.softmax(two, -1)[..., 0]
        """,
    ),
    "what a type of tensors checks": (
        "silu",
        """
        import torch
        from jaxtyping import Float, jaxtyped
        @jaxtyped(typechecker=None)
        def silu(x: Float[torch.Tensor, "..."]) -> Float[torch.Tensor, "..."]:
            return x * torch.sigmoid(x)
        def run_silu(in_features):
            return silu(in_features)
        """,
    ),
    "functional_call": (
        "linear",
        """
        import torch
        from torch import nn
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.zeros(()))
            def forward(self, x):
                return x @ self.w.T
        def run_linear(d_in, d_out, weights, in_features):
            return torch.func.functional_call(Layer(), {"w": weights}, (in_features,))
        """,
    ),
    "a module of the same name as a library": (
        "silu",
        """
        import x_transformers
        def run_silu(in_features):
            return x_transformers.silu(in_features)
        """,
    ),
}
FILES = {"x_transformers.py": "import torch\n\ndef silu(x):\n    return x * torch.sigmoid(x)\n"}


@pytest.mark.parametrize("case", INNOCENT)
def test_is_not_accused(case: str, look: Look) -> None:
    component_name, source = INNOCENT[case]
    found = look(component_name, source, FILES if "same name" in case else None, gradients=True)
    assert found.record.uses == ()
    assert found.record.observed == {component_name: 1}


def test_what_other_functions_use_is_not_the_component_s(look: Look) -> None:
    found = look(
        "silu",
        """
        import torch
        def run_cross_entropy(inputs, targets):
            return torch.log_softmax(inputs, -1)
        def run_silu(in_features):
            return in_features * torch.sigmoid(in_features)
        """,
        asked=(),
    )
    assert found.record.uses == ()


#: variants that are written with what the rules forbid, and are meant to be
USERS = {
    *("embedding-functional", "embedding-module", "embedding-one-hot", "linear-functional"),
    *("linear-module-data", "rmsnorm-functional", "silu-functional", "silu-logsigmoid"),
    *("glu-functional", "glu-module", "softmax-functional", "softmax-log-softmax"),
    "softmax-negated-softmin",
}
LOOKED_AT = ("linear", "embedding", "rmsnorm", "silu", "glu", "softmax", "rope", "rotation")


def test_variants_are_accused_only_where_they_use_it() -> None:
    """Right implementations in every style: accused are exactly those built on torch.nn."""
    policy = Policy.named("from-scratch")
    accused: dict[str, set[str]] = {}
    for entry in corpus.variants():
        if entry.component not in LOOKED_AT:
            continue
        owner = component(entry.component)
        executor = worker.Executor({owner.function: entry.function}, root=str(TESTS))
        case = owner.cases[0]
        call = Call(owner.function, case.arguments(case.dtypes[0]))
        reply = LocalCaller(executor).call(Observe(call))
        assert reply.whole, entry.id
        hits = [judged(policy, entry.component, use.names) for use in reply.uses]
        names = {hit[0] for hit in hits if hit is not None}
        if names:
            accused[entry.id] = names
    assert set(accused) == USERS
    assert accused["glu-functional"] == {
        "torch.nn.functional.glu",
        "torch.nn.functional.linear",
    }
    assert accused["softmax-negated-softmin"] == {"torch.nn.functional.softmin"}
