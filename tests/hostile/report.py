"""Grades every hostile submission and writes reports/security.md.

    python tests/hostile/report.py                    all of them, without and with a sandbox
    python tests/hostile/report.py --only exit todo   those whose names hold one of these words

Exit code 1 when an expectation does not hold, or when a known defect has gone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hostile.catalogue import BOXED, MODES, PLAIN, Arrangement, Entry, arranged, load
from hostile.judging import complaints, problems
from hostile.world import ROOT, Seen, can_box, observe

PAGE = ROOT / "reports" / "security.md"


@dataclass
class Tried:
    """What came of every entry in one mode."""

    mode: str
    #: entry -> sentences on what does not hold
    problems: dict[str, list[str]] = field(default_factory=dict)
    memory: float = 0.0
    seconds: float = 0.0

    def wrong(self, entry: Entry) -> list[str]:
        """What there is to complain about."""
        return complaints(entry, self.mode, self.problems[entry.name])


def tried(entries: Iterable[Entry], mode: str, together: int = 2) -> Tried:
    """Grade all these entries in one mode."""
    made = Tried(mode)
    began = time.monotonic()

    def one(arrangement: Arrangement) -> None:
        def look(seen: Seen) -> tuple[Seen, dict[str, list[str]]]:
            return seen, problems(arrangement, seen)

        seen, found = observe(arrangement, mode, look)
        made.problems.update(found)
        made.memory = max(made.memory, seen.memory)
        wrong = {e.name: w for e in arrangement.entries if (w := made.wrong(e))}
        print(f"{mode}: {arrangement.name} ({seen.seconds:.1f} s)", flush=True)
        for name, sentences in wrong.items():
            print(*(f"  {name}: {text}" for text in sentences), sep="\n", flush=True)

    with ThreadPoolExecutor(together) as pool:
        list(pool.map(one, arranged(list(entries))))
    made.seconds = time.monotonic() - began
    return made


def page(entries: list[Entry], runs: dict[str, Tried]) -> str:
    """The page on security."""
    rows = []
    for entry in entries:
        cells = [_cell(entry, runs.get(mode), mode) for mode in MODES]
        rows.append([f"`{entry.name}`", entry.does, *cells, "yes" if entry.only_boxed else ""])
    names = ["submission", "what it does", "without a sandbox", "with bubblewrap", "sandbox only"]
    lines = [names, ["---"] * len(names), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    defects = [
        f"- `{entry.name}` ({mode}): {text}."
        for entry in entries
        for mode, text in entry.defects.items()
        if mode in runs
    ]
    most = max(run.memory for run in runs.values())
    return HEAD.format(
        count=len(entries),
        honest=sum(entry.honest for entry in entries),
        boxed=sum(entry.only_boxed for entry in entries),
        memory=most,
        table=table,
        defects="\n".join(defects) or "None.",
        boxes="" if BOXED in runs else NO_BOX,
    )


def _cell(entry: Entry, run: Tried | None, mode: str) -> str:
    if run is None or entry.name not in run.problems:
        return "not run"
    if mode in entry.defects:
        return "**defect**"
    if run.problems[entry.name]:
        return "**not as expected**"
    return entry.holds(mode).words


NO_BOX = "\nThe column on bubblewrap was not run: there is none here, or no option for it.\n"

HEAD = """\
# Hostile and broken submissions

Made by `make security`. {count} submissions, {honest} of them honest accidents, each wrong or
dangerous in one way (`tests/hostile/entries/`). A cell says how the checks of the attacked
component end, or the whole run: *not loaded* is exit code 3, *refused* 2, *incomplete* 4, *killed*
the end of the judge itself; else the exit code is 0 where all passed and 1 where not.

For every one of them holds, unless its cell says otherwise: the exit code is right; the other
components of the same submission are graded as ever; nothing outside its own folder is changed; no
process is left; no traceback, escape or workflow command reaches the terminal; the reports are
whole and nothing in them is markup of the submission's; the judge stays below 700 MiB (at most
{memory:.0f} were seen).

In {boxed} of them something gets through unless the sandbox is there ("sandbox only").
{boxes}
## What does not hold

{defects}

## All

{table}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="parts of names")
    parser.add_argument("--mode", choices=MODES, action="append", help="default: all there are")
    parser.add_argument("--together", type=int, default=2, help="runs at a time")
    options = parser.parse_args()
    chosen = [e for e in load() if not options.only or any(w in e.name for w in options.only)]
    modes = options.mode or [PLAIN, *([BOXED] if can_box() else [])]
    runs = {mode: tried(chosen, mode, options.together) for mode in modes}
    wrong = [e.name for e in chosen for run in runs.values() if run.wrong(e)]
    if not options.only:
        PAGE.write_text(page(chosen, runs), "utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")
    seconds = ", ".join(f"{mode} {run.seconds:.0f} s" for mode, run in runs.items())
    print(f"{len(chosen)} submissions, {len(wrong)} not as expected ({seconds})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
