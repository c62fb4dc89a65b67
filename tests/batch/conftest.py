"""Folders of submissions, and the driver of the fake grader as a module."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

collect_ignore = ["fake_grader.py", "driver.py"]

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def driver() -> ModuleType:
    """`batch(folder, out, ...)`: a batch whose submissions are graded by the fake."""
    name = "conformance_tests_batch_driver"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / "driver.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def write_class(folder: Path, submissions: Mapping[str, str]) -> Path:
    """A folder with a sub-folder for each name, whose adapters.py holds the text."""
    for name, text in submissions.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "adapters.py").write_text(text, "utf-8")
    return folder


@pytest.fixture
def a_class(tmp_path: Path) -> Path:
    """One submission of every kind."""
    return write_class(
        tmp_path / "class",
        {
            "ada": "right\n",
            "bob": "wrong\n",
            "cyd": "half\n",
            "dan": "crash\n",
            "eve": "forged\n",
            "fay": "unloadable\n",
            "gus": "no-room\n",
            "hal": "contrary\n",
            "ida": "right\n",
        },
    )
