"""Hostile submissions through the real command line: a sample of the catalogue.

All of them are tried by `make security`, without and with a sandbox. Here it is the stronger of the
two that this machine has.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hostile.catalogue import BOXED, MODES, PLAIN, TARGETS, Arrangement, arranged, load
from hostile.fuzz import fuzz
from hostile.judging import complaints, problems
from hostile.world import Seen, can_box, observe

Runs = dict[str, Future[dict[str, list[str]]]]

ENTRIES = {entry.name: entry for entry in load()}

TOGETHER = (
    *("exit-with-success", "text-that-raises", "markup", "names-that-are-commands"),
    *("prints-passes", "raises-interrupt", "tensor-with-a-lying-shape", "nan-everywhere"),
    *("a-tensor-of-terabytes", "overwrites-the-input", "process-state", "environment"),
    *("inherited-descriptors", "imports-the-suite", "forges-a-wrong-length"),
)
"""Entries of the sample that share a submission."""

ALONE = (
    *("exit-at-the-end", "commands-at-import", "adapters-as-a-pipe", "settings-of-pytest"),
    *("link-in-the-place-of-the-worker", "files-of-others"),
)

SAMPLE = arranged([ENTRIES[name] for name in (*TOGETHER, *ALONE)])


@pytest.fixture(scope="session")
def runs() -> Iterator[Runs]:
    """What does not hold of each entry of the sample; two submissions are graded at a time."""
    mode = BOXED if can_box() else PLAIN

    def graded(arrangement: Arrangement) -> dict[str, list[str]]:
        def look(seen: Seen) -> dict[str, list[str]]:
            return problems(arrangement, seen)

        found: dict[str, list[str]] = observe(arrangement, mode, look)
        return {e.name: complaints(e, mode, found[e.name]) for e in arrangement.entries}

    with ThreadPoolExecutor(2) as pool:
        started = [(arrangement, pool.submit(graded, arrangement)) for arrangement in SAMPLE]
        yield {entry.name: future for made, future in started for entry in made.entries}


@pytest.mark.parametrize("name", [*TOGETHER, *ALONE])
def test_what_must_come_of_it(name: str, runs: Runs) -> None:
    assert runs[name].result()[name] == []


def test_the_catalogue_is_large_and_its_names_are_unique() -> None:
    entries = load()
    assert len(entries) >= 60
    assert len(ENTRIES) == len(entries)


def test_every_entry_says_what_it_does_and_what_must_hold() -> None:
    for name, entry in ENTRIES.items():
        assert entry.does, name
        assert not entry.does.endswith("."), name
        assert entry.code or entry.files, f"{name} does nothing"
        assert set(entry.defects) <= set(MODES), name
        assert all(hold.endings for hold in map(entry.holds, MODES)), name
        assert not entry.holds(BOXED).survives, f"nothing outlives the sandbox, {name} neither"


def test_entries_are_arranged_once_and_not_more_than_there_are_components() -> None:
    made = arranged(list(ENTRIES.values()))
    names = [entry.name for arrangement in made for entry in arrangement.entries]
    assert sorted(names) == sorted(ENTRIES)
    assert max(len(arrangement.entries) for arrangement in made) <= len(TARGETS)


def test_malformed_frames() -> None:
    tally = fuzz(6000, seed=0)
    assert tally.problems == []
    assert tally.ends["refused"] > 3000, "most of them must be malformed indeed"
    assert tally.ends["accepted"] > 100, "and some of them nearly not"
