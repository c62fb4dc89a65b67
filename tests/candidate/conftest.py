"""Miniature candidates, written to a temporary folder by the tests that need them."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

Write = Callable[[Mapping[str, str]], Path]


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """Writes files (path -> dedented text) below `folder`."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a submission into a fresh folder called "submission"."""

    def write(files: Mapping[str, str]) -> Path:
        folder = tmp_path / "submission"
        folder.mkdir(exist_ok=True)
        return write_files(folder, files).resolve()

    return write


def ended(pid: int, patience: float = 5.0) -> bool:
    """Is `pid` gone, or a zombie that only waits for its parent, within `patience` seconds?"""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            with contextlib.suppress(psutil.TimeoutExpired):
                process.wait(patience)
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    return True


@pytest.fixture(scope="session")
def has_ended() -> Callable[[int], bool]:
    """Whether a process is gone."""
    return ended


@pytest.fixture(scope="module")
def write_module(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """The same for a submission that several tests share."""

    def write(files: Mapping[str, str]) -> Path:
        return write_files(tmp_path_factory.mktemp("submission"), files).resolve()

    return write
