"""What does `--impl=` mean?  Finds a submission without executing any of it.

The value of `--impl` is tried in this order; the first that fits is taken:

1. a name that the suite knows: `torch`, `transformers`, `rotary-embedding-torch` (adapters for
   these libraries come with the suite) and `reference_impl`;
2. an existing path, relative to the working directory: an adapters file, or a folder;
3. the name of an importable package or module, dotted or not, found on Python's path.

In a folder the adapters module is, in this order:

1. what `adapters = "..."` in the folder's `conformance.toml` says;
2. `adapters.py`;
3. `tests/adapters.py`;
4. `<package>/adapters.py`;
5. `src/<package>/adapters.py`;
6. an `adapters.py` up to four folders deeper, the nearest ones first;
7. without any: classes with the names of the specification (`Linear`, `RMSNorm`, ...), wherever
   they are, are adapted.

A file counts from step 2 on if it has at least one function of the contract.  Where one step offers
several, the file with most of these functions is taken and the others are listed in `ignored`.
"""

from __future__ import annotations

import difflib
import importlib.machinery
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance import clean
from conformance.candidate import project, sources
from conformance.candidate.sources import Source, contract_functions, entries, skipped
from conformance.errors import LoadError, UsageError

#: --impl value -> file in conformance/known
KNOWN = {
    "torch": "torch.py",
    "transformers": "transformers.py",
    "rotary-embedding-torch": "rotary_embedding_torch.py",
}
OWN_PACKAGE = "reference_impl"
DEEPEST = 4


@dataclass(frozen=True)
class Submission:
    """A candidate that was found: where it is and how the worker has to load it."""

    name: str
    #: its files lie below
    root: Path
    #: the adapters file; None: the classes in `found` are adapted
    adapters: Path | None
    #: dotted name under which the adapters file is imported, e.g. "tests.adapters"
    module: str
    #: folders that come first on the candidate's `sys.path`
    search_path: tuple[Path, ...]
    #: one sentence on what was chosen
    how: str
    #: adapters files and classes that were passed over
    ignored: tuple[str, ...] = ()
    #: class name -> "package.module:Class", from conformance.toml
    modules: Mapping[str, str] = field(default_factory=dict)
    #: the components that the adapters module declares; None if it does not
    declared: tuple[str, ...] | None = None
    #: (name, version) of what `importlib.metadata` shall know
    distributions: tuple[tuple[str, str], ...] = ()
    #: like `modules`, found by reading the submission's files
    found: Mapping[str, str] = field(default_factory=dict)
    #: part of this suite, so nothing of the suite is hidden from it
    ours: bool = False
    #: working directory of the candidate, `root` if None
    workdir: Path | None = None
    #: what a reader of the report should know about its settings
    notices: tuple[str, ...] = ()
    #: one file that was named, of no project: others beside it may be other submissions
    single: bool = False
    #: folders beside `root` that it may see in a sandbox
    visible: tuple[Path, ...] = ()

    def load_config(self) -> dict[str, Any]:
        """What the worker has to know of this, in values that JSON can hold."""
        return {
            "root": str(self.root),
            "workdir": str(self.workdir or self.root),
            "adapters": None if self.adapters is None else str(self.adapters),
            "module": self.module,
            "search_path": [str(folder) for folder in self.search_path],
            "found": dict(self.found),
            "modules": dict(self.modules),
            "distributions": [list(pair) for pair in self.distributions],
            "ours": self.ours,
            "contract": sorted(contract_functions()),
        }


def resolve(impl: str, *, cwd: Path) -> Submission:
    """The submission that `impl` names; raises UsageError or LoadError with one clear message."""
    value = impl.strip()
    if not value:
        raise UsageError(
            "--impl needs a value: a folder, an adapters file or the name of a package"
        )
    if value in KNOWN:
        return _known(value)
    if value == OWN_PACKAGE:
        return _own_package()
    path = Path(cwd, Path(value).expanduser())
    if path.exists():
        named, path = Path(os.path.abspath(path)), path.resolve()
        found = _folder(path) if path.is_dir() else _file(path)
        # a link to the suite is not the suite: whoever made it has written nothing
        return found if named == path or not _in_suite(path) else replace(found, ours=False)
    if looks_like_a_path(value):
        raise UsageError(f"--impl={impl}: there is no such file or folder{_suggestion(path)}")
    return _importable(value, cwd)


def looks_like_a_path(value: str) -> bool:
    return value.startswith((".", "~")) or "/" in value or "\\" in value or value.endswith(".py")


def _suggestion(path: Path) -> str:
    """ "; did you mean ...?" for a misspelt path."""
    close = difflib.get_close_matches(path.name, [e.name for e in entries(path.parent)], n=1)
    return f"; did you mean {path.parent / close[0]}?" if close else ""


# -- what comes with the suite -------------------------------------------------------------------


def _suite() -> Path:
    return Path(__file__).resolve().parents[1]


def _known(name: str) -> Submission:
    path = _suite() / "known" / KNOWN[name]
    if not path.is_file():
        raise LoadError(f"--impl={name}: the suite's own adapters {path} are missing")
    return Submission(
        name=name,
        root=path.parent,
        adapters=path,
        module=f"known_{path.stem}",
        search_path=(),
        how=f"the suite's own adapters for the library {name}",
        declared=sources.read(path).declared,
        ours=True,
    )


def _own_package() -> Submission:
    folder = _suite().parent / OWN_PACKAGE
    if not (folder / "adapters.py").is_file():
        raise LoadError(f"--impl={OWN_PACKAGE}: there is no {folder / 'adapters.py'}")
    submission = _with_adapters(
        folder, sources.read(folder / "adapters.py"), "the suite's own implementation"
    )
    return replace(submission, name=OWN_PACKAGE)


# -- a file --------------------------------------------------------------------------------------


def _file(path: Path) -> Submission:
    """An adapters file that was named; its project is looked for around it."""
    if path.suffix == ".ipynb":
        raise UsageError(f"--impl={path}: a notebook; save its code as a Python file first")
    if path.suffix in (".zip", ".gz", ".tar", ".tgz"):
        raise UsageError(f"--impl={path}: an archive; unpack it and name the folder")
    if path.suffix != ".py":
        raise UsageError(f"--impl={path}: not a Python file; name an adapters file or a folder")
    source = sources.read(path)
    root = _project_root(path, source)
    found = _with_adapters(root, source, f"the adapters file {path.name}")
    return replace(found, single=not project.is_project(root))


def _star_import(source: Source) -> bool:
    return any("*" in names for _, _, names in source.imports)


def _project_root(path: Path, source: Source) -> Path:
    """The folder that the project of an adapters file fills: where its project file is, if near."""
    base, _ = _package_of(path, source, None)
    for folder in (base, *list(base.parents)[:2]):
        if folder.name in project.INSTALLED or folder == Path.home() or folder == folder.parent:
            break
        if project.is_project(folder):
            return folder
    return base


# -- a folder ------------------------------------------------------------------------------------


def _folder(folder: Path) -> Submission:
    """The adapters module, or the classes, of a submission's folder."""
    if not entries(folder):
        raise LoadError(f"{folder} is empty; name the folder that holds the submission")
    config, notices = project.read_config(folder)
    return replace(_found_in(folder, config), notices=notices)


def _found_in(folder: Path, config: Mapping[str, Any]) -> Submission:
    if "adapters" in config:
        chosen = sources.read(folder / config["adapters"])
        how = f"{config['adapters']}, as {project.CONFIG_NAME} says"
        return _with_adapters(folder, chosen, how, modules=config.get("modules", {}))
    for how, paths in _steps(folder):
        ranked = _ranked(paths)
        if ranked:
            ignored = [_relative(s.path, folder) for s in ranked[1:]]
            name = _relative(ranked[0].path, folder)
            text = f"{name}, {how}" + (", the one with most adapter functions" if ignored else "")
            return _with_adapters(
                folder, ranked[0], text, ignored=ignored, modules=config.get("modules", {})
            )
    return _by_classes(folder, config.get("modules", {}))


def _steps(folder: Path) -> Iterator[tuple[str, list[Path]]]:
    """The places to look for an adapters module, each with words for it."""
    yield "at the top of the folder", [folder / "adapters.py"]
    yield "in the tests", [folder / "tests" / "adapters.py"]
    yield "in a package", _one_down(folder)
    yield "in a package in src", _one_down(folder / "src")
    for depth in range(2, DEEPEST + 1):
        yield f"found {depth} folders down", list(_deeper(folder, depth))


def _one_down(folder: Path) -> list[Path]:
    return [e / "adapters.py" for e in entries(folder) if e.is_dir() and not skipped(e)]


def _deeper(folder: Path, depth: int) -> Iterator[Path]:
    """Every `adapters.py` that lies exactly `depth` folders down."""
    if depth == 0:
        yield folder / "adapters.py"
        return
    for entry in entries(folder):
        if entry.is_dir() and not skipped(entry):
            yield from _deeper(entry, depth - 1)


def _ranked(paths: Sequence[Path]) -> list[Source]:
    """Those files that have adapter functions, the one with most first."""
    contract = contract_functions()
    ours = _suite() / "adapters.py"
    found = [sources.read(p) for p in paths if p.is_file() and p.resolve() != ours]
    counted = [(s.adapters(contract) or int(_star_import(s)), s) for s in found]
    counted.sort(key=lambda pair: (-pair[0], str(pair[1].path)))
    return [source for count, source in counted if count]


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


# -- putting a submission together ---------------------------------------------------------------


def _package_of(path: Path, source: Source, root: Path | None) -> tuple[Path, str]:
    """(folder that belongs on the path, dotted name) for an adapters file.

    Around the file are as many packages as there are folders with an `__init__.py`, as its
    relative imports need, or one if it lies in a folder of tests, in whose name others import.
    A project's top folder is no package, even if somebody has put an `__init__.py` there.
    """
    folders = 0
    while (path.parents[folders] / "__init__.py").is_file() and path.parents[folders].name:
        if path.parents[folders] == root and project.is_project(root):
            break
        folders += 1
    if not folders and path.parent != root and path.parent.name in ("tests", "test"):
        folders = 1
    folders = min(max(folders, source.depth()), len(path.parents) - 1)
    names = [p.name.replace(".", "_") for p in reversed(list(path.parents)[:folders])]
    return path.parents[folders], ".".join([*names, path.stem])


def _with_adapters(
    root: Path,
    source: Source,
    how: str,
    *,
    ignored: Sequence[str] = (),
    modules: Mapping[str, str] | None = None,
) -> Submission:
    _must_be_text(source.path)
    base, module = _package_of(source.path, source, root)
    search_path = project.search_path(base, root, source.path.parent)
    return Submission(
        name=_name(root, base) if source.path.stem == "adapters" else source.path.stem,
        root=root,
        adapters=source.path,
        module=module,
        search_path=search_path,
        how=how,
        ignored=tuple(ignored),
        modules=modules or {},
        declared=source.declared,
        distributions=project.distributions(root, base, search_path),
        found=sources.reachable_classes(source.path, search_path),
        ours=_is_ours(source.path, root),
        workdir=project.workdir(source.path, base, root),
    )


def _is_ours(adapters: Path, root: Path) -> bool:
    """Whether a submission is a part of this suite; a link in another's folder makes it none."""
    return _in_suite(adapters) and sources.inside(adapters, root)


def _in_suite(path: Path) -> bool:
    own = (_suite(), _suite().parent / OWN_PACKAGE)
    return any(path == folder or sources.inside(path, folder) for folder in own)


def _must_be_text(path: Path) -> None:
    """LoadError for an adapters file that is no text of a kind that Python reads."""
    problem = sources.damage(path)
    if problem:
        raise LoadError(f"{path} {problem}")


def _name(root: Path, base: Path) -> str:
    """What a report calls the submission: its folder, unless that is only called src.

    A file of another name than adapters.py is called by its own: several may share a folder.
    """
    return root.parent.name if root.name == "src" and root.parent.name else root.name or base.name


def _by_classes(folder: Path, modules: Mapping[str, str]) -> Submission:
    """A folder without adapters: its classes with the specification's names are adapted."""
    base = folder
    while (base / "__init__.py").is_file() and base.parent != base:
        base = base.parent
    search_path = project.search_path(base, folder)
    found, ignored = sources.classes_below(folder, search_path)
    found |= modules
    if not found:
        raise LoadError(_nothing_found(folder))
    names = ", ".join(sorted(found))
    return Submission(
        name=_name(folder, base),
        root=folder,
        adapters=None,
        module="",
        search_path=search_path,
        how=f"no adapters.py, so classes and functions found by name: {names}",
        ignored=tuple(ignored),
        modules=modules,
        distributions=project.distributions(folder, base, search_path),
        found=found,
    )


def _nothing_found(folder: Path) -> str:
    empty = [p for p in (folder / "adapters.py", folder / "tests" / "adapters.py") if p.is_file()]
    for path in empty:
        _must_be_text(path)
    start = f"{folder} has neither an adapters.py with functions such as run_linear"
    if empty:
        start = f"{empty[0]} has no functions such as run_linear, and {folder} has neither others"
    return (
        f"{start} nor classes named as in the specification (Linear, RMSNorm, ...); "
        "`conformance init` writes an adapters.py to fill in"
    )


# -- an importable name --------------------------------------------------------------------------


def _importable(name: str, cwd: Path) -> Submission:
    """A package or module on Python's path; found by its files, never imported."""
    spec = _find_spec(name, [str(cwd), *clean.SEARCHED, *sys.path])
    if spec is None:
        known = ", ".join([*KNOWN, OWN_PACKAGE])
        raise UsageError(
            f"--impl={name}: neither a file or folder here, nor an installed package, "
            f"nor one of the known names ({known})"
        )
    folders = [Path(p).resolve() for p in spec.submodule_search_locations or []]
    if not folders:
        if not spec.origin or not spec.origin.endswith(".py"):
            raise UsageError(f"--impl={name}: not a module that is written in Python")
        return _named(_file(Path(spec.origin).resolve()), name)
    return _named(_package(folders[0]), name)


def _named(found: Submission, name: str) -> Submission:
    """A submission that was named as it is imported: so what lies beside it can be imported too."""
    beside = [p for p in found.search_path if p not in (Path.home(), Path(p.anchor))]
    return replace(found, name=name, single=False, visible=tuple(beside))


def _find_spec(name: str, path: list[str]) -> importlib.machinery.ModuleSpec | None:
    """Walks a dotted name along the folders of its packages without importing any."""
    spec = None
    here: Sequence[str] = path
    for part in name.split("."):
        spec = importlib.machinery.PathFinder.find_spec(part, list(here))
        if spec is None and here is path:
            spec = _editable(part)
        if spec is None:
            return None
        here = list(spec.submodule_search_locations or [])
    return spec


def _editable(name: str) -> importlib.machinery.ModuleSpec | None:
    """Asks the finders by which setuptools makes a source folder importable."""
    for finder in sys.meta_path:
        if getattr(finder, "__module__", "").startswith("__editable__"):
            spec = finder.find_spec(name, None)
            if spec is not None:
                return spec
    return None


def _package(folder: Path) -> Submission:
    """A package: its own adapters, those of the checkout it lies in, or its classes."""
    inside = _ranked([folder / "adapters.py", folder / "tests" / "adapters.py"])
    if inside:
        return _with_adapters(folder, inside[0], f"{inside[0].path.name} in the package")
    if not project.is_installed(folder):
        checkout = folder.parent.parent if folder.parent.name == "src" else folder.parent
        if project.is_project(checkout):
            return _folder(checkout)
    return _folder(folder)
