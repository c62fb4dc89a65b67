"""Writes reports/benchmarks.md: the reference, torch and transformers, on this machine.

make bench                                    # on an idle machine; a quarter of an hour
python tests/publish_bench.py --profile quick
python tests/publish_bench.py --candidate torch --page-only
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from conformance.bench.command import run_bench
from conformance.bench.plots import plots
from conformance.bench.report import PLOTS, duration, shown_ratio
from conformance.bench.results import JSON_NAME, MARKDOWN_NAME, MEASURED
from conformance.errors import ExitCode

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "reports" / "benchmarks"
CANDIDATES = ("reference_impl", "torch", "transformers")
BUSY = 0.5
"""Load per processor above which a machine is not idle."""

HEAD = """<!-- made by `make bench`; the numbers are those of one machine -->

# Benchmarks

What `conformance bench` says of three candidates: `reference_impl` itself, torch's own operators,
and the layers of transformers. All times are of the adapter function as the contract has it: where
a module is constructed and weights are copied into it, that is part of the time. An empty cell: the
candidate does not have it, or torch has no fused operator for it.
How it is measured stands in [docs/benchmarks.md](../docs/benchmarks.md).
"""


def page(documents: Mapping[str, Mapping[str, Any]]) -> str:
    """The page, made of every candidate's bench.json."""
    parts = [HEAD, "## Beside each other", compared(documents)]
    for name, document in documents.items():
        machine = document["machine"]
        parts += [
            f"## `{name}`",
            f"{document['profile']} profile, {machine['processors']} processors, load "
            f"{machine['load_at_start']} at the start, torch {machine['torch']}, "
            f"{document['started']} to {document['finished']}; all rows and notes are in "
            f"[its own report](benchmarks/{name}/{MARKDOWN_NAME}).",
        ]
        folder = FOLDER / name / PLOTS
        first = [folder / "ratios.svg", folder / "roofline.svg"]
        for path in [*first, *sorted(set(folder.glob("*.svg")) - set(first))]:
            if path.exists():
                parts.append(f"![{path.stem} of {name}](benchmarks/{name}/{PLOTS}/{path.name})")
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def compared(documents: Mapping[str, Mapping[str, Any]]) -> str:
    """Time over `reference_impl`, a row for each measured one, a column for each candidate."""
    rows: dict[str, dict[str, str]] = {}
    for name, document in documents.items():
        for row in document["rows"]:
            cell = rows.setdefault(row["id"], {})
            if row["status"] != MEASURED:
                cell[name] = row["status"]
            elif name == "reference_impl":
                cell[name] = duration(row["times"]["candidate"]["median"])
                cell["fused"] = shown_ratio(row["reference_to_fused"])
            else:
                cell[name] = shown_ratio(row["ratios"].get("reference"))
    others = [name for name in documents if name != "reference_impl"]
    heads = ["row", "`reference_impl`", "it over torch, fused", *(f"{n} over it" for n in others)]
    columns = ["reference_impl", "fused", *others]
    table = [[name, *(cell.get(column, "") for column in columns)] for name, cell in rows.items()]
    aligned = ("left", *("right" for _ in heads[1:]))
    return tabulate(table, heads, tablefmt="github", disable_numparse=True, colalign=aligned)


def measure(names: Sequence[str], profile: str) -> int:
    """Benchmarks every candidate; the first exit code that is not 0."""
    codes = []
    for name in names:
        given = {"profile": profile, "report": str(FOLDER / name)}
        command = f"conformance bench {name} --profile {profile}"
        codes.append(int(run_bench(name, given, ROOT, command)))
    return next((code for code in codes if code), int(ExitCode.CONFORMING))


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--profile", default="standard")
    parser.add_argument("--candidate", action="append", choices=CANDIDATES)
    parser.add_argument("--page-only", action="store_true", help="of what was measured before")
    parser.add_argument("--busy", action="store_true", help="although the machine is not idle")
    options = parser.parse_args()
    code = 0
    if not options.page_only:
        load = os.getloadavg()[0]
        if load > BUSY * (os.cpu_count() or 1) and not options.busy:
            print(f"the machine is not idle (load {load:.2f}); --busy measures all the same")
            return int(ExitCode.USAGE)
        code = measure(options.candidate or CANDIDATES, options.profile)
    found = {
        name: json.loads((FOLDER / name / JSON_NAME).read_text("utf-8"))
        for name in CANDIDATES
        if (FOLDER / name / JSON_NAME).exists()
    }
    for name, document in found.items():  # as they are drawn now
        for file, text in plots(document).items():
            (FOLDER / name / PLOTS / file).write_text(text, "utf-8")
    (ROOT / "reports" / "benchmarks.md").write_text(page(found), "utf-8")
    print("wrote reports/benchmarks.md")
    return code


if __name__ == "__main__":
    sys.exit(main())
