"""The README says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from conformance.errors import ExitCode
from conformance.numerics.ensemble import MULTIPLE
from conformance.options import OPTIONS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def test_every_option_stands_in_the_readme_with_its_default() -> None:
    rows = [line for line in README.splitlines() if line.startswith("| `--")]
    expected = []
    for option in OPTIONS:
        name = f"`--{option.name} {option.metavar}`" if option.metavar else f"`--{option.name}`"
        default = "" if option.default is None else f"`{option.default}`"
        expected.append((name, option.help, default))
    found = [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in rows]
    assert found == expected


def test_every_exit_code_stands_in_the_readme() -> None:
    rows = re.findall(r"^\| (\d) \|", README, flags=re.MULTILINE)
    assert [int(row) for row in rows] == sorted(code.value for code in ExitCode)


def test_links_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_commands_of_the_makefile_are_those_of_the_readme() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for command in re.findall(r"^make (\w+)", README, flags=re.MULTILINE):
        assert f"\n{command}:" in makefile


def test_the_documented_multiple_is_the_one_in_use() -> None:
    text = (ROOT / "docs" / "tolerances.md").read_text("utf-8")
    assert f"## Why {MULTIPLE:g}" in text


def test_nothing_is_left_to_fill_in() -> None:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        assert "@@" not in path.read_text("utf-8"), path
