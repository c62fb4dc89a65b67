"""Makes mutants of the reference implementation: copies that differ by one small edit.

Each edit is one that a slip of the pen could make (another operator, a constant off by one, a
transpose left out, two arguments exchanged) or that people make (a graph cut, a result computed in
place). What is mutated is every function that a component of the suite reaches, found by following
names from its adapter function; messages, annotations and docstrings stay as they are.

Mutants are text and nothing is imported here.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from edits import KINDS, Site, number

from conformance.spec import component_names, component_spec

FOLDER = Path(__file__).resolve().parent.parent / "reference_impl"
PLUMBING = {"_call"}
"""Names and shapes of weights are checked there; nothing is computed."""

UNTOUCHED = {"annotation", "returns", "decorator_list", "type_comment", "type_params"}


@dataclass(frozen=True)
class Mutant:
    """One edit. `before` and `after` are the statement, or the head of a longer one, as text."""

    module: str
    function: str
    line: int
    column: int
    kind: str
    number: int
    before: str
    after: str
    source: str

    @property
    def id(self) -> str:
        """`file:line:column:kind:number`."""
        return f"{self.module}.py:{self.line}:{self.column}:{self.kind}:{self.number}"

    @property
    def where(self) -> str:
        """Module and qualified name of the function."""
        return f"{self.module}.{self.function}"

    @property
    def unit(self) -> str:
        """The function or class of the module that holds the edit."""
        return self.function.partition(".")[0]


# ---------------------------------------------------------------- what is mutated


@cache
def trees() -> dict[str, ast.Module]:
    """The modules of the reference implementation by name, parsed."""
    files = sorted(path for path in FOLDER.glob("*.py") if path.stem != "__init__")
    return {path.stem: ast.parse(path.read_text("utf-8")) for path in files}


def units(tree: ast.Module) -> dict[str, ast.stmt]:
    """The functions and classes of a module by name."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: node for node in tree.body if isinstance(node, kinds)}


@cache
def affected() -> dict[str, tuple[str, ...]]:
    """Function or class -> the components that reach it, the simplest first."""
    bodies = {name: node for tree in trees().values() for name, node in units(tree).items()}
    named = {name: _identifiers(node) & set(bodies) for name, node in bodies.items()}
    found: dict[str, list[str]] = {}
    for component in component_names():
        reached: set[str] = set()
        waiting = {component_spec(component).function}
        while waiting:
            reached |= waiting
            waiting = {other for name in waiting for other in named[name]} - reached
        for name in reached:
            found.setdefault(name, []).append(component)
    return {name: tuple(components) for name, components in found.items()}


def _identifiers(node: ast.AST) -> set[str]:
    """Names and attributes that are used, annotations aside."""
    found = {getattr(node, "id", ""), getattr(node, "attr", "")}
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if field not in UNTOUCHED and isinstance(child, ast.AST):
                found |= _identifiers(child)
    return found


def mutants(only: str = "") -> Iterator[Mutant]:
    """All mutants of the modules whose name contains `only`, always in the same order."""
    for module, tree in trees().items():
        if only in module:
            yield from _of_module(module, tree)


def plain(module: str) -> str:
    """A module without an edit, written as mutants are."""
    return "\n".join(ast.unparse(node) for node in trees()[module].body)


def _of_module(module: str, tree: ast.Module) -> Iterator[Mutant]:
    parts = [ast.unparse(node) for node in tree.body]
    seen = {plain(module)}
    for index, node in enumerate(tree.body):
        name = getattr(node, "name", "")
        if name not in affected() or name in PLUMBING:
            continue
        count: dict[tuple[int, int, str], int] = {}
        for site in _sites(node, _imported(tree)):
            for kind, make in KINDS.items():
                for new in make(site):
                    before, after, text = _edited(site, new, node)
                    source = "\n".join([*parts[:index], text, *parts[index + 1 :]])
                    if source in seen:
                        continue
                    seen.add(source)
                    line, column = site.node.lineno, site.node.col_offset
                    number = count[line, column, kind] = count.get((line, column, kind), -1) + 1
                    yield Mutant(
                        module, site.qualname, line, column, kind, number, before, after, source
                    )


def _imported(tree: ast.Module) -> frozenset[str]:
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return frozenset(alias.asname or alias.name for node in imports for alias in node.names)


def _sites(unit: ast.stmt, imported: frozenset[str]) -> Iterator[Site]:
    """Every node of every function of a unit, outermost first."""
    if isinstance(unit, ast.FunctionDef):
        yield from _inside(unit, Site(unit, (unit, "", None), unit, unit, unit.name, imported))
    if isinstance(unit, ast.ClassDef):
        for node in unit.body:
            if isinstance(node, ast.FunctionDef):
                name = f"{unit.name}.{node.name}"
                yield from _inside(node, Site(node, (node, "", None), node, node, name, imported))


def _inside(parent: ast.AST, around: Site) -> Iterator[Site]:
    for field, value in ast.iter_fields(parent):
        if field in UNTOUCHED:
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or _is_text(node):
                continue
            statement = node if isinstance(node, ast.stmt) else around.statement
            site = Site(
                node,
                (parent, field, index),
                statement,
                around.function,
                around.qualname,
                around.imported,
            )
            if hasattr(node, "lineno"):
                yield site
            if not isinstance(node, ast.Raise) and number(node) is None:
                yield from _inside(node, site)


def _is_text(node: ast.AST) -> bool:
    """Docstrings and messages."""
    if isinstance(node, ast.Expr):
        return _is_text(node.value)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _edited(site: Site, new: ast.AST, unit: ast.stmt) -> tuple[str, str, str]:
    """The statement before and after, and the whole unit after, with `new` in the node's place."""
    parent, field, index = site.place
    before = _head(site.statement)
    if index is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[index] = new
    whole = site.node is site.statement
    after = _head(new if whole and isinstance(new, ast.stmt) else site.statement)
    text = ast.unparse(unit)
    if index is None:
        setattr(parent, field, site.node)
    else:
        getattr(parent, field)[index] = site.node
    return before, after, text


def _head(statement: ast.stmt) -> str:
    return ast.unparse(statement).partition("\n")[0]
