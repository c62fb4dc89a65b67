"""Uses that from-scratch forbids are found under every name, with file and line."""

from __future__ import annotations

import pytest

from .conftest import Look

SOFTMAX = "torch.nn.functional.softmax"
LINEAR = "torch.nn.Linear"

#: what is asked, the adapters module, and what is seen to run
RAN = {
    "module alias": (
        "softmax",
        """
        import torch.nn.functional as F
        def run_softmax(in_features, dim):
            return F.softmax(in_features, dim)
        """,
        [f"{SOFTMAX} adapters.py:3"],
    ),
    "alias of torch": (
        "softmax",
        """
        import torch as t
        def run_softmax(in_features, dim):
            return t.nn.functional.softmax(in_features, dim=dim)
        """,
        [f"{SOFTMAX} adapters.py:3"],
    ),
    "from import": (
        "softmax",
        """
        from torch.nn.functional import softmax
        def run_softmax(in_features, dim):
            return softmax(in_features, dim)
        """,
        [f"{SOFTMAX} adapters.py:3"],
    ),
    "renamed import": (
        "softmax",
        """
        from torch.nn.functional import softmax as normalise
        def run_softmax(in_features, dim):
            return normalise(in_features, dim)
        """,
        [f"{SOFTMAX} adapters.py:3"],
    ),
    "star import": (
        "softmax",
        """
        from torch.nn.functional import *
        def run_softmax(in_features, dim):
            return softmax(in_features, dim)
        """,
        [f"{SOFTMAX} adapters.py:3"],
    ),
    "getattr": (
        "softmax",
        """
        import torch.nn.functional as F
        def run_softmax(in_features, dim):
            return getattr(F, "softmax")(in_features, dim)
        """,
        [f"{SOFTMAX} adapters.py:3"],
    ),
    "a name put together": (
        "softmax",
        """
        import importlib
        def run_softmax(in_features, dim):
            module = importlib.import_module("torch.nn." + "functional")
            return getattr(module, "soft" + "max")(in_features, dim)
        """,
        [f"{SOFTMAX} adapters.py:4"],
    ),
    "taken out of __dict__": (
        "softmax",
        """
        import torch.nn.functional as F
        sf = F.__dict__["softmax"]
        def run_softmax(in_features, dim):
            return sf(in_features, dim)
        """,
        [f"{SOFTMAX} adapters.py:4"],
    ),
    "put into torch under another name": (
        "softmax",
        """
        import torch
        torch.innocent = torch.nn.functional.softmax
        def run_softmax(in_features, dim):
            return torch.innocent(in_features, dim)
        """,
        [f"{SOFTMAX} adapters.py:4"],
    ),
    "lambda": (
        "softmax",
        """
        import torch.nn.functional as F
        run_softmax = lambda in_features, dim: F.softmax(in_features, dim)
        """,
        [f"{SOFTMAX} adapters.py:2"],
    ),
    "partial": (
        "softmax",
        """
        import functools
        import torch.nn.functional as F
        soft = functools.partial(F.softmax, dtype=None)
        def run_softmax(in_features, dim):
            return soft(in_features, dim)
        """,
        [f"{SOFTMAX} adapters.py:5"],
    ),
    "code of the function copied": (
        "softmax",
        """
        import types
        import torch.nn.functional as F
        mine = types.FunctionType(F.softmax.__code__, F.softmax.__globals__)
        def run_softmax(in_features, dim):
            return mine(in_features, dim, 3, None)
        """,
        [f"{SOFTMAX} adapters.py:5"],
    ),
    "exec": (
        "softmax",
        """
        def run_softmax(in_features, dim):
            names = {"x": in_features, "d": dim}
            exec("import torch; y = torch.nn.functional.softmax(x, d)", names)
            return names["y"]
        """,
        [f"{SOFTMAX} adapters.py:3"],
    ),
    "torch.softmax": (
        "softmax",
        """
        import torch
        def run_softmax(in_features, dim):
            return torch.softmax(in_features, dim)
        """,
        ["torch.softmax adapters.py:3"],
    ),
    "method of a tensor": (
        "softmax",
        """
        def run_softmax(in_features, dim):
            return in_features.softmax(dim)
        """,
        ["torch.Tensor.softmax adapters.py:2"],
    ),
    "log_softmax": (
        "softmax",
        """
        def run_softmax(in_features, dim):
            return in_features.log_softmax(dim).exp()
        """,
        ["torch.Tensor.log_softmax adapters.py:2"],
    ),
    "by a roundabout function": (
        "softmax",
        """
        import torch
        def run_softmax(in_features, dim):
            return torch.distributions.Categorical(logits=in_features.movedim(dim, -1)).probs \\
                .movedim(-1, dim)
        """,
        ["aten._softmax adapters.py:3"],
    ),
    "an operator called directly": (
        "softmax",
        """
        import torch
        def run_softmax(in_features, dim):
            return torch.ops.aten._softmax(in_features, dim, False)
        """,
        ["aten._softmax adapters.py:3"],
    ),
    "in another file": (
        "silu",
        """
        from own_layers.activation import silu
        def run_silu(in_features):
            return silu(in_features)
        """,
        ["torch.nn.functional.silu own_layers/activation.py:3"],
    ),
    "a module": (
        "silu",
        """
        from torch import nn
        activation = nn.SiLU()
        def run_silu(in_features):
            return activation(in_features)
        """,
        ["torch.nn.SiLU adapters.py:4"],
    ),
    "inside a container": (
        "silu",
        """
        from torch import nn
        def run_silu(in_features):
            return nn.Sequential(nn.Identity(), nn.SiLU())(in_features)
        """,
        ["torch.nn.Identity adapters.py:3", "torch.nn.SiLU adapters.py:3"],
    ),
    "a linear layer": (
        "linear",
        """
        from torch import nn
        def run_linear(d_in, d_out, weights, in_features):
            layer = nn.Linear(d_in, d_out, bias=False)
            layer.weight = nn.Parameter(weights)
            return layer(in_features)
        """,
        [f"{LINEAR} adapters.py:3", f"{LINEAR} adapters.py:5"],
    ),
    "a subclass of a linear layer": (
        "linear",
        """
        from torch import nn
        class Mine(nn.Linear):
            def __init__(self, d_in, d_out):
                super().__init__(d_in, d_out, bias=False)
        def run_linear(d_in, d_out, weights, in_features):
            layer = Mine(d_in, d_out)
            layer.weight.data = weights
            return layer(in_features)
        """,
        [f"{LINEAR} adapters.py:4", f"{LINEAR} adapters.py:8"],
    ),
    "a subclass that passes its parent by": (
        "linear",
        """
        from torch import nn
        class Mine(nn.Linear):
            def __init__(self, weight):
                nn.Module.__init__(self)
                self.weight = nn.Parameter(weight)
            def forward(self, x):
                return x @ self.weight.T
        def run_linear(d_in, d_out, weights, in_features):
            return Mine(weights)(in_features)
        """,
        [f"{LINEAR} adapters.py:4"],
    ),
    "rms_norm of torch": (
        "rmsnorm",
        """
        import torch
        def run_rmsnorm(d_model, eps, weights, in_features):
            return torch.rms_norm(in_features, (d_model,), weights, eps)
        """,
        ["torch.rms_norm adapters.py:3"],
    ),
    "embedding": (
        "embedding",
        """
        import torch
        def run_embedding(vocab_size, d_model, weights, token_ids):
            return torch.embedding(weights, token_ids)
        """,
        ["torch.embedding adapters.py:3"],
    ),
    "fused attention": (
        "scaled_dot_product_attention",
        """
        from torch.nn.functional import scaled_dot_product_attention as attend
        def run_scaled_dot_product_attention(Q, K, V, mask=None):
            return attend(Q, K, V, mask)
        """,
        ["torch.nn.functional.scaled_dot_product_attention adapters.py:3"],
    ),
    "through vmap": (
        "silu",
        """
        import torch
        import torch.nn.functional as F
        def run_silu(in_features):
            return torch.vmap(F.silu)(in_features)
        """,
        ["torch.nn.functional.silu adapters.py:4"],
    ),
    "in a forward of its own for autograd": (
        "silu",
        """
        import torch
        import torch.nn.functional as F
        class Mine(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return F.silu(x)
        def run_silu(in_features):
            return Mine.apply(in_features)
        """,
        ["torch.nn.functional.silu adapters.py:6"],
    ),
    "a library that has it ready": (
        "softmax",
        """
        from xformers import softmax
        def run_softmax(in_features, dim):
            return softmax(in_features, dim)
        """,
        [],
    ),
}
LIBRARY = """
def softmax(x, dim):
    e = (x - x.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
"""
ACTIVATION = "import torch.nn.functional as F\ndef silu(x):\n    return F.silu(x)\n"


@pytest.mark.parametrize("case", RAN)
def test_what_runs_is_seen(case: str, look: Look) -> None:
    component, source, expected = RAN[case]
    files = {"own_layers/activation.py": ACTIVATION} if case == "in another file" else {}
    if case == "a library that has it ready":
        # the package is the submission's own here, so it is not the library of that name
        files["xformers.py"] = LIBRARY
    found = look(component, source, files)
    assert sorted(found.ran) == sorted(expected)
    assert {use.effect for use in found.record.uses if use.seen == "run time"} <= {"fail"}


def test_the_same_use_is_not_told_twice(look: Look) -> None:
    """The line that gives another name to what runs elsewhere is no second use."""
    for case in ("taken out of __dict__", "from import", "partial", "getattr"):
        component, source, _ = RAN[case]
        assert look(component, source).read == []


def test_compiled_code_is_seen(look: Look) -> None:
    found = look(
        "silu",
        """
        import torch
        import torch.nn.functional as F

        @torch.compile(backend="eager")
        def fast(x):
            return F.silu(x)

        def run_silu(in_features):
            return fast(in_features)
        """,
    )
    assert found.ran == ["torch.nn.functional.silu adapters.py:6"]


def test_a_backward_of_its_own_is_seen(look: Look) -> None:
    source = """
        import torch
        import torch.nn.functional as F
        class Mine(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * torch.sigmoid(x)
            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                with torch.enable_grad():
                    z = x.detach().requires_grad_()
                    (d,) = torch.autograd.grad(F.silu(z), z, g)
                return d
        def run_silu(in_features):
            return Mine.apply(in_features)
    """
    assert look("silu", source, gradients=True).ran == ["torch.nn.functional.silu adapters.py:13"]


def test_classes_without_adapters_are_seen(look: Look) -> None:
    """The worker constructs and calls them itself: the candidate's line is that of the class."""
    layers = "from torch import nn\n\nclass Linear(nn.Linear):\n    bias = None\n"
    found = look(
        "linear",
        "# nothing here",
        {
            "layers.py": layers.replace(
                "    bias = None",
                "    def __init__(self, in_features, "
                "out_features):\n        super().__init__(in_features, out_features, False)",
            )
        },
    )
    assert f"{LINEAR} layers.py:5" in found.ran
