"""What was seen at run time and what was read, put together as the record of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from conformance.candidate.project import CONFIG_NAME
from conformance.candidate.resolve import Submission
from conformance.policy.names import canonical, definition, judged
from conformance.policy.reach import Code, Place
from conformance.policy.reading import File, Mention
from conformance.policy.rules import Policy, Rule
from conformance.policy.watch import OWNERS, Watch
from conformance.report.policy import EFFECTS, RAN, READ, PolicyRecord, PolicyUse

BLINDING = "prevents observation"
"""Stands in the place of a rule for a name of `Policy.blinding`."""

MODULES = (
    *("torch", "torch.nn", "torch.nn.functional", "torch.nn.modules", "torch.nn.utils"),
    *("torch.nn.attention", "torch.nn.parallel", "torch.optim", "torch.optim.lr_scheduler"),
)
"""Naming one of these is no use of anything in it."""

MAX_USES = 500
MAX_REMARKS = 20


def policy_record(
    policy: Policy, submission: Submission, selected: Sequence[str], watch: Watch
) -> PolicyRecord:
    """The record of a run: uses that were seen to run, then those that were only read."""
    code = Code(submission, watch.files)
    functions = {owner: name for name, owner in OWNERS.items()}
    ran = _ran(policy, submission, selected, watch)
    reader = _Reader(policy, code, ran)
    for component in selected:
        reader.read(component, code.reached(component, functions[component]))
    reader.read_rest()
    order = [*selected, ""]
    uses = sorted(
        {**dict.fromkeys(ran), **reader.found},
        key=lambda u: (-EFFECTS.index(u.effect), order.index(u.component), u.file, u.line, u.name),
    )
    more = len(uses) - MAX_USES
    remarks = [*reader.remarks(), *([f"{more} more uses are not listed"] if more > 0 else [])]
    return PolicyRecord(
        name=policy.name,
        source=policy.source,
        effect=str(policy.effect),
        unexecuted=str(policy.unexecuted),
        observed={name: watch.calls[name] for name in selected},
        uses=tuple(uses[:MAX_USES]),
        remarks=tuple(remarks),
    )


def _ran(
    policy: Policy, submission: Submission, selected: Sequence[str], watch: Watch
) -> list[PolicyUse]:
    found: dict[PolicyUse, None] = {}
    known: dict[tuple[str, tuple[str, ...]], tuple[str, Rule] | None] = {}
    for component, file, line, names in watch.seen:
        if component in selected and (component, names) not in known:
            known[component, names] = judged(policy, component, names)
        hit = known.get((component, names))
        if hit is not None:
            name, rule = hit
            place = file or _named_in(submission)
            effect = str(policy.effect)
            found[PolicyUse(component, name, place, line, rule.pattern, RAN, effect)] = None
    return list(found)


def _named_in(submission: Submission) -> str:
    """The file in which a candidate names what the worker then calls itself."""
    if submission.adapters is None:
        return CONFIG_NAME
    return _relative(submission.adapters, submission.root)


def _relative(path: Path, root: Path) -> str:
    return os.path.relpath(os.path.realpath(path), os.path.realpath(root))


class _Reader:
    """Judges what was read, and leaves out what has been seen to run."""

    def __init__(self, policy: Policy, code: Code, ran: Iterable[PolicyUse]) -> None:
        self.policy = policy
        self.code = code
        self.found: dict[PolicyUse, None] = {}
        self._reached: set[Place] = set()
        self._lines = {(use.file, use.line, use.name) for use in ran}
        self._elsewhere = self._explained(ran)

    def _explained(self, ran: Iterable[PolicyUse]) -> set[tuple[str, str]]:
        """(component, name) of what ran in a line that does not name it: by another name for it.

        The place where it is named is then no second use.
        """
        named = {
            (self._name(file.path), mention.line, definition(canonical(mention.name)))
            for file in self.code.files.values()
            for unit in file.units.values()
            for mention in unit.mentions
        }
        return {(u.component, u.name) for u in ran if (u.file, u.line, u.name) not in named}

    def _name(self, path: Path) -> str:
        return _relative(path, self.code.root)

    def read(self, component: str, places: Iterable[Place]) -> None:
        """What a component can reach."""
        for place in sorted(places):
            self._reached.add(place)
            for mention in self.code.files[place[0]].units[place[1]].mentions:
                self._judge(component, place[0], mention)

    def read_rest(self) -> None:
        """What no component was found to reach: only the rules for all components hold there."""
        for path, file in self.code.files.items():
            for name, unit in file.units.items():
                for mention in unit.mentions if (path, name) not in self._reached else ():
                    self._judge("", path, mention)

    def _judge(self, component: str, path: Path, mention: Mention) -> None:
        name, file = canonical(mention.name), self._name(path)
        if name in MODULES or not self._foreign(mention.name):
            return
        shown, rule = definition(name), self.policy.rule(name, component)
        known = self._known(component, file, mention, shown)
        if self.policy.blinds(name):
            effect = self.policy.effect if component else self.policy.unexecuted
            self._add(PolicyUse(component, shown, file, mention.line, BLINDING, READ, str(effect)))
        elif rule is not None and not rule.allows and not known:
            effect = self.policy.unexecuted
            self._add(
                PolicyUse(component, shown, file, mention.line, rule.pattern, READ, str(effect))
            )

    def _known(self, component: str, file: str, mention: Mention, name: str) -> bool:
        """Whether this use has been seen to run."""
        return (file, mention.line, name) in self._lines or (component, name) in self._elsewhere

    def _foreign(self, name: str) -> bool:
        """Whether a dotted name is one of another package, not a module of the submission."""
        return "." in name and not self.code.is_own(name)

    def _add(self, use: PolicyUse) -> None:
        self.found[use] = None

    # -- remarks ---------------------------------------------------------------------------------

    def remarks(self) -> list[str]:
        """Files that could not be read, and imports of what is forbidden that are not used."""
        unread = [
            f"{self._name(file.path)} could not be read, so what it does not run is not known"
            for file in self.code.files.values()
            if file.unread
        ]
        found = [
            f"{self._name(file.path)}:{mention.line} imports {mention.name} and does not use it"
            for file in self.code.files.values()
            for mention in file.imports
            if self._idle(file, mention)
        ]
        more = len(found) - MAX_REMARKS
        others = [f"and {more} more unused imports"] if more > 0 else []
        return [*unread[:MAX_REMARKS], *found[:MAX_REMARKS], *others]

    def _idle(self, file: File, mention: Mention) -> bool:
        name = canonical(mention.name)
        if name in ("torch", "torch.nn", "torch.optim") or self.code.is_own(mention.name):
            return False
        rule: Rule | None = self.policy.rule(name)
        if rule is None or rule.allows:
            return False
        used = (canonical(m.name) for unit in file.units.values() for m in unit.mentions)
        return not any(one == name or one.startswith(name + ".") for one in used)
