"""Asks for some calls to be observed, and keeps what the candidate used in them.

A call is observed by making it once more, after it has been answered: the answer that is graded is
never one that was watched. Observed are the first calls of a component, its first ones with
gradients, and ever fewer later ones, at numbers that depend on the seed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.adapters import COURSE_FUNCTIONS, OPTIONAL_FUNCTIONS
from conformance.candidate.messages import Call, Description, ModuleCall, Observe, Outcome, Reply

FIRST = 2
"""So many first calls of each kind are observed."""

LOSSES = 2
"""After so many observed calls that hung or crashed, the component is observed no more."""

OWNERS = {name: owner for owner, name in {**COURSE_FUNCTIONS, **OPTIONAL_FUNCTIONS}.items()}
"""Adapter function -> component."""

LOST = (Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.OUT_OF_MEMORY)

Seen = tuple[str, str, int, tuple[str, ...]]
"""Component, file, line, and the chain of names that was called there."""


class Watch:
    """What has been seen so far. `fresh` hands out what came since it was last asked."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.seen: dict[Seen, None] = {}
        self.files: set[str] = set()
        self._told: tuple[Counter[str], int, set[str]] = (Counter(), 0, set())

    def add(self, component: str, reply: Reply) -> None:
        """Keep what one observed call has brought."""
        self.calls[component] += reply.whole
        self.files |= set(reply.files)
        for use in reply.uses:
            self.seen[component, use.file, use.line, use.names] = None

    def fresh(self) -> dict[str, Any] | None:
        """What is new, as plain values that can travel to another process; None if nothing is."""
        calls, seen, files = self._told
        new = {
            "calls": dict(self.calls - calls),
            "seen": [list(one) for one in list(self.seen)[seen:]],
            "files": sorted(self.files - files),
        }
        self._told = (Counter(self.calls), len(self.seen), set(self.files))
        return new if any(new.values()) else None

    def merge(self, new: Mapping[str, Any]) -> None:
        """Take over what another `Watch` has handed out."""
        self.calls.update(new.get("calls", {}))
        self.files |= set(new.get("files", ()))
        for component, file, line, names in new.get("seen", ()):
            self.seen[component, file, line, tuple(names)] = None


class WatchingCaller:
    """A caller that has some of its calls observed. All else it leaves to the one it stands for."""

    def __init__(self, caller: Any, seed: str = "") -> None:
        self.caller = caller
        self.watch = Watch()
        self.component = ""
        self._seed = seed
        self._schedules: dict[tuple[str, str], Schedule] = {}
        self._lost: Counter[str] = Counter()

    def describe(self) -> Description:
        """What was loaded; see `Worker.describe`."""
        described: Description = self.caller.describe()
        return described

    def hides(self, path: Path) -> bool:
        """Whether the candidate is kept from reading what lies there; see `Worker.hides`."""
        hides = getattr(self.caller, "hides", None)
        return hides is not None and bool(hides(path))

    def close(self) -> None:
        """End the candidate's process, where there is one."""
        close = getattr(self.caller, "close", None)
        if close is not None:
            close()

    def call(self, call: Call | ModuleCall) -> Reply:
        """Answer one call, and then perhaps observe it."""
        reply: Reply = self.caller.call(call)
        component = OWNERS.get(call.function) if isinstance(call, Call) else self.component
        if component and reply.outcome is Outcome.PASSED and self._due(component, call):
            self._observe(component, call)
        return reply

    def _due(self, component: str, call: Call | ModuleCall) -> bool:
        if isinstance(call, ModuleCall) and call.signature_only:
            return False
        if self._lost[component] >= LOSSES:
            return False
        key = component, _kind(call)
        if key not in self._schedules:
            self._schedules[key] = Schedule(f"{self._seed} {key}")
        return self._schedules[key].due()

    def _observe(self, component: str, call: Call | ModuleCall) -> None:
        reply = self.caller.call(Observe(call))
        self._lost[component] += reply.outcome in LOST
        if reply.outcome is Outcome.PASSED:
            self.watch.add(component, reply)


class Schedule:
    """Which calls of one kind are observed: the first ones, then one in each doubling."""

    def __init__(self, seed: str) -> None:
        self._draw = random.Random(seed)
        self._number = 0
        self._next = 1

    def due(self) -> bool:
        """Count one more call; whether it is to be observed."""
        self._number += 1
        if self._number < self._next:
            return False
        doubled = 2 * self._number
        first = self._number < FIRST
        self._next = self._number + 1 if first else self._draw.randint(doubled, 2 * doubled - 1)
        return True


def _kind(call: Call | ModuleCall) -> str:
    if isinstance(call, ModuleCall):
        return "module"
    return "gradients" if call.wrt else "values"
