"""A whole class: graded in one go, and killed in the middle and resumed. Writes reports/class.md.

    python tests/measure_class.py                 100 submissions, two at a time, quick profile
    python tests/measure_class.py --count 12      a small class, to see that this works

Three batches with the same command: of the first ten submissions, of the whole class, and once more
of the whole class, ended by SIGKILL at a drawn place and started again. Exit code 1 when a
submission does not end as its kind must, the two results differ, something is lost, a process or
the mark of an attack is left, or the memory of the batch grows with the class.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from hostile.catalogue import BOXED, PLAIN
from hostile.world import Peak, can_box, listening, snapshot, survivors
from made_class import CORRECT, FAULTY, SHARES, Ending, Made, copy_of_first, make_class

from conformance.batch.record import RECORD_NAME
from conformance.course.ci import course_text
from conformance.diagnosis.catalogue import fault_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "reports" / "class.md"

FIRST = 10
"""Submissions of the small class, with which the memory is compared."""

MORE = 24.0
"""MiB that the memory of the batch may differ between the classes; it is the table's, and noise."""

LIMITS = """
[grade]
timeout = 5
import-timeout = 30
memory = 2
"""

COMPARED = (
    *("sha256", "files", "verdict", "exit_code", "failure", "score", "points", "of"),
    *("failed", "absent", "mistakes"),
)
"""What of a line has to be the same; the others are times, memory and words."""


@dataclass
class Batch:
    """What was seen of one batch, in one or several runs of its command."""

    results: Path
    seconds: float = 0.0
    code: int | None = None
    memory: float = 0.0
    left: list[str] = field(default_factory=list)
    out: str = ""
    killed_after: int = 0

    def lines(self) -> dict[str, dict[str, Any]]:
        """Name -> its last line."""
        return {one["name"]: one for one in _parsed(self.results / RECORD_NAME)}


def _parsed(path: Path) -> Iterator[dict[str, Any]]:
    for raw in path.read_bytes().splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            yield json.loads(raw)


class World:
    """The folders around a class, so that what an attack changes shows and hurts nobody."""

    def __init__(self, port: int) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="class-")).resolve()
        self.port = port
        for name in ("home", "elsewhere", "tmp", "run"):
            (self.root / name).mkdir()
        (self.root / "elsewhere" / "victim.txt").write_text("precious\n", "utf-8")
        # the points of the settings that courses start from
        settings = course_text().replace("[grade]", LIMITS.strip(), 1)
        (self.root / "course.toml").write_text(settings, "utf-8")

    @property
    def placeholders(self) -> dict[str, str]:
        """What attacks are told of it."""
        return {
            "@TOKEN@": self.root.name,
            "@HOME@": str(self.root / "home"),
            "@ELSEWHERE@": str(self.root / "elsewhere"),
            "@REPORT@": str(self.root / "run" / "results"),
            "@SIBLING@": str(self.root / "class" / "s001"),
            "@SUITE@": str(ROOT),
            "@PORT@": str(self.port),
        }

    def marks(self) -> list[str]:
        """Files of attacks outside of what was handed in."""
        return sorted(str(p.relative_to(self.root)) for p in self.root.rglob("*MARKER*"))

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def command(world: World, folder: str, options: argparse.Namespace, mode: str) -> list[str]:
    """The command of every batch."""
    program = shutil.which("conformance", path=str(Path(sys.executable).parent))
    assert program is not None
    words = [program, "grade-all", str(world.root / folder), "--config", "../course.toml"]
    words += ["--profile", options.profile, "--jobs", str(options.jobs), "--out", "results"]
    return [*words, *(["--require-sandbox"] if mode == BOXED else ["--sandbox", "off"])]


def run(words: list[str], world: World, batch: Batch, kill_after: int = 0) -> None:
    """Run the command to its end, or until so many lines are in the record."""
    dropped = ("PYTEST_", "PYTHONPATH", "CONFORMANCE_", "XDG_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    env |= {"HOME": str(world.root / "home"), "TMPDIR": str(world.root / "tmp"), "NO_COLOR": "1"}
    began = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            words,
            cwd=world.root / "run",
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        peak = Peak(process.pid)
        record = world.root / "run" / "results" / RECORD_NAME
        while process.poll() is None:
            if kill_after and len(list(_parsed(record))) >= kill_after:
                process.kill()  # the batch alone, as the system does that is out of memory
            time.sleep(0.1)
        batch.memory = max(batch.memory, peak.stop())
        out.seek(0)
        batch.out += out.read().decode("utf-8", "replace")
    batch.seconds += time.monotonic() - began
    batch.code = process.returncode
    batch.left += survivors(world.root.name)


def batches(options: argparse.Namespace, world: World, mode: str) -> list[Batch]:
    """The first ten; all in one go; all, killed and resumed. Each in the same place."""
    results = world.root / "run" / "results"
    made = []
    for name, folder in (("first", "first"), ("whole", "class"), ("resumed", "class")):
        words = command(world, folder, options, mode)
        batch = Batch(world.root / f"results-{name}")
        if name == "resumed":
            drawn = random.Random(options.seed)
            batch.killed_after = drawn.randint(options.count // 4, 3 * options.count // 4)
            run(words, world, batch, batch.killed_after)
            print(f"killed with {len(list(_parsed(results / RECORD_NAME)))} lines", flush=True)
        run(words, world, batch)
        results.rename(batch.results)
        made.append(batch)
        print(f"{name}: {batch.seconds:.0f} s, exit code {batch.code}", flush=True)
    return made


# -- what must hold ------------------------------------------------------------------------------


@dataclass
class Findings:
    """What does not hold, as sentences; counts for the table."""

    wrong: list[str] = field(default_factory=list)
    false_passes: int = 0
    false_failures: int = 0
    lost: int = 0
    different: int = 0
    named: int = 0
    as_expected: Counter[str] = field(default_factory=Counter)


def _names(fault: str) -> set[str]:
    """The fault, and what it is called where it is seen from the part that has it."""
    return {fault, fault_of(fault).same_as}


def findings(made: list[Made], whole: Batch, resumed: Batch) -> Findings:
    """Compare both results with what must come out, and with each other."""
    found = Findings()
    first, second = whole.lines(), resumed.lines()
    for one in made:
        for batch, lines in ((whole, first), (resumed, second)):
            line = lines.get(one.name)
            if line is None or not _reported(batch, line):
                found.lost += 1
                found.wrong.append(f"{one.name} ({one.what}) is lost in {batch.results.name}")
            elif (ended := Ending(line["verdict"], line["failure"])) not in one.endings:
                found.false_passes += ended.verdict == "conforming"
                found.false_failures += ended.verdict != "conforming"
                reason = f"{ended}: {line['reason'][:200]}"
                found.wrong.append(f"{one.name} ({one.kind}: {one.what}) ended {reason}")
            elif batch is whole:
                found.as_expected[one.kind] += 1
                faults = [mistake["fault"] for mistake in line["mistakes"]]
                found.named += one.kind == FAULTY and bool(_names(one.what) & set(faults))
        for name in COMPARED:
            values = [lines.get(one.name, {}).get(name) for lines in (first, second)]
            if values[0] != values[1]:
                found.different += 1
                found.wrong.append(f"{one.name} ({one.what}): {name} is {values[0]}, {values[1]}")
    return found


def _reported(batch: Batch, line: dict[str, Any]) -> bool:
    """Whether a submission that was graded has its report and stands in the table."""
    name = line["name"]
    told = f"\n{name}," in (batch.results / "class.csv").read_text("utf-8")
    graded = line["verdict"] in ("conforming", "non-conforming")
    return told and (not graded or (batch.results / name / "report.json").is_file())


def check(made: list[Made], done: list[Batch], world: World, before: dict[str, str]) -> Findings:
    """All that must hold."""
    first, whole, resumed = done
    found = findings(made, whole, resumed)
    for batch in done:
        if batch.code not in (0, 4):
            found.wrong.append(f"{batch.results.name} ended with {batch.code}: {batch.out[-500:]}")
        found.wrong += [f"left by {batch.results.name}: {words}" for words in batch.left]
        if "Traceback" in batch.out:
            found.wrong.append(f"a traceback in the output of {batch.results.name}")
    found.wrong += [f"the mark of an attack: {path}" for path in world.marks()]
    if _outside(world) != before:
        found.wrong.append("a submission, or something outside of the results, was changed")
    if whole.memory - first.memory > MORE:
        found.wrong.append(f"memory grows: {first.memory:.0f} to {whole.memory:.0f} MiB")
    return found


def _outside(world: World) -> dict[str, str]:
    return {
        f"{name}/{path}": content
        for name in ("class", "elsewhere", "home")
        for path, content in snapshot(world.root / name).items()
    }


# -- the page ------------------------------------------------------------------------------------

HEAD = """\
# A class

Made by `make class`: {count} submissions, the same ones for the same seed (`tests/made_class.py`),
half of them archives. Correct ones are whole models, each put together from other accepted
variants; faulty ones have one fault of the catalogue, hostile ones one attack. Each batch is

```
conformance grade-all class {words}
```

on {cores} cores, {isolation}. {resumed}

| kind | submissions | have to end as | ended so | seconds each, median |
| --- | ---: | --- | ---: | ---: |
{kinds}

| | first {first} | all in one go | all, killed and resumed |
| --- | ---: | ---: | ---: |
{figures}

| | |
| --- | ---: |
{counts}
"""


def page(
    made: list[Made], done: list[Batch], found: Findings, options: argparse.Namespace, mode: str
) -> str:
    """The page on the class."""
    _, whole, resumed = done
    lines = whole.lines()
    words = f"--config course.toml --profile {options.profile} --jobs {options.jobs}"
    words += " --require-sandbox" if mode == BOXED else " --sandbox off"
    rows = []
    for kind in SHARES:
        members = [one for one in made if one.kind == kind]
        ends = sorted({_shown(ending) for one in members for ending in one.endings})
        seconds = median(lines[m.name]["seconds"] for m in members if m.name in lines)
        right = found.as_expected[kind]
        rows.append(f"| {kind} | {len(members)} | {', '.join(ends)} | {right} | {seconds:.1f} |")
    counts = {
        "wrong submissions that passed": found.false_passes,
        "right submissions that did not, or ended otherwise than they must": found.false_failures,
        "lost results": found.lost,
        "results that differ after the kill": found.different,
        "processes left": sum(len(batch.left) for batch in done),
        "faulty submissions whose mistake is named": found.named,
        "most memory of one submission with its judge": f"{_most(lines):.0f} MiB",
    }
    return HEAD.format(
        count=len(made),
        words=words,
        cores=os.cpu_count(),
        isolation="in the sandbox of bubblewrap" if mode == BOXED else "without a sandbox",
        resumed=f"The third was ended by SIGKILL when {resumed.killed_after} were done.",
        kinds="\n".join(rows),
        first=min(FIRST, len(made)),
        figures="\n".join(_figures(done, made)),
        counts="\n".join(f"| {name} | {value} |" for name, value in counts.items()),
    )


def _figures(done: list[Batch], made: list[Made]) -> Iterator[str]:
    many = [min(FIRST, len(made)), len(made), len(made)]
    minutes = [f"{batch.seconds / 60:.1f}" for batch in done]
    rates = [f"{n / b.seconds * 3600:.0f}" for n, b in zip(many, done, strict=True)]
    memory = [f"{batch.memory:.0f} MiB" for batch in done]
    for name, values in (
        ("minutes", minutes),
        ("submissions per hour", rates),
        ("most memory of the batch itself", memory),
    ):
        yield f"| {name} | {' | '.join(values)} |"


def _most(lines: dict[str, dict[str, Any]]) -> float:
    return max((line["peak_mib"] for line in lines.values()), default=0.0)


def _shown(ending: Ending) -> str:
    who = {"candidate": "cannot be graded", "infrastructure": "infrastructure failure"}
    return who.get(ending.failure, ending.verdict)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="submissions; 10 at least")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-sandbox", action="store_true", help="even if there is one")
    parser.add_argument("--keep", action="store_true", help="leave all folders where they are")
    parser.add_argument(
        "--page",
        type=Path,
        help="where the page goes (default: reports/class.md, for a class of 100 or more)",
    )
    options = parser.parse_args()
    mode = BOXED if can_box() and not options.no_sandbox else PLAIN
    with listening() as port:
        world = World(port)
        try:
            made = make_class(
                world.root / "class", options.count, options.seed, world.placeholders, mode
            )
            copy_of_first(world.root / "class", world.root / "first", FIRST)
            before = _outside(world)
            done = batches(options, world, mode)
            found = check(made, done, world, before)
            text = page(made, done, found, options, mode)
        finally:
            print(f"in {world.root}", flush=True)
            if not options.keep:
                world.remove()
    path = options.page or (PAGE if options.count >= 100 else None)
    if path is not None:
        path.write_text(text, "utf-8")
    print(text)
    print(*found.wrong, sep="\n")
    right = sum(one.kind == CORRECT for one in made)
    print(
        f"{len(made)} submissions ({right} correct), Python {platform.python_version()}; "
        f"{len(found.wrong)} things that do not hold"
    )
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
