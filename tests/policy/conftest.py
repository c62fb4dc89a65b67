"""Small submissions, looked at in this process: one call of one component, and all that is read."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.candidate.inprocess import InProcess
from conformance.candidate.messages import Call
from conformance.candidate.resolve import resolve
from conformance.policy import Policy
from conformance.policy.record import policy_record
from conformance.policy.watch import OWNERS, WatchingCaller
from conformance.report.policy import PolicyRecord
from conformance.suite.component import component

FUNCTIONS = {owner: name for name, owner in OWNERS.items()}


@dataclass(frozen=True)
class Findings:
    """What a policy found, in the form in which tests compare it."""

    record: PolicyRecord

    @property
    def ran(self) -> list[str]:
        """ "name file:line" of what was seen to run."""
        return [f"{u.name} {u.place}" for u in self.record.uses if u.seen == "run time"]

    @property
    def read(self) -> list[str]:
        """The same for what was only read."""
        return [f"{u.name} {u.place}" for u in self.record.uses if u.seen == "read"]


Look = Callable[..., Findings]


@pytest.fixture
def look(tmp_path: Path) -> Iterator[Look]:
    """Grades nothing: `look("softmax", source)` is what from-scratch says about this submission.

    The source stands in adapters.py; `files` are others. `asked` may name more components.
    """

    def look(
        name: str,
        source: str,
        files: Mapping[str, str] | None = None,
        *,
        asked: tuple[str, ...] = (),
        policy: Policy | None = None,
        gradients: bool = False,
    ) -> Findings:
        folder = tmp_path / "submission"
        for path, text in {"adapters.py": source, **(files or {})}.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        submission = resolve(str(folder), cwd=tmp_path)
        here = InProcess(submission)
        try:
            caller = WatchingCaller(here)
            for owner in (name, *asked):
                _ask(caller, owner, gradients)
        finally:
            here.close()
        found = policy_record(
            policy or Policy.named("from-scratch"), submission, (name, *asked), caller.watch
        )
        return Findings(found)

    yield look
    for module in [m for m in sys.modules.values() if _lies_in(m, tmp_path.resolve())]:
        del sys.modules[module.__name__]


def _ask(caller: WatchingCaller, owner: str, gradients: bool) -> None:
    asked = component(owner)
    case = asked.cases[0]
    arguments = case.arguments(case.dtypes[0])
    call = Call(FUNCTIONS[owner], arguments)
    if gradients:
        plain = caller.caller.call(call).outputs[0]
        call = Call(FUNCTIONS[owner], arguments, wrt=asked.inputs, cotangent=plain)
    reply = caller.call(call)
    assert reply.outcome == "passed", reply.message


def _lies_in(module: object, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and file.startswith(f"{folder}{os.sep}")
