"""The instructor's own settings: what they may say, and that they say it clearly when wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.config import must_be_outside, read_config, with_config
from conformance.errors import UsageError
from conformance.options import OPTIONS, GradeOptions

GOOD = """
[grade]
components = ["rmsnorm", "silu"]
dtype = "float32"
profile = "quick"
timeout = 20
seed = 7
in-process = false
report = "out/here"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "settings.toml"


def test_options_are_those_of_the_command_line(config: Path) -> None:
    config.write_text(GOOD, "utf-8")
    options = GradeOptions.parse("x", with_config({"config": str(config)}))
    assert options.component == ("rmsnorm", "silu")
    assert options.dtype == ("float32",)
    assert (options.profile, options.timeout, options.seed) == ("quick", 20.0, 7)
    assert options.report == config.parent / "out" / "here", "as seen from the file"
    assert not options.in_process


def test_the_command_line_goes_first(config: Path) -> None:
    config.write_text(GOOD, "utf-8")
    given = {"config": str(config), "seed": "3", "component": ["linear"], "profile": None}
    options = GradeOptions.parse("x", with_config(given))
    assert options.seed == 3
    assert options.component == ("linear",)
    assert options.profile == "quick"


def test_without_a_file_nothing_changes() -> None:
    given = {"seed": "3", "component": None}
    assert with_config(given) == given


WRONG = {
    "[grade]\nproflie = 'quick'": "has no option 'proflie'; did you mean profile?",
    "[grade]\nimport_timeout = 3": "did you mean import-timeout?",
    "[grade]\nprofile = 'fast'": "[grade] profile = 'fast': choose one of quick, standard",
    "[grade]\nseed = '3'": "[grade] seed = '3': give a whole number",
    "[grade]\nseed = true": "give a whole number",
    "[grade]\ntimeout = 'long'": "give a number",
    "[grade]\ntimeout = -1": "[grade] timeout = -1: give a positive number",
    "[grade]\ncomponent = 3": "give a list of names",
    "[grade]\ncomponent = []": "give a list of names",
    "[grade]\ncomponent = ['rmsnrom']": "there is no component 'rmsnrom'; did you mean rmsnorm?",
    "[grade]\ncomponent = ['silu']\ncomponents = ['silu']": "names component twice",
    "[grade]\nin-process = 'no'": "give true or false",
    "[grade]\nreport = 3": "give a text in quotes",
    "[grade]\ncheck = ['silu::definition[float32]']": "given on the command line only, as --check",
    "[grade]\ngate = true": "given on the command line only, as --gate",
    "[garde]\nseed = 3": "there is no table [garde]; did you mean grade?",
    "seed = 3": "there is no table [seed]",
    "grade = 3": "grade must be a table, written as [grade]",
    "[grade": "not valid TOML",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_named(config: Path, text: str) -> None:
    config.write_text(text, "utf-8")
    with pytest.raises(UsageError) as caught:
        read_config(config)
    assert WRONG[text] in caught.value.message
    assert str(config) in caught.value.message


def test_a_file_that_cannot_be_read(config: Path, tmp_path: Path) -> None:
    for path in (config, tmp_path):
        with pytest.raises(UsageError, match=r"--config .*: (No such file|Is a directory)"):
            read_config(path)


def test_every_option_can_be_set_or_says_why_not(config: Path) -> None:
    """None is unknown to the file; values of a wrong type are refused for each of them."""
    for option in OPTIONS:
        config.write_text(f"[grade]\n{option.name} = 2026-11-30\n", "utf-8")
        with pytest.raises(UsageError) as caught:
            read_config(config)
        assert "has no option" not in caught.value.message


def test_a_file_inside_the_submission_is_refused(tmp_path: Path) -> None:
    submission, outside = tmp_path / "submission", tmp_path / "outside.toml"
    submission.mkdir()
    outside.write_text("", "utf-8")
    inside = submission / "settings.toml"
    inside.write_text("", "utf-8")
    link_inside, link_outside = submission / "link.toml", tmp_path / "link.toml"
    link_inside.symlink_to(outside)
    link_outside.symlink_to(inside)
    must_be_outside(outside, submission, "config")
    for path in (inside, link_inside, link_outside, submission / ".." / "submission" / "x.toml"):
        with pytest.raises(UsageError, match="lies inside the submission"):
            must_be_outside(path, submission, "config")
