"""Candidates that have learnt the suite by heart: what they know, and what finds them out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch

from conformance.candidate.inprocess import local_caller
from conformance.candidate.messages import Call, ModuleCall, Outcome, Reply
from conformance.golden.load import GoldenStore, fixtures_folder
from conformance.hidden import HiddenSeed
from conformance.suite.check import Check, checks, included
from conformance.suite.component import component
from conformance.suite.failure import CheckResult
from conformance.suite.grader import Context
from conformance.suite.profile import PROFILE
from conformance.suite.run import run_check
from reference_impl import adapters

NAMES = ("silu", "linear")
SECRET = HiddenSeed(b"f00d" * 8)
Function = Callable[..., Any]
GOLDEN = GoldenStore(fixtures_folder())


def right(name: str) -> Function:
    function: Function = getattr(adapters, component(name).function)
    return function


def fingerprint(arguments: Mapping[str, Any]) -> str:
    """The content of a call, tensors included."""
    digest = hashlib.sha256()
    for name, value in sorted(arguments.items()):
        digest.update(name.encode())
        if torch.is_tensor(value):
            shown = value.detach().float() if value.is_floating_point() else value.detach()
            digest.update(f"{value.dtype}{tuple(value.shape)}".encode())
            digest.update(shown.contiguous().numpy().tobytes())
        else:
            digest.update(repr(value).encode())
    return digest.hexdigest()


def shapes(arguments: Mapping[str, Any]) -> str:
    return repr([(n, tuple(getattr(v, "shape", ()))) for n, v in sorted(arguments.items())])


def stored_calls(name: str) -> list[dict[str, Any]]:
    """The stored inputs of a component, as tensors."""
    found = []
    for vector in GOLDEN.manifest["vectors"]:
        if vector["component"] == name:
            golden = GOLDEN.read(vector)
            found.append({key: _tensor(value) for key, value in golden.arguments.items()})
    return found


def _tensor(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.name == "bfloat16":
        return torch.from_numpy(value.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(value.copy())


def wrong(name: str, arguments: Mapping[str, Any]) -> Any:
    """An answer of the right shape and dtype, with a graph, that is a little off."""
    return right(name)(**arguments) * 1.01


# Each takes the name of a component and gives an adapter function.


def by_content(name: str) -> Function:
    known = {fingerprint(arguments) for arguments in stored_calls(name)}

    def answer(**arguments: Any) -> Any:
        if fingerprint(arguments) in known:
            return right(name)(**arguments)
        return wrong(name, arguments)

    return answer


def by_shape(name: str) -> Function:
    known = {shapes(a): right(name)(**a).detach() for a in reversed(stored_calls(name))}

    def answer(**arguments: Any) -> Any:
        stored = known.get(shapes(arguments))
        return right(name)(**arguments) if stored is None else stored.clone()

    return answer


def by_call_number(name: str) -> Function:
    """The answers of an earlier run, one after the other."""
    earlier: list[Any] = []

    def record(**arguments: Any) -> Any:
        earlier.append(right(name)(**arguments).detach())
        return right(name)(**arguments)

    grade(name, record, "standard", seed=1)
    answers = iter(earlier)

    def answer(**arguments: Any) -> Any:
        return next(answers, torch.zeros(1)).clone()

    return answer


def at_first(name: str) -> Function:
    """Right as long as nobody can be looking any more."""
    calls = 0

    def answer(**arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return right(name)(**arguments) if calls <= 40 else wrong(name, arguments)

    return answer


REPLAYS = {f.__name__: f for f in (by_content, by_shape, by_call_number, at_first)}


def grade(
    name: str,
    function: Function,
    profile: str,
    *,
    seed: int = 0,
    hidden: HiddenSeed | None = None,
    until_one_fails: bool = False,
) -> dict[str, CheckResult]:
    """The MUST checks of a component that did not pass."""
    caller = local_caller({component(name).function: function})
    context = Context(caller, PROFILE[profile], seed=seed, golden=GOLDEN, hidden=hidden)
    failed: dict[str, CheckResult] = {}
    for check in asked(name, profile):
        result = run_check(check, context)
        if result.outcome is not Outcome.PASSED:
            failed[check.id] = result
            if until_one_fails:
                break
    return failed


def asked(name: str, profile: str) -> list[Check]:
    return [
        check
        for check in checks(name)
        if check.requirement.level == "MUST"
        and not check.module
        and included(check.profile, profile)
    ]


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hidden", [None, SECRET], ids=["public", "hidden"])
def test_the_standard_profile_finds_it_out(
    name: str, replay: str, hidden: HiddenSeed | None
) -> None:
    candidate = REPLAYS[replay](name)
    assert grade(name, candidate, "standard", hidden=hidden, until_one_fails=True)


@pytest.mark.parametrize("name", NAMES)
def test_stored_inputs_alone_are_found_out_by_their_other_forms(name: str) -> None:
    """The quick profile draws nothing anew, and still does not believe who knows what is stored."""
    failed = grade(name, by_content(name), "quick")
    assert f"{name}::stored_inputs_in_other_forms[float32]" in failed
    assert f"{name}::definition[float32]" not in failed, "this one is known"


def everything_public(name: str) -> Function:
    """Knows every input of a whole run, as anybody can who has the suite."""
    known: set[str] = set()

    def record(**arguments: Any) -> Any:
        known.add(fingerprint(arguments))
        return right(name)(**arguments)

    grade(name, record, "standard")

    def answer(**arguments: Any) -> Any:
        if fingerprint(arguments) in known:
            return right(name)(**arguments)
        return wrong(name, arguments)

    return answer


@pytest.mark.parametrize("name", ["embedding"])
def test_only_what_nobody_knows_finds_out_who_knows_it_all(name: str) -> None:
    candidate = everything_public(name)
    assert not grade(name, candidate, "standard"), "this is what a hidden seed is for"
    assert grade(name, candidate, "standard", seed=7, until_one_fails=True)
    for profile in ("quick", "standard"):
        failed = grade(name, candidate, profile, hidden=SECRET)
        assert f"{name}::definition[float32]" in failed
        for result in failed.values():
            assert result.evidence.hidden
            assert "hidden input" in result.shown
            assert result.details({})["hidden_message"] == result.message


@pytest.mark.parametrize("name", ["embedding", "rmsnorm"])
def test_right_answers_pass_with_any_secret(name: str) -> None:
    for secret in (SECRET, HiddenSeed(b"another secret of many bytes")):
        assert not grade(name, right(name), "quick", hidden=secret)


class Listening:
    """A caller that keeps what it was asked."""

    def __init__(self) -> None:
        self._caller = local_caller({"run_silu": right("silu")})
        self.heard: list[str] = []

    def call(self, call: Call | ModuleCall) -> Reply:
        assert isinstance(call, Call)
        self.heard.append(fingerprint({k: _tensor(v) for k, v in call.arguments.items()}))
        return self._caller.call(call)


def heard(check: Check, **more: Any) -> list[str]:
    caller = Listening()
    context = Context(caller, PROFILE["standard"], golden=GOLDEN, **more)
    assert run_check(check, context).outcome is Outcome.PASSED
    return caller.heard


def test_cases_are_asked_in_an_order_of_the_seeds() -> None:
    (check,) = (c for c in checks("silu") if c.name == "any_shape" and c.dtype == "float32")
    first, again = heard(check), heard(check)
    other, secret = heard(check, seed=1), heard(check, hidden=SECRET)
    assert first == again
    stored = [fingerprint(arguments) for arguments in stored_calls("silu")]
    ranked = [[stored.index(h) for h in order if h in stored] for order in (first, other, secret)]
    assert len({tuple(order) for order in ranked}) == 3
    assert all(sorted(order) == sorted(ranked[0]) for order in ranked)
    assert ranked[0] != sorted(ranked[0])
    assert set(first) < set(secret), "the public inputs are asked as well"


def test_a_hidden_seed_does_not_show_itself() -> None:
    import pickle

    secret = HiddenSeed(b"a secret of many bytes")
    assert "secret of" not in repr(secret)
    assert secret.seed(1) != secret.seed(2) != HiddenSeed(b"another secret of bytes").seed(2)
    assert "secret of" not in secret.seed(1)
    with pytest.raises(TypeError):
        pickle.dumps(secret)
