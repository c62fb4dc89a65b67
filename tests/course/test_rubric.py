"""The rubric: what it may say, and how it is told what is wrong with it."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from conformance.adapters import COURSE_FUNCTIONS
from conformance.course import Counts, Grading, Rubric
from conformance.course.ci import course_text
from conformance.course.rubric import MOST_PROBLEMS, shown_points
from conformance.errors import ExitCode, UsageError
from conformance.spec import component_spec

WHOLE = """
total = 25.5
grading = "proportional"

[components]
rmsnorm = 10
rope = { must = 12.5, should = 3, grading = "all-or-nothing" }
glu = { must = 5, counts = "bonus" }
transformer_lm = { must = 20, counts = "later" }
"""


def refused(text: str) -> list[str]:
    with pytest.raises(UsageError) as caught:
        Rubric.from_mapping(tomllib.loads(text), "here.toml")
    assert caught.value.exit_code is ExitCode.USAGE
    return caught.value.message.splitlines()


def test_a_whole_rubric() -> None:
    rubric = Rubric.from_mapping(tomllib.loads(WHOLE), "here.toml")
    norm, rope, glu, model = rubric.components
    assert (norm.component, norm.must, norm.grading) == ("rmsnorm", 10, Grading.PROPORTIONAL)
    assert (rope.must, rope.should, rope.points) == (Fraction(25, 2), 3, Fraction(31, 2))
    assert rope.grading is Grading.ALL_OR_NOTHING
    assert (glu.counts, model.counts) == (Counts.BONUS, Counts.LATER)
    assert rubric.total == Fraction("25.5")


def test_without_a_rubric_all_components_of_the_course_are_worth_the_same() -> None:
    rubric = Rubric.default()
    assert {worth.component for worth in rubric.components} == set(COURSE_FUNCTIONS)
    assert {(w.must, w.should, w.grading) for w in rubric.components} == {
        (10, 0, Grading.ALL_OR_NOTHING)
    }
    assert rubric.total == 120


def test_the_file_to_start_from_is_the_default() -> None:
    table = tomllib.loads(course_text())["rubric"]
    assert Rubric.from_mapping(table, "course.toml") == Rubric.default()


BAD = {
    "components = 3": "components: give a table",
    "[components]": "components: give a table",
    "total = 3": "components: give a table",
    "[components]\nrmsnrom = 1": "components.rmsnrom: there is no such component; did you mean "
    "rmsnorm?",
    "[components]\nqqq = 1": "components.qqq: there is no such component; the components are: ",
    "[components]\nrope = -1": "components.rope: -1 points are negative; give 0 or more",
    "[components]\nrope = true": "components.rope: True is no number of points",
    "[components]\nrope = '5'": "components.rope: '5' is no number of points",
    "[components]\nrope = nan": "components.rope: nan is no number of points",
    "[components]\nrope = inf": "components.rope: inf is no number of points",
    "[components]\nrope = 1e9": "components.rope: 1000000000.0 points; give 1,000,000 at most",
    "[components]\nrope = {}": "components.rope: give its points as must, should or both",
    "[components]\nrope = { must = [1] }": "components.rope.must: [1] is no number of points",
    "[components]\nrope = { may = 1 }": "components.rope.may: there is no such entry; MAY",
    "[components]\nrope = { mst = 1 }": "components.rope.mst: there is no such entry; did you mean "
    "must?",
    "[components]\nrope = { must = 1, grading = 'a' }": "components.rope.grading: 'a'; choose "
    "one of all-or-nothing, proportional",
    "[components]\nrope = { must = 1, counts = 1 }": "components.rope.counts: 1; choose one of",
    "grading = []\n[components]\nrope = 1": "grading: []; choose one of",
    "totl = 1\n[components]\nrope = 1": "totl: there is no such entry; did you mean total?",
    "rope = 1\n[components]\nrope = 1": "rope: there is no such entry; components stand below",
    "total = 9\n[components]\nrope = 10": "total: 9, but the required components add up to 10",
    "total = 'x'\n[components]\nrope = 10": "total: 'x' is no number of points",
    "[components]\nrope = 0": "components: no required component gives any points",
    "[components]\nglu = { must = 1, counts = 'bonus' }": "components: no required component",
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_wrong_is_said_with_file_and_key(text: str) -> None:
    assert refused(text)[0].startswith(f"rubric here.toml: {BAD[text]}")


def test_points_that_nobody_could_earn(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(component_spec("rope"), requirements={})
    monkeypatch.setattr("conformance.course.rubric.component_spec", lambda name: spec)
    (line,) = refused("[components]\nrope = { must = 1, should = 1 }")
    assert "components.rope.should: rope has no SHOULD requirement" in line


def test_everything_wrong_is_said_at_once_but_not_without_end() -> None:
    lines = refused("total = -1\n[components]\nrope = -1\nglu = 'x'\nrmsnrom = 2")
    assert len(lines) == 4
    names = "\n".join(f"c{number} = 1" for number in range(30))
    lines = refused(f"[components]\n{names}")
    assert len(lines) == MOST_PROBLEMS + 1
    assert lines[-1] == "and 20 more"


@pytest.mark.parametrize("table", [3, [], "x", None])
def test_no_table_at_all(table: object) -> None:
    with pytest.raises(UsageError, match=r"rubric here.toml: \[rubric\]: give a table"):
        Rubric.from_mapping(table, "here.toml: [rubric]")


def test_a_file_of_its_own_or_a_table_in_another(tmp_path: Path) -> None:
    alone, among = tmp_path / "rubric.toml", tmp_path / "course.toml"
    alone.write_text("[components]\nrope = 3\n", "utf-8")
    among.write_text("[grade]\nprofile = 'quick'\n[rubric.components]\nrope = 3\n", "utf-8")
    assert Rubric.read(alone) == Rubric.read(among)
    among.write_text("[rubric.components]\nrop = 3\n", "utf-8")
    with pytest.raises(UsageError, match=r"course.toml, \[rubric\]: components.rop: .* rope"):
        Rubric.read(among)


@pytest.mark.parametrize("content", [b"rope = ", b"\xff\xfe", b"[components"])
def test_what_is_no_toml(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rubric.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"rubric .*rubric\.toml: this is not TOML"):
        Rubric.read(path)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        Rubric.read(tmp_path / "rubric.toml")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        Rubric.read(tmp_path)


def test_points_as_they_are_shown() -> None:
    shown = {"10": 10, "7.5": Fraction(15, 2), "33.33": Fraction(100, 3), "0": 0, "9.99": "9.999"}
    assert [shown_points(Fraction(value)) for value in shown.values()] == list(shown)


def test_the_example_in_the_documentation() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "courses.md").read_text("utf-8")
    example = text.partition("```toml\n")[2].partition("```")[0]
    assert Rubric.from_mapping(tomllib.loads(example), "docs/courses.md").total == 53
