"""One name for what goes by several, and the judgement on a chain of calls."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conformance.policy.rules import Policy, Rule

_MOVED = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        # where a class is defined -> where it is offered
        (r"^torch\.nn\.modules\.[a-z_0-9]+\.(?=\w)", "torch.nn."),
        (r"^torch\.nn\.modules\.(?=[A-Z])", "torch.nn."),
        (r"^torch\.nn\.(parameter|buffer)\.(?=[A-Z])", "torch.nn."),
        (r"^torch\.optim\.(?!lr_scheduler|swa_utils)[a-z_0-9]+\.(?=[A-Za-z])", "torch.optim."),
        (r"^torch\._C\._nn\.", "torch.nn.functional."),
        (r"^torch\._C\._VariableFunctions(Class)?\.", "torch."),
        (r"^torch\._C\._special\.(special_)?", "torch.special."),
        (r"^torch\.functional\.", "torch."),
        (r"^torch\.masked\._ops\.", "torch.masked."),
        (r"^torch\._C\.TensorBase(?=\.|$)", "torch.Tensor"),
        (r"^torch\._C\._TensorBase(?=\.|$)", "torch.Tensor"),
        (r"^torch\._tensor\.Tensor(?=\.|$)", "torch.Tensor"),
        (r"^torch\.ops\.aten\.", "aten."),
        (r"^torch\._ops\.aten\.", "aten."),
    )
)

#: torch's own ways of calling what somebody hands them
_CARRIERS = (
    *("torch.overrides", "torch._jit_internal", "torch.utils._contextlib", "torch._dynamo"),
    *("torch._functorch", "torch.func", "torch.nn.utils.stateless", "torch.utils.checkpoint"),
    *("torch.autograd", "torch.compiler", "torch._compile", "torch.jit", "torch._higher_order_ops"),
    *("torch._ops", "torch.utils._device", "torch.amp"),
)
#: how a module calls the modules that it contains
_CALLING = re.compile(r"\.(forward|__call__|_wrapped_call_impl|_call_impl(\..*)?)$")
_LAST = re.compile(r"(\.<locals>.*|\.(forward|__init__|__new__|__call__|_?\w*call_impl))+$")


def canonical(name: str) -> str:
    """The name under which a definition of torch is documented."""
    for pattern, shorter in _MOVED:
        name = pattern.sub(shorter, name)
    return name


def definition(name: str) -> str:
    """What a reader calls it: `torch.nn.Linear` for its constructor and its `forward`."""
    name = _LAST.sub("", name)
    parts = name.split(".")
    if parts[:3] == ["torch", "nn", "functional"]:
        return ".".join(parts[:4])
    if parts[:2] in (["torch", "nn"], ["torch", "optim"]) and len(parts) > 2:
        kept = 3 if parts[2][:1].isupper() else 4
        return ".".join(parts[:kept])
    return name


def judged(policy: Policy, component: str, chain: Sequence[str]) -> tuple[str, Rule] | None:
    """The forbidden definition in a chain of calls, and the rule against it; None if there is none.

    The first name is what the candidate called, each further one what that called in turn, the last
    may be an operator (`aten._softmax`). The rules are about what the candidate calls. What torch
    then does inside is its own affair, unless a rule of this very component speaks of it: a
    softmax is one, whatever function it was reached through. A third library's calls are its own.
    """
    direct = True
    for name in map(canonical, chain):
        if not name or any(name == c or name.startswith(c + ".") for c in _CARRIERS):
            continue
        rule = policy.rule(name, component)
        if rule is not None and not rule.allows and (direct or rule.component):
            return definition(name), rule
        if not direct:
            continue
        if rule is not None and rule.allows:
            if _CALLING.search(name):
                continue  # a container calls what it contains: still the candidate's choice
            return None
        if name.partition(".")[0] not in ("torch", "aten"):
            return None
        direct = False
    return None
