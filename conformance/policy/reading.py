"""Every use in a source file, by the function or class it stands in.

A use is a place where the code names a definition of another package: an attribute such as
`F.softmax`, a name that was imported, `getattr(F, "softmax")`. Imports alone, annotations, comments
and strings, and the second argument of `isinstance` are none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conformance.candidate import sources
from conformance.policy.scopes import COMPREHENSIONS, FUNCTIONS, Names, Scope


@dataclass(frozen=True)
class Mention:
    """A dotted name of another package, and the line it stands in."""

    name: str
    line: int


@dataclass
class Unit:
    """A function, a method, the body of a class, an assignment of a module, or the rest of it.

    `names` are the dotted names it refers to, `local` those of its own module, `attributes` names
    behind a dot whose owner is not known.
    """

    mentions: list[Mention] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    local: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)


@dataclass
class File:
    """What was read in one file. Units are called "f", "C", "C.m", and "" for the module itself.

    `unread`: this Python cannot parse it, or it is nested too deeply.
    """

    path: Path
    units: dict[str, Unit] = field(default_factory=dict)
    scope: Scope = field(default_factory=Scope)
    imports: list[Mention] = field(default_factory=list)
    unread: bool = False

    def classes(self) -> set[str]:
        """Names of its classes that have a method."""
        return {name.partition(".")[0] for name in self.units if "." in name}


def read(path: Path, module: str = "") -> File:
    """One file, as the module of that dotted name; an empty answer when it cannot be parsed."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    reader = _Reader(path, package)
    try:
        reader.read(ast.parse(sources.content(path)))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return File(path, unread=True)
    return reader.file


class _Reader(ast.NodeVisitor):
    """Walks one file with the scopes open in which it is."""

    def __init__(self, path: Path, package: str) -> None:
        self.file = File(path)
        self.names = Names(package)
        self.unit = ""

    def read(self, tree: ast.Module) -> None:
        self.names.open(tree)
        self.file.scope = self.names.scopes[0]
        for statement in tree.body:
            self._top(statement)

    def _top(self, node: ast.stmt) -> None:
        """A statement of the module: a definition, or an assignment, or it runs on import."""
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if all(isinstance(target, ast.Name) for target in targets):
                for target in targets:
                    assert isinstance(target, ast.Name)
                    self._within(target.id, [node])
                return
        self._within("", [node])

    def _within(self, unit: str, nodes: Iterable[ast.AST]) -> None:
        before, self.unit = self.unit, unit
        self._here()
        for node in nodes:
            self.visit(node)
        self.unit = before

    def _here(self) -> Unit:
        return self.file.units.setdefault(self.unit, Unit())

    # -- scopes ----------------------------------------------------------------------------------

    def visit(self, node: ast.AST) -> None:
        """One node; those that open a scope are read inside it."""
        if isinstance(node, ast.ClassDef):
            self._class(node)
        elif isinstance(node, FUNCTIONS):
            self._function(node)
        elif isinstance(node, COMPREHENSIONS):
            self._scoped(node, ast.iter_child_nodes(node))
        else:
            super().visit(node)

    def _scoped(self, node: ast.AST, inner: Iterable[ast.AST]) -> None:
        self.names.open(node)
        for one in inner:
            self.visit(one)
        self.names.close()

    def _class(self, node: ast.ClassDef) -> None:
        top = len(self.names.scopes) == 1
        unit = node.name if top else self.unit
        self._within(unit, [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)])
        self.names.open(node)
        for one in node.body:
            function = isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
            self._within(f"{unit}.{one.name}" if top and function else unit, [one])  # type: ignore[attr-defined]
        self.names.close()

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        top = len(self.names.scopes) == 1 and not isinstance(node, ast.Lambda)
        unit = node.name if top else self.unit  # type: ignore[union-attr]
        decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
        defaults = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        self._within(unit, [*decorators, *defaults])
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        before, self.unit = self.unit, unit
        self._scoped(node, body)
        self.unit = before

    # -- what is named ---------------------------------------------------------------------------

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """The annotation is no use."""
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_Import(self, node: ast.Import) -> None:
        """An import alone is no use; it is remembered."""
        self.file.imports += [Mention(alias.name, node.lineno) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """The same for `from ... import`."""
        if not node.level:
            found = (f"{node.module}.{alias.name}" for alias in node.names)
            self.file.imports += [Mention(name.removesuffix(".*"), node.lineno) for name in found]

    def visit_Name(self, node: ast.Name) -> None:
        """A name that is read: of another package, or of this module."""
        if not isinstance(node.ctx, ast.Load):
            return
        scope, meaning = self.names.owner(node.id), self.names.dotted(node)
        if meaning is not None:
            imported = scope is None or node.id in scope.imported
            self._refer(meaning, node.lineno, mention=imported)
        if scope is self.file.scope:
            self._here().local.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """A chain of attributes, as long as it can be resolved; else its last name."""
        self._chain(node, node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """`F.__dict__["softmax"]` and the like."""
        self._chain(node, "")

    def visit_Call(self, node: ast.Call) -> None:
        """`getattr(F, "softmax")`; a name that is not written down is a use of the whole module."""
        meaning = self.names.dotted(node)
        if meaning is not None:
            self._refer(meaning, node.lineno)
            return
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        if called in ("isinstance", "issubclass", "hasattr"):
            for argument in node.args[:1]:
                self.visit(argument)
            return
        if called == "getattr" and node.args:
            owner = self.names.dotted(node.args[0])
            if owner is not None:
                self._refer(f"{owner}.?", node.lineno)
        self.generic_visit(node)

    def _chain(self, node: ast.Attribute | ast.Subscript, attribute: str) -> None:
        meaning = self.names.dotted(node)
        if meaning is None:
            if attribute:
                self._here().attributes.add(attribute)
            self.generic_visit(node)
            return
        self._refer(meaning, node.lineno)
        first = next(n for n in ast.walk(node) if isinstance(n, ast.Name))
        if self.names.owner(first.id) is self.file.scope:
            self._here().local.add(first.id)

    def _refer(self, name: str, line: int, *, mention: bool = True) -> None:
        unit = self._here()
        unit.names.add(name)
        if mention:
            unit.mentions.append(Mention(name, line))


def module_names(path: Path, folders: Sequence[Path]) -> list[str]:
    """Every dotted name by which a file can be imported from these folders."""
    found = []
    for folder in folders:
        name = sources.module_name(path, [folder])
        if name and name not in found:
            found.append(name)
    return found
