"""Mutation of the reference implementation: which small edits does no check of the suite see?

    python tests/mutation.py                    all mutants; goes on where it was ended
    python tests/mutation.py --only norm        those of one file
    python tests/mutation.py --sample 20        one in twenty
    python tests/mutation.py --killed           says of each killed mutant which check saw it

A mutant is killed by the first MUST or SHOULD check that fails, by a crash, or by a check that does
not come to an end. Survivors must stand in `equivalent_mutants.toml` with the reason why nothing is
missing; the exit status is 1 when another one is found, or when one that stands there is killed.
Results are kept in `build/mutation.jsonl`, by hash of the mutant and of everything that judges it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import multiprocessing
import pickle
import sys
import time
import tomllib
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import count
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import mutants
from mutants import Mutant

from conformance.candidate.inprocess import local_caller
from conformance.candidate.messages import Outcome
from conformance.golden.load import GoldenStore, fixtures_folder
from conformance.numerics import ensemble
from conformance.spec import component_spec
from conformance.suite.check import Check, checks, included
from conformance.suite.grader import Context
from conformance.suite.profile import PROFILE
from conformance.suite.run import run_check

HERE = Path(__file__).resolve().parent
EQUIVALENT = HERE / "equivalent_mutants.toml"
RESULTS = HERE.parent / "build" / "mutation.jsonl"
COUNTED = ("MUST", "SHOULD")
LIMIT = 60.0
"""Seconds for one check; the longest takes half a second on an idle machine."""

Key = tuple[str, str, str]
"""Function, statement before, statement after."""

KILLED, SURVIVED, INVALID, BROKEN = "killed", "survived", "invalid", "broken"
"""`broken`: the suite itself raised an exception, so that there is no verdict."""

_numbers = count()


@dataclass(frozen=True)
class Verdict:
    """How a mutant ended, and where it was killed which check did it and what it said."""

    state: str
    check: str = ""
    message: str = ""


# ---------------------------------------------------------------- one mutant


def load(mutant: Mutant) -> ModuleType:
    """The adapters of a copy of the reference implementation that contains the mutant.

    The copy is a package of its own; its other modules are loaded afresh from their files. They
    need each other in one direction only, so the mutant can come first.
    """
    package = ModuleType(f"mutated_reference_{next(_numbers)}")
    package.__path__ = [str(mutants.FOLDER)]
    name = f"{package.__name__}.{mutant.module}"
    module = ModuleType(name)
    module.__package__ = package.__name__
    sys.modules |= {package.__name__: package, name: module}
    try:
        exec(compile(mutant.source, f"{mutant.module}.py", "exec"), vars(module))
        setattr(package, mutant.module, module)
        return importlib.import_module(f"{package.__name__}.adapters")
    finally:
        for stale in [n for n in sys.modules if n.partition(".")[0] == package.__name__]:
            del sys.modules[stale]


def asked(mutant: Mutant) -> Iterator[tuple[str, Check]]:
    """Profiles and checks that may see a mutant: those of simple components first."""
    for profile in ("quick", "standard"):
        for component in mutants.affected()[mutant.unit]:
            for check in checks(component):
                if check.requirement.level in COUNTED and included(check.profile, profile):
                    yield profile, check


def judge(mutant: Mutant, report: Callable[[str], object] = lambda check: None) -> Verdict:
    """Ask checks until one fails; `report` is told before each of them."""
    try:
        adapters = load(mutant)
    except Exception as error:
        return Verdict(INVALID, message=f"{type(error).__name__}: {error}")
    store = _store()
    callers: dict[str, Any] = {}
    for profile, check in asked(mutant):
        report(check.id)
        function = component_spec(check.component.name).function
        if function not in callers:
            callers[function] = local_caller(adapters)
        result = run_check(check, Context(callers[function], PROFILE[profile], golden=store))
        if result.outcome is not Outcome.PASSED:
            return Verdict(KILLED, check.id, f"{result.outcome}: {result.message}")
    return Verdict(SURVIVED)


@cache
def _store() -> GoldenStore:
    return GoldenStore(fixtures_folder())


def remember_bounds() -> None:
    """Work tolerances out once per process: every survivor is asked the same questions."""
    work_out, known = ensemble.bounds, {}

    def bounds(question: ensemble.Question) -> ensemble.Bounds:
        said = (question.arguments, question.wrt, question.cotangent, question.working)
        key = (question.oracle, question.pooled, hashlib.sha256(pickle.dumps(said)).digest())
        if key not in known:
            known[key] = work_out(question)
        return known[key]

    ensemble.bounds = bounds


# ---------------------------------------------------------------- many of them


def _work(pipe: Connection) -> None:
    """What a process does: judges what it is sent until nothing comes any more."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    remember_bounds()
    while (mutant := pipe.recv()) is not None:
        try:
            verdict = judge(mutant, pipe.send)
        except Exception:
            verdict = Verdict(BROKEN, message=traceback.format_exc())
        pipe.send(verdict)


@dataclass
class Worker:
    """A process that judges mutants, one after the other; it is replaced when one breaks it."""

    mutant: Mutant | None = None
    check: str = ""
    since: float = 0.0
    _process: Any = None
    pipe: Any = field(default=None)

    def give(self, mutant: Mutant) -> None:
        """Start with a mutant."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, other = context.Pipe()
            self._process = context.Process(target=_work, args=(other,), daemon=True)
            self._process.start()
            other.close()
        self.mutant, self.check, self.since = mutant, "", time.monotonic()
        self.pipe.send(mutant)

    def heard(self) -> Verdict | None:
        """The verdict, once there is one; also that of a process that ended or does not go on."""
        try:
            while self.pipe.poll():
                said = self.pipe.recv()
                if isinstance(said, Verdict):
                    return said
                self.check, self.since = said, time.monotonic()
        except (EOFError, OSError):
            self.end()
            return Verdict(KILLED, self.check, "crashed: the process ended")
        if time.monotonic() - self.since > LIMIT:
            self.end()
            return Verdict(KILLED, self.check, f"timed out: no end after {LIMIT:.0f} s")
        return None

    def end(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self.pipe.close()
            self._process = None


def judged(chosen: Iterable[Mutant], jobs: int) -> Iterator[tuple[Mutant, Verdict]]:
    """Verdicts as they come, from that many processes; no mutant can stop the others."""
    waiting = list(reversed(list(chosen)))
    workers = [Worker() for _ in range(min(jobs, len(waiting)))]
    try:
        while waiting or any(worker.mutant for worker in workers):
            for worker in workers:
                if worker.mutant is None and waiting:
                    worker.give(waiting.pop())
            busy = [worker for worker in workers if worker.mutant is not None]
            wait([worker.pipe for worker in busy], timeout=1.0)
            for worker in busy:
                verdict = worker.heard()
                if verdict is not None and worker.mutant is not None:
                    yield worker.mutant, verdict
                    worker.mutant = None
    finally:
        for worker in workers:
            worker.end()


# ---------------------------------------------------------------- results that are kept


def suite_hash() -> str:
    """Hash of all that a verdict depends on beside the mutant itself."""
    package = HERE.parent / "conformance"
    patterns = ("components/*/*.py", "components/*/spec.toml", "suite/*.py", "numerics/*.py")
    asking = ("encode", "frames", "inprocess", "messages", "worker")
    files = [path for pattern in patterns for path in package.glob(pattern)]
    files = [path for path in files if not path.name.startswith("faults")]
    files += [package / "candidate" / f"{name}.py" for name in asking]
    files += [package / name for name in ("definitions.py", "spec.py", "golden/load.py")]
    files += [*mutants.FOLDER.glob("*.py"), fixtures_folder() / "manifest.json"]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def key_of(mutant: Mutant, suite: str) -> str:
    """What a result is kept under."""
    return hashlib.sha256(f"{suite} {mutant.module}\n{mutant.source}".encode()).hexdigest()


def remembered(path: Path) -> dict[str, Verdict]:
    """The results in a file by key; a line that was cut off is passed over."""
    found: dict[str, Verdict] = {}
    for line in path.read_text("utf-8").splitlines() if path.is_file() else []:
        try:
            entry = json.loads(line)
            found[entry["key"]] = Verdict(entry["state"], entry["check"], entry["message"])
        except (ValueError, KeyError):
            continue
    return found


def results(
    chosen: Sequence[Mutant], jobs: int, path: Path = RESULTS
) -> Iterator[tuple[Mutant, Verdict]]:
    """Verdicts of all mutants: those that are remembered, then the others, which are noted down."""
    suite = suite_hash()
    known = remembered(path)
    new = []
    for mutant in chosen:
        verdict = known.get(key_of(mutant, suite))
        if verdict is None:
            new.append(mutant)
        else:
            yield mutant, verdict
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for mutant, verdict in judged(new, jobs):
            if verdict.state != BROKEN:
                entry = {"key": key_of(mutant, suite), "id": mutant.id, **asdict(verdict)}
                print(json.dumps(entry), file=file, flush=True)
            yield mutant, verdict


# ---------------------------------------------------------------- what may survive


def equivalent() -> dict[Key, str]:
    """Mutants that may survive, with the reason."""
    entries = tomllib.loads(EQUIVALENT.read_text("utf-8")).get("equivalent", [])
    return {
        (entry["where"], entry["before"], after): entry["why"]
        for entry in entries
        for after in entry["after"]
    }


def named(mutant: Mutant) -> Key:
    """What a mutant is listed under: it stays when other lines of the file change."""
    return mutant.where, mutant.before, mutant.after


def problems(verdicts: Mapping[Mutant, Verdict], complete: Iterable[str] = ()) -> list[str]:
    """Survivors that are not listed, and listed ones that do not survive.

    `complete` are the modules of which all mutants were judged: what is listed for them and was not
    even made is a problem, too.
    """
    listed = equivalent()
    found = [
        f"the suite broke on {mutant.id}: {verdict.message}"
        for mutant, verdict in verdicts.items()
        if verdict.state == BROKEN
    ]
    states = {named(mutant): verdict for mutant, verdict in verdicts.items()}
    found += [
        f"survived: {mutant.id} in {mutant.function}\n    {mutant.before}\n    {mutant.after}"
        for mutant, verdict in verdicts.items()
        if verdict.state == SURVIVED and named(mutant) not in listed
    ]
    for key in listed:
        where, before, after = key
        text = f"{where}\n    {before}\n    {after}"
        if key in states and states[key].state != SURVIVED:
            found.append(f"listed as equivalent, but {states[key].state}: {text}")
        elif key not in states and where.partition(".")[0] in complete:
            found.append(f"listed as equivalent, but not made any more: {text}")
    return found


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="modules whose name contains this")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="one in N mutants")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--killed", action="store_true", help="say what killed each mutant")
    options = parser.parse_args()
    start = time.monotonic()
    chosen = list(mutants.mutants(options.only))[:: options.sample]
    verdicts: dict[Mutant, Verdict] = {}
    for mutant, verdict in results(chosen, options.jobs):
        verdicts[mutant] = verdict
        if options.killed:
            print(f"{verdict.state} {mutant.id} {verdict.check}: {verdict.message}")
        if sys.stderr.isatty():
            print(f"\r{len(verdicts)} of {len(chosen)}", end=" ", file=sys.stderr, flush=True)
    complete = {mutant.module for mutant in chosen} if options.sample == 1 else set()
    found = problems(verdicts, complete)
    print(*found, sep="\n")
    states = Counter(verdict.state for verdict in verdicts.values())
    counts = ", ".join(f"{states[state]} {state}" for state in (KILLED, SURVIVED, INVALID, BROKEN))
    print(f"{len(chosen)} mutants: {counts}; {len(found)} problems")
    print(f"{time.monotonic() - start:.0f} s")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
