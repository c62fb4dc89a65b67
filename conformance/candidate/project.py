"""The project around a submission: its configuration, its folders, what it calls itself.

Everything is read as data; what is malformed in a file that is not ours counts as absent.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.candidate import sources
from conformance.candidate.sources import entries, skipped
from conformance.errors import LoadError

CONFIG_NAME = "conformance.toml"
INSTALLED = ("site-packages", "dist-packages")
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".git", CONFIG_NAME)


# -- conformance.toml ----------------------------------------------------------------------------


def read_config(folder: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The checked content of conformance.toml, and a notice on what of it is ignored.

    It may say where things are and nothing else. Raises LoadError where that is said wrongly.
    """
    path = folder / CONFIG_NAME
    if not path.is_file():
        return {}, ()
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LoadError(f"{path} is not valid TOML: {error}") from None
    _check_config(path, config)
    known = {key: value for key, value in config.items() if key in ("adapters", "modules")}
    names = ", ".join(_shown(key) for key in sorted(set(config) - set(known)))
    told = (
        f"ignored in its {CONFIG_NAME}: {names} (a submission says where its adapters and modules "
        "are; how it is graded stands in a file for --config)"
    )
    return known, (told,) if names else ()


def _shown(key: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in key[:40])


def _check_config(path: Path, config: Mapping[str, Any]) -> None:
    adapters = config.get("adapters", "adapters.py")
    if not isinstance(adapters, str) or not adapters.endswith(".py"):
        raise LoadError(f'{path}: adapters must be the path of a Python file, as in "adapters.py"')
    if "adapters" in config and not (path.parent / adapters).is_file():
        raise LoadError(f"{path}: adapters = {adapters!r}, but there is no such file")
    if not sources.inside(path.parent / adapters, path.parent):
        raise LoadError(f"{path}: adapters = {adapters!r} leads out of the submission's folder")
    modules = config.get("modules", {})
    good = isinstance(modules, dict) and all(
        isinstance(v, str) and v.count(":") == 1 and all(v.split(":")) for v in modules.values()
    )
    if not good:
        raise LoadError(f'{path}: modules must be a table like RMSNorm = "package.module:RMSNorm"')


# -- folders -------------------------------------------------------------------------------------


def is_project(folder: Path) -> bool:
    return any((folder / name).exists() for name in _PROJECT_FILES)


def is_installed(folder: Path) -> bool:
    return any(part in INSTALLED for part in folder.parts)


def workdir(adapters: Path, base: Path, root: Path) -> Path:
    """Where its author ran it: the innermost project around the adapters, or the folder given."""
    for folder in adapters.parents:
        if folder == root or not folder.is_relative_to(root):
            break
        if is_project(folder):
            return folder
    base = base.parent if base.name == "src" else base
    return base if base.is_relative_to(root) else root


def search_path(base: Path, root: Path, *more: Path) -> tuple[Path, ...]:
    """Folders for the candidate's `sys.path`: of the package, of the project, of members of it."""
    wanted = [base]
    if not is_installed(root):
        # a package's own folder must stay off the path: its modules could hide others
        more = tuple(p for p in more if not (p / "__init__.py").is_file())
        tops = [] if (root / "__init__.py").is_file() and not is_project(root) else [root]
        wanted += [base / "src", *tops, root / "src", *_declared_folders(root), *more]
        wanted += _members(root)
    return tuple(dict.fromkeys(p for p in wanted if p.is_dir()))


def _declared_folders(root: Path) -> Iterator[Path]:
    """Where pyproject.toml tells setuptools to look for packages."""
    tool = _read_pyproject(root).get("tool", {})
    setuptools = tool.get("setuptools", {}) if isinstance(tool, dict) else {}
    packages = setuptools.get("packages", {}) if isinstance(setuptools, dict) else {}
    find = packages.get("find", {}) if isinstance(packages, dict) else {}
    where = find.get("where", []) if isinstance(find, dict) else []
    for entry in where if isinstance(where, list) else []:
        if isinstance(entry, str) and sources.inside(root / entry, root):
            yield root / entry


def _members(root: Path) -> Iterator[Path]:
    """Projects one folder down: a later assignment carries the package of the first one along."""
    for entry in entries(root):
        if entry.is_dir() and not skipped(entry) and (entry / "pyproject.toml").is_file():
            yield entry
            yield entry / "src"


# -- names ---------------------------------------------------------------------------------------


def distributions(root: Path, base: Path, folders: Sequence[Path]) -> tuple[tuple[str, str], ...]:
    """What `importlib.metadata` shall know; an installed package is known already."""
    if is_installed(root):
        return ()
    own = [folder for folder in folders if folder.is_relative_to(root)]
    names = [root.name] if (root / "__init__.py").is_file() else []
    return sources.distributions(_project(root, base), names, own)


def _project(*folders: Path) -> dict[str, Any]:
    """The table [project] (or that of poetry) of the first pyproject.toml that has one."""
    for folder in folders:
        data = _read_pyproject(folder)
        tool = data.get("tool", {})
        for table in (data.get("project"), tool.get("poetry") if isinstance(tool, dict) else None):
            if isinstance(table, dict) and table.get("name"):
                return table
    return {}


def _read_pyproject(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
