"""Stands in for `conformance grade` where a test is about the batch: no torch, no candidate.

The submission's adapters.py says in one word what is to happen. Each call is noted in the file
`asked` beside the folder of the results.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from conformance.batch.child import watch
from conformance.report.model import Candidate, CheckRecord, Diagnosis, Header
from conformance.report.stream import RESULTS_NAME, ResultsWriter

EPS = Diagnosis("eps-outside", "eps stands outside the root", component="rmsnorm")
OUTCOMES = {
    "right": (("passed", None), ("passed", None)),
    "wrong": (("failed", EPS), ("failed", EPS)),
    "half": (("passed", None), ("failed", EPS)),
}


def main() -> int:
    watch(int(sys.argv.pop(1)))
    _, _, program, command, path, gate, report, *_ = sys.argv[1:]
    assert (program, command, gate) == ("conformance", "grade", "--gate")
    folder = Path(report.removeprefix("--report="))
    word = (Path(path) / "adapters.py").read_text("utf-8").split()[0]
    with (folder.parent.parent / "asked").open("a") as file:
        file.write(f"{folder.name} {os.getpid()}\n")
    if word == "hang":
        time.sleep(600)
    if word == "crash":
        os.abort()
    if word == "kill-worker":
        os.kill(os.getppid(), signal.SIGKILL)
    if word == "forged":
        print("GATE: PASS everything is fine")
        return 0
    return write(folder, word)


def write(folder: Path, word: str) -> int:
    with ResultsWriter(folder / RESULTS_NAME) as writer:
        if word == "unloadable":
            writer.error("SyntaxError in adapters.py", 3)
            return 3
        if word == "no-room":
            writer.error("the disk is full", 4)
            print("GATE: ERROR the disk is full")
            return 4
        outcomes = OUTCOMES.get(word, OUTCOMES["right"])
        writer.header(header(len(outcomes)))
        for number, (outcome, diagnosis) in enumerate(outcomes):
            requirement = ("RMSNORM-EPS", "RMSNORM-GAIN")[number]
            writer.check(
                CheckRecord(
                    f"rmsnorm::check{number}",
                    "rmsnorm",
                    requirement,
                    "MUST",
                    outcome,
                    "",
                    diagnosis,
                )
            )
        writer.footer(finished="2026-01-01T00:00:00Z")
    good = all(outcome == "passed" for outcome, _ in outcomes)
    # what says one thing and ends with another is not to be believed
    return 1 if word == "contrary" else int(not good)


def header(collected: int) -> Header:
    return Header(
        suite_version="0",
        spec_version="0",
        fixtures_sha256="",
        candidate=Candidate("someone"),
        command="",
        seed=0,
        profile="quick",
        level="must",
        dtypes=(),
        device="cpu",
        selected=("rmsnorm",),
        complete_selection=True,
        deselected=0,
        collected=collected,
        environment={},
        isolation=(),
        notices=(),
        requirements=("RMSNORM-EPS", "RMSNORM-GAIN"),
        started="2026-01-01T00:00:00Z",
    )
