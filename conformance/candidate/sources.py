"""What can be known about a submission by reading its files.  Nothing here executes any of them.

All of it is best effort: a file that this Python cannot parse may well be right for the interpreter
that the candidate will run under, so a syntax error is never raised here; the worker reports it.
"""

from __future__ import annotations

import ast
import codecs
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

#: folders in which nobody keeps a submission
SKIPPED = frozenset(
    {
        *("node_modules", "site-packages", "dist-packages", "__pycache__", "build", "dist"),
        *("venv", "wandb", "checkpoints"),
    }
)

MAX_FILES = 400
MAX_BYTES = 1 << 20

#: classes that the specification names, and functions that can stand for an adapter as they are
CLASS_NAMES = (
    *("Linear", "Embedding", "RMSNorm", "SwiGLU", "RotaryPositionalEmbedding"),
    *("MultiheadSelfAttention", "TransformerBlock", "TransformerLM"),
)
FUNCTION_NAMES = ("softmax", "silu", "scaled_dot_product_attention")
_BY_LOWER = {name.lower(): name for name in CLASS_NAMES}


def contract_functions() -> frozenset[str]:
    """Names of the functions of the adapters contract."""
    return _defined_functions(Path(__file__).resolve().parents[1] / "adapters.py")


@lru_cache(maxsize=8)
def _defined_functions(path: Path) -> frozenset[str]:
    return frozenset(n for n in read(path).functions if n.startswith("run_"))


@dataclass(frozen=True)
class Source:
    """One Python file: what it defines and what it imports, at any depth."""

    path: Path
    #: names at the top that may be functions, imported and assigned ones included
    functions: tuple[str, ...] = ()
    #: functions that are defined here
    defined: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    #: (level of a relative import, module, names) of each import statement
    imports: tuple[tuple[int, str, tuple[str, ...]], ...] = ()
    #: string literals of a COMPONENTS list, if there is one
    declared: tuple[str, ...] | None = None
    parsed: bool = True

    def adapters(self, contract: Iterable[str]) -> int:
        """How many functions of the contract this file has."""
        return len(set(self.functions) & set(contract))

    def depth(self) -> int:
        """How many packages the file's relative imports need around it."""
        return max((level for level, _, _ in self.imports), default=0)


def read(path: Path) -> Source:
    """Reads one file; what cannot be read or parsed comes back almost empty."""
    try:
        text = content(path)
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return _unparsed(path)
    return Source(
        path=path,
        functions=tuple(_top_level_functions(tree)),
        defined=tuple(n.name for n in _top_level(tree) if isinstance(n, ast.FunctionDef)),
        classes=tuple(n.name for n in _top_level(tree) if isinstance(n, ast.ClassDef)),
        imports=tuple(_imports(tree)),
        declared=_declared(tree),
    )


def content(path: Path) -> bytes:
    """The first megabytes of a regular file; OSError for anything else, which might never end."""
    if not path.is_file():
        raise OSError(f"{path} is not a regular file")
    with path.open("rb") as file:
        return file.read(MAX_BYTES)


def damage(path: Path) -> str:
    """Why no Python can read this file as source, as the rest of a sentence; empty if it can."""
    try:
        data = content(path)
    except OSError:
        return ""
    place = data.find(b"\0")
    if place < 0:
        return ""
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or data[1:4:2] == b"\0\0":
        return "is text in UTF-16, which Python does not read; save it as UTF-8"
    line = data.count(b"\n", 0, place) + 1
    return f"holds a NUL byte in line {line}, so it is no Python source; save it as plain UTF-8"


def _unparsed(path: Path) -> Source:
    """What regular expressions find in a file that this Python cannot parse."""
    try:
        text = content(path).decode("utf-8", errors="replace")
    except OSError:
        return Source(path, parsed=False)
    functions = re.findall(r"^(?:async )?def\s+(\w+)", text, re.MULTILINE)
    relative = re.findall(r"^\s*from\s+(\.+)([\w.]*)\s+import", text, re.MULTILINE)
    imports = tuple((len(dots), module, ()) for dots, module in relative)
    return Source(path, functions=tuple(functions), imports=imports, parsed=False)


def _top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements of the module, those below `if` and `try` included."""
    waiting: deque[ast.stmt] = deque(tree.body)
    while waiting:
        node = waiting.popleft()
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            waiting.extend(node.body)
            waiting.extend(getattr(node, "orelse", []))
            for handler in getattr(node, "handlers", []):
                waiting.extend(handler.body)


def _top_level_functions(tree: ast.Module) -> Iterator[str]:
    """Names bound at the top that may be functions: defined, imported or assigned."""
    for node in _top_level(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign):
            yield from (t.id for t in node.targets if isinstance(t, ast.Name))


def _imports(tree: ast.Module) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", tuple(alias.name for alias in node.names)


def _declared(tree: ast.Module) -> tuple[str, ...] | None:
    """The literal `COMPONENTS = [...]` of an adapters module."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        if not any(isinstance(t, ast.Name) and t.id == "COMPONENTS" for t in targets):
            continue
        if not isinstance(value, ast.List | ast.Tuple | ast.Set):
            return None
        items = [e.value for e in value.elts if isinstance(e, ast.Constant)]
        return tuple(item for item in items if isinstance(item, str))
    return None


# -- walking -------------------------------------------------------------------------------------


def python_files(root: Path, depth: int = 4) -> Iterator[Path]:
    """Python files below `root`, shallow ones first, at most `MAX_FILES`."""
    count = 0
    waiting = deque([(root, 0)])
    while waiting:
        folder, level = waiting.popleft()
        for entry in entries(folder):
            if entry.is_dir():
                if level < depth and not skipped(entry):
                    waiting.append((entry, level + 1))
            elif entry.suffix == ".py":
                yield entry
                count += 1
                if count >= MAX_FILES:
                    return


def skipped(folder: Path) -> bool:
    """Is this a folder to stay out of: hidden, generated, or an environment?"""
    return (
        folder.name.startswith(".")
        or folder.name in SKIPPED
        or folder.name.endswith(".egg-info")
        or (folder / "pyvenv.cfg").exists()
        or folder.is_symlink()
    )


def entries(folder: Path) -> list[Path]:
    """The entries of a folder in a fixed order; none if it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


# -- classes -------------------------------------------------------------------------------------


def classes_below(root: Path, search_path: Sequence[Path]) -> tuple[dict[str, str], list[str]]:
    """Classes and functions of the specification in any module of a submission.

    Returns name -> "package.module:name", and notes on those that were passed over because
    another module has more of them.
    """
    sources = [read(path) for path in python_files(root) if not _is_test(path, root)]
    sources = [s for s in sources if _spec_names(s)]
    sources.sort(key=lambda s: (-len(_spec_names(s)), len(s.path.parts), str(s.path)))
    found: dict[str, str] = {}
    ignored = []
    for source in sources:
        module = module_name(source.path, search_path)
        for name, own in _spec_names(source).items():
            if module and name not in found:
                found[name] = f"{module}:{own}"
            elif module:
                ignored.append(f"{own} in {source.path.relative_to(root)}")
    return found, ignored


def _spec_names(source: Source) -> dict[str, str]:
    """Name in the specification -> name in the file."""
    names = {_BY_LOWER[c.lower()]: c for c in source.classes if c.lower() in _BY_LOWER}
    return names | {f: f for f in FUNCTION_NAMES if f in source.defined}


def _is_test(path: Path, root: Path) -> bool:
    parts = path.relative_to(root).parts
    return parts[-1].startswith("test_") or any(p in ("tests", "test") for p in parts[:-1])


def module_name(path: Path, search_path: Sequence[Path]) -> str:
    """The dotted name by which `path` can be imported, the shortest one; "" if there is none."""
    for folder in sorted(search_path, key=lambda f: -len(f.parts)):
        if not path.is_relative_to(folder):
            continue
        parts = list(path.relative_to(folder).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        if parts and all(part.isidentifier() for part in parts[:-1]) and "." not in parts[-1]:
            return ".".join(parts)
    return ""


def reachable_classes(adapters: Path, search_path: Sequence[Path]) -> dict[str, str]:
    """Classes of the specification in the modules that `adapters` imports, nearest first.

    Imports inside functions count: half of the submissions have no others.
    """
    found: dict[str, str] = {}
    for source in _reachable(adapters, search_path):
        if source.path != adapters:
            module = module_name(source.path, search_path)
            for name, own in _spec_names(source).items():
                if module and own[:1].isupper():
                    found.setdefault(name, f"{module}:{own}")
    return found


def reachable_files(adapters: Path, search_path: Sequence[Path]) -> set[Path]:
    """The adapters file and the files of the submission that it imports, directly or not."""
    return {source.path for source in _reachable(adapters, search_path)}


def _reachable(adapters: Path, search_path: Sequence[Path]) -> Iterator[Source]:
    """The adapters file, then what it imports, nearest first."""
    waiting = deque([read(adapters)])
    seen = {adapters}
    while waiting and len(seen) < MAX_FILES:
        source = waiting.popleft()
        yield source
        for path in imported_files(source, search_path):
            if path not in seen:
                seen.add(path)
                waiting.append(read(path))


def imported_files(source: Source, search_path: Sequence[Path]) -> Iterator[Path]:
    """Files of the submission that `source` imports."""
    for level, module, names in source.imports:
        if level:
            bases: Sequence[Path] = [source.path.parents[level - 1]]
        else:
            bases = search_path
        stem = Path(*module.split(".")) if module else Path()
        for base in bases:
            hits = list(_module_files(base / stem, names))
            if hits:
                yield from hits
                break


def _module_files(stem: Path, names: Sequence[str]) -> Iterator[Path]:
    """The file of a module, and of those among `names` that are submodules of it."""
    plain = stem.parent / f"{stem.name}.py" if stem.name else stem
    for path in (plain, stem / "__init__.py", *(stem / f"{name}.py" for name in names)):
        if path.is_file():
            yield path


# -- names that importlib.metadata may be asked for ---------------------------------------------


def top_packages(folders: Iterable[Path]) -> Iterator[str]:
    """Names of the packages that lie directly in these folders."""
    for folder in folders:
        for entry in entries(folder):
            if entry.name in ("tests", "test") or not entry.is_dir() or skipped(entry):
                continue
            if any(entry.glob("*.py")):
                yield entry.name


def distributions(
    project: Mapping[str, object], packages: Sequence[str], folders: Iterable[Path]
) -> tuple[tuple[str, str], ...]:
    """(name, version) of what the submission calls itself, for `importlib.metadata`."""
    name, version = project.get("name"), project.get("version")
    text = version if isinstance(version, str) and re.fullmatch(r"[\w.+!-]+", version) else "0.0.0"
    names = [name] if isinstance(name, str) else []
    found: dict[str, tuple[str, str]] = {}
    for candidate in (*names, *packages, *top_packages(folders)):
        if re.fullmatch(r"[\w.-]+", candidate):
            found.setdefault(re.sub(r"[-_.]+", "-", candidate).lower(), (candidate, text))
    return tuple(found.values())


def inside(path: Path, folder: Path) -> bool:
    """Does `path` lie in `folder`, links followed?"""
    return os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep)
