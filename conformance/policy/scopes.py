"""What the names in one source file stand for: a reader of imports, assignments and scopes.

A name is resolved to the dotted name by which it was imported, through aliases and assignments.
A name that the file gives to something of its own stands for nothing here: a function called
`softmax` is not torch's, and a parameter called `F` hides the module.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class Scope:
    """The names that one module, function or class body binds: to a dotted name, or to its own.

    `imported` are those that an import statement binds, `stars` modules from which everything is
    imported. What a class body binds is not seen from the functions in it.
    """

    names: dict[str, str | None] = field(default_factory=dict)
    imported: set[str] = field(default_factory=set)
    stars: list[str] = field(default_factory=list)
    of_class: bool = False


def module_path(node: ast.ImportFrom, package: str) -> str:
    """The dotted module that `from ... import` names, seen from a file in `package`."""
    if not node.level:
        return node.module or ""
    above = package.split(".") if package else []
    above = above[: len(above) - (node.level - 1)]
    return ".".join([*above, *([node.module] if node.module else [])])


class Names:
    """Resolves expressions in the scopes that are open."""

    def __init__(self, package: str = "") -> None:
        self.package = package
        self.scopes: list[Scope] = []

    def open(self, node: ast.AST) -> None:
        """Enter the scope of a module, a function, a class or a comprehension."""
        scope = Scope(of_class=isinstance(node, ast.ClassDef))
        self.scopes.append(scope)
        if isinstance(node, FUNCTIONS):
            scope.names.update(dict.fromkeys(_parameters(node.args)))
        statements = list(_own_nodes(node))
        # imports first: `F = F` and the like keep their meaning; what is assigned twice has none
        for one in statements:
            self._bind_import(one, scope)
        for one in statements:
            self._bind_other(one, scope)

    def close(self) -> None:
        """Leave the innermost scope."""
        self.scopes.pop()

    def _bind_import(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                self._import(scope, alias.asname or top, alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom):
            module = module_path(node, self.package)
            for alias in node.names:
                if alias.name == "*":
                    scope.stars.append(module)
                else:
                    self._import(scope, alias.asname or alias.name, f"{module}.{alias.name}")

    @staticmethod
    def _import(scope: Scope, name: str, meaning: str) -> None:
        scope.names[name] = meaning
        scope.imported.add(name)

    def _bind_other(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope.names[node.name] = None
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            meaning = self.dotted(node.value) if node.value is not None else None
            if meaning and len(targets) == 1 and isinstance(targets[0], ast.Name):
                scope.names.setdefault(targets[0].id, meaning)
                return
            for target in targets:
                _hide(target, scope)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension | ast.AugAssign):
            _hide(node.target, scope)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            _hide(node.optional_vars, scope)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            scope.names[node.name] = None

    def dotted(self, node: ast.AST | None) -> str | None:
        """The dotted name that an expression stands for; None if it stands for something else."""
        match node:
            case ast.Name(id=name):
                return self._looked_up(name)
            case ast.Attribute(value=value, attr=name):
                return _joined(self.dotted(value), name)
            case ast.Call(func=function, args=[value, ast.Constant(value=str(name)), *_]) if (
                self._builtin(function) == "getattr"
            ):
                return _joined(self.dotted(value), name)
            case ast.Subscript(value=holder, slice=ast.Constant(value=str(name))):
                return self._entry(holder, name)
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
                called = self.dotted(function) or self._builtin(function)
                if called in ("importlib.import_module", "__import__") and name[:1] != ".":
                    return name
        return None

    def _entry(self, holder: ast.AST, name: str) -> str | None:
        """`F.__dict__["softmax"]`, `vars(F)["softmax"]`, `sys.modules["torch"]`."""
        if isinstance(holder, ast.Attribute):
            if holder.attr == "__dict__":
                return _joined(self.dotted(holder.value), name)
            return name if self.dotted(holder) == "sys.modules" else None
        if isinstance(holder, ast.Call) and self._builtin(holder.func) == "vars" and holder.args:
            return _joined(self.dotted(holder.args[0]), name)
        return None

    def _builtin(self, node: ast.AST) -> str:
        """The name of a builtin that nobody has bound otherwise."""
        if isinstance(node, ast.Name) and self.owner(node.id) is None:
            return node.id
        return ""

    def _visible(self) -> Iterator[Scope]:
        """The scopes in which a name is looked up, the innermost first."""
        for scope in reversed(self.scopes):
            if not scope.of_class or scope is self.scopes[-1]:
                yield scope

    def owner(self, name: str) -> Scope | None:
        """The scope that binds a name; None if none does."""
        return next((scope for scope in self._visible() if name in scope.names), None)

    def _looked_up(self, name: str) -> str | None:
        scope = self.owner(name)
        if scope is not None:
            return scope.names[name]
        stars = [star for scope in self.scopes for star in scope.stars]
        # with several of them nobody can tell from which a name comes
        return f"{stars[0]}.{name}" if len(stars) == 1 and not _is_builtin(name) else None


def _is_builtin(name: str) -> bool:
    return hasattr(builtins, name)


def _joined(owner: str | None, name: str) -> str | None:
    return None if owner is None else f"{owner}.{name}"


def _hide(target: ast.AST, scope: Scope) -> None:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            scope.names[node.id] = None


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        yield one.arg
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            yield rest.arg


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the scopes inside; the heads of these belong to it."""
    body = [node.body] if isinstance(node, ast.Lambda) else getattr(node, "body", None)
    waiting = list(node.generators if isinstance(node, COMPREHENSIONS) else body or [])
    while waiting:
        one = waiting.pop(0)
        yield one
        if isinstance(one, (ast.ClassDef, *FUNCTIONS, *COMPREHENSIONS)):
            continue
        waiting = [*ast.iter_child_nodes(one), *waiting]
