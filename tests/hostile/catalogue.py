"""Hostile and broken submissions: what each of them does, and what must come of it.

An entry is wrong or dangerous in one way. Most are the source of a module with a function
`attack(right, *given)` that stands where a component is called; `right(*given)` is the right
answer. `arranged` puts several of them into one submission, each on a component of its own, beside
components that answer rightly and must still be graded. Entries that spoil a whole process, or the
submission itself, stand `alone`.

Nothing here depends on pytest or on the harness.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

PLACES = ("home", "elsewhere", "sibling", "report", "tmp", "cwd")
"""Folders around a submission that nothing in it may change."""

PLAIN, BOXED = "plain", "bubblewrap"
MODES = (PLAIN, BOXED)

#: how a run ends whose attacked component ended so; every other ending is a 1
CODES = {"passed": 0, "refused": 2, "not loaded": 3, "incomplete": 4, "killed": -9}
WHOLE_RUN = ("refused", "not loaded", "incomplete", "killed")


@dataclass(frozen=True)
class Holds:
    """What must come of an entry."""

    #: outcome of the attacked component's checks that do not pass ("passed" where all do), or how
    #: the whole run ended; where several are named, each of them will do
    ends: str | tuple[str, ...]
    #: a part of the message, on the terminal or in the report
    says: str = ""
    #: places that are changed all the same
    changes: tuple[str, ...] = ()
    #: processes outlive the run
    survives: bool = False

    @property
    def endings(self) -> tuple[str, ...]:
        return (self.ends,) if isinstance(self.ends, str) else self.ends

    @property
    def words(self) -> str:
        """As a cell of a table."""
        text = " or ".join(self.endings)
        if self.changes:
            text += f"; changes {', '.join(self.changes)}"
        return text + ("; a process survives" if self.survives else "")


@dataclass(frozen=True)
class Entry:
    """One hostile or broken submission."""

    name: str
    #: what it does, as a sentence without a subject
    does: str
    #: what must hold without a sandbox
    plain: Holds
    #: the same under bubblewrap where it differs: a protection that exists only there
    boxed: Holds | None = None
    #: source of the module with `attack(right, *given)`
    code: str = ""
    #: more files of the submission; "adapters.py" replaces the one that is made around `code`
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    #: makes in the submission's folder what a text cannot say: a FIFO, a link
    build: Callable[[Path], None] | None = None
    #: not to be put into one submission with others
    alone: bool = False
    #: words for the command line
    options: str = ""
    #: graded without --component: what its module declares decides
    as_declared: bool = False
    #: "grade", or "pytest" and "python" (-m pytest) inside the submission's folder
    command: str = "grade"
    #: an honest accident rather than an attack
    honest: bool = False
    #: mode -> what does not hold yet; then the expectation must fail, until it is repaired
    defects: Mapping[str, str] = field(default_factory=dict)

    def holds(self, mode: str) -> Holds:
        return self.boxed if mode == BOXED and self.boxed is not None else self.plain

    @property
    def only_boxed(self) -> bool:
        """Whether the protection exists only with the sandbox."""
        return self.boxed is not None and self.boxed != self.plain and not self.honest

    @property
    def attacks(self) -> bool:
        """Whether it has one component that misbehaves (and not the submission as a whole)."""
        return bool(self.code) and "adapters.py" not in self.files


@dataclass(frozen=True)
class Arrangement:
    """One submission to be graded: entries, and the component that each of them attacks."""

    entries: tuple[Entry, ...]

    @property
    def name(self) -> str:
        first, last = self.entries[0].name, self.entries[-1].name
        return first if first == last else f"{first} to {last}"

    @property
    def components(self) -> dict[str, str]:
        """Entry -> component."""
        names = TARGETS if len(self.entries) > 1 else ("silu",)
        return {entry.name: name for entry, name in zip(self.entries, names, strict=False)}

    @property
    def selected(self) -> tuple[str, ...]:
        """The components to be graded: those attacked, and the witnesses."""
        return (*self.components.values(), *WITNESSES)


TARGETS = ("linear", "embedding", "rmsnorm", "silu", "glu")
"""Components that are attacked together; all of them are graded before the witnesses."""

WITNESSES = ("softmax",)
"""Components that answer rightly and must be graded whatever the others do."""

SIGNATURES = {
    "linear": ("run_linear", "d_in, d_out, weights, in_features"),
    "embedding": ("run_embedding", "vocab_size, d_model, weights, token_ids"),
    "rmsnorm": ("run_rmsnorm", "d_model, eps, weights, in_features"),
    "silu": ("run_silu", "in_features"),
    "glu": ("run_glu", "d_model, d_ff, w1_weight, w2_weight, in_features"),
    "softmax": ("run_softmax", "in_features, dim"),
    "rotation": ("run_rotation_matrix", "angles"),
}

HONEST = """\
import torch


def wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def run_linear(d_in, d_out, weights, in_features):
    dtype = torch.promote_types(weights.dtype, in_features.dtype)
    return (in_features.to(dtype) @ weights.to(dtype).T).to(in_features.dtype)


def run_embedding(vocab_size, d_model, weights, token_ids):
    return weights[token_ids]


def run_rmsnorm(d_model, eps, weights, in_features):
    x = wide(in_features)
    root = torch.sqrt(x.square().mean(dim=-1, keepdim=True) + eps)
    return (x / root * weights).to(in_features.dtype)


def run_silu(in_features):
    x = wide(in_features)
    return (x * torch.sigmoid(x)).to(in_features.dtype)


def run_glu(d_model, d_ff, w1_weight, w2_weight, in_features):
    return torch.sigmoid(in_features @ w1_weight.T) * (in_features @ w2_weight.T)


def run_softmax(in_features, dim):
    return torch.softmax(wide(in_features), dim).to(in_features.dtype)


def run_rotation_matrix(angles):
    c, s = angles.cos(), angles.sin()
    return torch.stack((torch.stack((c, -s), -1), torch.stack((s, c), -1)), -2)
"""
"""`honest.py` of every submission."""


def load() -> list[Entry]:
    """All entries, by theme, in written order."""
    folder = Path(__file__).with_name("entries")
    names = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    return [entry for name in names for entry in _module(name).ENTRIES]


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__.rpartition('.')[0]}.entries.{name}")


def arranged(entries: Sequence[Entry]) -> list[Arrangement]:
    """The submissions in which these entries are graded; fixed for a given list."""
    together = [entry for entry in entries if entry.attacks and not entry.alone]
    alone = [entry for entry in entries if entry not in together]
    made: list[Arrangement] = []
    for options in dict.fromkeys(entry.options for entry in together):
        alike = [entry for entry in together if entry.options == options]
        size = len(TARGETS)
        made += [Arrangement(tuple(alike[i : i + size])) for i in range(0, len(alike), size)]
    return made + [Arrangement((entry,)) for entry in alone]


def adapters(arrangement: Arrangement) -> str:
    """The adapters module: attacks where they belong, right answers everywhere else."""
    lines = ["import honest", "from honest import *", ""]
    components = arrangement.components
    for entry in arrangement.entries:
        if not entry.attacks:
            continue
        function, parameters = SIGNATURES[components[entry.name]]
        module = module_name(entry)
        lines += [f"import {module}", "", f"def {function}({parameters}):"]
        lines += [f"    return {module}.attack(honest.{function}, {parameters})", ""]
    return "\n".join(lines)


def module_name(entry: Entry) -> str:
    return "attack_" + entry.name.replace("-", "_")
