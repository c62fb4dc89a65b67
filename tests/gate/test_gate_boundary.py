"""What of a folder could take part in the judge: found, named, and kept off its path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance import clean
from conformance.boundary import left_out


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    for name in ("conftest.py", "sitecustomize.py", "mine.pth", "json.py", "torch.py", "model.py"):
        (tmp_path / name).write_text("", "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p evil\n", "utf-8")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", "utf-8")
    (tmp_path / "setup.cfg").write_text("[metadata]\n\n[tool:pytest]\ntestpaths = .\n", "utf-8")
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("", "utf-8")
    (tmp_path / "types").mkdir()
    (notice,) = left_out(tmp_path)
    named = notice.partition(": ")[2].split(", ")
    assert set(named) == {
        *("conftest.py", "sitecustomize.py", "mine.pth", "json.py", "torch.py"),
        *("pytest.ini", "setup.cfg", "numpy/"),
    }


def test_an_ordinary_folder_has_no_notice(tmp_path: Path) -> None:
    (tmp_path / "adapters.py").write_text("", "utf-8")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", "utf-8")
    assert left_out(tmp_path, tmp_path / "nowhere") == ()


def test_a_long_list_is_cut(tmp_path: Path) -> None:
    for name in sorted(sys.stdlib_module_names)[:30]:
        (tmp_path / f"{name}.py").write_text("", "utf-8")
    (notice,) = left_out(tmp_path)
    assert notice.endswith("and 22 more")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with nothing of it on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return tmp_path


def test_a_path_into_the_folder_is_suspicious(folder: Path, monkeypatch: object) -> None:
    assert not clean.foreign_paths(folder)
    sys.path.insert(0, "")
    try:
        assert clean.foreign_paths(folder) == [""]
        assert clean.suspicious()
    finally:
        sys.path.remove("")


def test_so_is_one_into_the_candidate(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    candidate = tmp_path_factory.mktemp("candidate")
    sys.path.append(str(candidate / "src"))
    try:
        assert not clean.foreign_paths(folder)
        assert clean.foreign_paths(folder, candidate) == [str(candidate / "src")]
        assert clean.suspicious(str(candidate))
    finally:
        sys.path.remove(str(candidate / "src"))


def test_packages_and_the_suite_itself_are_not() -> None:
    import numpy

    root = Path(clean.__file__).parents[1]
    found = clean.foreign_paths(Path(numpy.__file__).parents[1], root, Path(sys.prefix))
    assert str(root) not in found
    assert not [entry for entry in found if "site-packages" in entry]
