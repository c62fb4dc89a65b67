"""What of a submission's folder could take part in the judge, and is left out.

Nothing is read but names, and settings files for the one line that says that they are for pytest.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

SETTINGS = {
    "pytest.ini": "",
    ".pytest.ini": "",
    "pytest.toml": "",
    ".pytest.toml": "",
    "pyproject.toml": r"^\s*\[tool\.pytest\b",
    "setup.cfg": r"^\s*\[tool:pytest\]",
    "tox.ini": r"^\s*\[pytest\]",
}
"""Files in which pytest looks for settings, and the line by which those that serve others too say
so."""

STARTED = ("conftest.py", "sitecustomize.py", "usercustomize.py")
"""Files that pytest or Python run by themselves."""

JUDGE = (
    *("conformance", "reference_impl", "torch", "numpy", "ml_dtypes", "safetensors", "pytest"),
    *("_pytest", "pluggy", "hypothesis", "tabulate", "jinja2", "jsonschema", "psutil", "mpmath"),
)
"""What the judge is made of, beside the standard library."""

LARGEST = 1 << 20
SHOWN = 8


def left_out(*folders: Path) -> tuple[str, ...]:
    """One sentence on what lies in these folders and takes no part in the judge; or none."""
    found: dict[str, None] = {}
    for folder in dict.fromkeys(path.resolve() for path in folders):
        for name in _in(folder):
            found.setdefault(name)
    if not found:
        return ()
    names = list(found)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (f"no part of the judge, though in the folder: {', '.join(names[:SHOWN])}{more}",)


def _in(folder: Path) -> Iterator[str]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for path in entries:
        if path.name in STARTED or path.suffix == ".pth" or _is_settings(path):
            yield path.name
        elif _hides(path):
            yield path.name + ("/" if path.is_dir() else "")


def _is_settings(path: Path) -> bool:
    wanted = SETTINGS.get(path.name)
    if wanted is None or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return False
    return re.search(wanted, text, re.MULTILINE) is not None


def _hides(path: Path) -> bool:
    """A module whose name is that of one the judge uses."""
    name = path.name.partition(".")[0]
    if name not in JUDGE and name not in sys.stdlib_module_names:
        return False
    if path.is_dir():
        return any(path.glob("*.py"))
    return path.suffix in (".py", ".so", ".pyd", ".pyc")
