"""The class of `make class`: the same for the same seed, of every kind, and self-contained."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hostile.catalogue import BOXED, PLAIN
from made_class import ATTACKS, SHARES, attacks, make_class

from conformance.batch.find import find
from conformance.batch.unpack import Refused, unpack

ROOT = Path(__file__).resolve().parents[2]
WORLD = {"@TOKEN@": "token", "@HOME@": "/home/nobody", "@SUITE@": "/suite"}


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".gz")  # which holds the time
    }


def test_the_same_class_twice(tmp_path: Path) -> None:
    made = make_class(tmp_path / "a", 12, 0, WORLD, BOXED)
    assert make_class(tmp_path / "b", 12, 0, WORLD, BOXED) == made
    assert hashes(tmp_path / "a") == hashes(tmp_path / "b")
    assert make_class(tmp_path / "c", 12, 1, WORLD, PLAIN) != made
    kinds = Counter(one.kind for one in made)
    assert set(kinds) == set(SHARES)
    assert sum(kinds.values()) == 12
    found, others = find([tmp_path / "a"], tmp_path / "results")
    assert [one.name for one in found] == [one.name for one in made]
    assert others == []


def test_nothing_in_it_needs_the_suite(tmp_path: Path) -> None:
    make_class(tmp_path / "class", 12, 0, WORLD, BOXED)
    found, _ = find([tmp_path / "class"], tmp_path / "results")
    for one in found:
        folder = one.path
        if one.is_archive:
            try:
                folder = unpack(one.path, tmp_path / "unpacked" / one.name)
            except Refused:
                continue
        texts = [p.read_bytes() for p in folder.rglob("*") if p.is_file()]
        assert not [text for text in texts if str(ROOT).encode() in text]


def test_too_small_a_class_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no room for every kind"):
        make_class(tmp_path, 4, 0, WORLD, BOXED)


def test_its_attacks_are_those_of_the_catalogue() -> None:
    known = {attack.name: attack for attack in attacks()}
    assert len(set(ATTACKS)) == SHARES["hostile"]
    for name in ATTACKS:
        assert not known[name].options, "a class is graded with one set of options"
        assert known[name].command == "grade"
        assert known[name].build is None
