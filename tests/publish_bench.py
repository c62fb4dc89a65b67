"""Writes reports/benchmarks.md: the reference over torch's fused operators, on this machine.

make bench                                    # on an idle machine; six minutes
python tests/publish_bench.py --profile quick
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from conformance.bench.command import run_bench
from conformance.bench.report import render
from conformance.bench.results import JSON_NAME
from conformance.errors import ExitCode

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "reports" / "benchmarks"
BUSY = 0.5
"""Load per processor above which a machine is not idle."""

HEAD = """<!-- made by `make bench`; the numbers are those of one machine -->

"""


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--profile", default="standard")
    parser.add_argument("--busy", action="store_true", help="although the machine is not idle")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    if load > BUSY * (os.cpu_count() or 1) and not options.busy:
        print(f"the machine is not idle (load {load:.2f}); --busy measures all the same")
        return int(ExitCode.USAGE)
    given = {"profile": options.profile, "report": str(FOLDER)}
    command = f"conformance bench reference_impl --profile {options.profile}"
    code = run_bench("reference_impl", given, ROOT, command)
    document = json.loads((FOLDER / JSON_NAME).read_text("utf-8"))
    drawn = [path.name for path in sorted((FOLDER / "plots").glob("*.svg"))]
    text = render(document, drawn).replace("(plots/", "(benchmarks/plots/")
    (ROOT / "reports" / "benchmarks.md").write_text(HEAD + text, "utf-8")
    print("wrote reports/benchmarks.md")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
