"""Loads the two corpora that measure the harness: correct variants and named faults.

`variants/` holds implementations that are right but written differently, `faulty/` ones that are
wrong in exactly one way (and null models, which compute nothing). Every entry is one function with
the signature of the adapters contract. Nothing here depends on pytest or on the harness, so that
the corpora can be used from any process: `adapters_text` writes an adapters file around an entry.
"""

import importlib
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parent
PACKAGE = "conformance_corpus"
NOT_ENTRIES = {"catalogue", "pieces", "rotations"}  # these describe entries and hold none


class Entry(Protocol):
    """What both catalogues' entries have in common; see `catalogue.py` in each folder."""

    id: str
    component: str
    function: Callable[..., Any]
    sentence: str
    source: str
    level: str
    note: str


def module(name: str) -> types.ModuleType:
    """Imports a module of this folder ("parts", "variants.rope") as part of one made-up package.

    The folder is no package of its own, yet its modules need each other; a made-up parent with
    the folder as its path gives them relative imports and keeps their names out of everyone's way.
    """
    if PACKAGE not in sys.modules:
        package = types.ModuleType(PACKAGE)
        package.__path__ = [str(ROOT)]
        sys.modules[PACKAGE] = package
    return importlib.import_module(f"{PACKAGE}.{name}")


def load(folder: str, *names: str) -> list[Entry]:
    """Imports a corpus afresh and returns its entries, sorted by file name, in written order.

    Afresh, because some faults keep state between calls: each load starts without it.

    Args:
        folder: "variants" or "faulty".
        names: modules to take ("rope", "nulls"); all of the folder when none is named.
    """
    prefix = f"{PACKAGE}.{folder}."
    for stale in [name for name in sys.modules if name.startswith(prefix)]:
        del sys.modules[stale]
    found = sorted(path.stem for path in (ROOT / folder).glob("*.py"))
    chosen = names or tuple(name for name in found if name not in NOT_ENTRIES)
    return [entry for name in chosen for entry in module(f"{folder}.{name}").ENTRIES]


def variants() -> list[Entry]:
    """All correct implementations."""
    return load("variants")


def faults() -> list[Entry]:
    """All named faults, without the null models."""
    return [entry for entry in load("faulty") if not entry.id.startswith("null-")]


def nulls() -> list[Entry]:
    """The null models: answers of the right shape that compute nothing."""
    return load("faulty", "nulls")


def adapters_text(folder: str, *identifiers: str) -> str:
    """The text of an adapters file that offers the named entries (one per component) and no more.

    A file written from it can be graded like any submission, from any folder.
    """
    return (
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import corpus\n"
        "sys.path.pop(0)\n"
        f"for entry in corpus.load({folder!r}):\n"
        f"    if entry.id in {tuple(identifiers)!r}:\n"
        "        globals()['run_' + corpus.FUNCTIONS.get(entry.component, entry.component)] = (\n"
        "            entry.function\n"
        "        )\n"
    )


# Adapter functions are named run_<component>, but for one.
FUNCTIONS = {"rotation": "rotation_matrix"}
