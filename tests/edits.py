"""The small edits that make mutants: from a node of the syntax tree to what could stand there.

Each kind is a function that takes a node with its surroundings and yields its replacements. Nodes
are shared between the original and its replacements, which are only ever written out as text.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Place = tuple[ast.AST, str, int | None]
"""Where a node hangs: its parent, the parent's field, the index where that is a list."""


@dataclass(frozen=True)
class Site:
    """A node and what surrounds it."""

    node: Any
    place: Place
    statement: ast.stmt
    function: ast.FunctionDef
    qualname: str
    imported: frozenset[str]


Make = Callable[[Site], Iterator[ast.AST]]

OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add, ast.Mult),
    ast.Mult: (ast.Div, ast.Add, ast.Sub),
    ast.Div: (ast.Mult, ast.Sub, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mult, ast.Mod),
    ast.Mod: (ast.FloorDiv, ast.Mult),
    ast.Pow: (ast.Mult, ast.Div),
    ast.MatMult: (ast.Mult, ast.Add),
}
COMPARISONS: tuple[type[ast.cmpop], ...] = (
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.Eq,
    ast.NotEq,
)
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
IN_PLACE: dict[type[ast.operator], str] = {
    ast.Add: "add_",
    ast.Sub: "sub_",
    ast.Mult: "mul_",
    ast.Div: "div_",
}
OVERWRITING = {f"{name}_" for name in ("square", "exp", "sigmoid", "sqrt", "sin", "cos", "tril")}
ALIKE = (
    ("q", "k", "v"),
    ("q_proj", "k_proj", "v_proj", "output_proj"),
    ("w1", "w2", "w3"),
    ("ln1", "ln2"),
    ("attn", "ffn"),
    ("cos", "sin"),
    ("even", "odd"),
    ("x", "z", "wide", "shift", "exponentials"),
    ("ranked", "order", "probabilities"),
    ("rank", "count"),
    ("last", "shifted"),
    ("rows", "angles"),
    ("scores", "weights"),
    ("d_k", "length"),
)
"""Names of one function or class that stand for similar things."""

IDEMPOTENT = {"to", "at_least_float32", "zeros_like", "Parameter", "ModuleList"}
"""What changes nothing the second time."""

SIZES = ("d_k", "length")
"""Local names that hold sizes; arguments show by their type."""

RELATED = {
    "mean": ("sum",),
    "sum": ("mean", "amax", "cumsum"),
    "amax": ("amin", "mean", "sum"),
    "argmax": ("argmin",),
    "square": ("abs", "sqrt"),
    "sqrt": ("rsqrt", "square"),
    "exp": ("exp2", "expm1", "sigmoid"),
    "sigmoid": ("tanh", "relu", "exp"),
    "silu": ("sigmoid",),
    "tril": ("triu",),
    "ones": ("zeros", "empty"),
    "empty": ("zeros", "ones"),
    "zeros_like": ("ones_like", "empty_like"),
    "cumsum": ("cumprod",),
    "trunc_normal_": ("normal_", "uniform_", "zeros_"),
    "float32": ("float64", "float16", "bfloat16"),
    "float64": ("float32",),
    "bool": ("float32", "uint8"),
    "cos": ("sin",),
    "sin": ("cos",),
}
"""Functions and formats that are taken for one another."""


def _operator(site: Site) -> Iterator[ast.AST]:
    """Another operator."""
    node = site.node
    if isinstance(node, ast.BinOp):
        for other in OPERATORS[type(node.op)]:
            yield ast.BinOp(node.left, other(), node.right)
    if isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _operand(site: Site) -> Iterator[ast.AST]:
    """One side of an operator alone."""
    if isinstance(site.node, ast.BinOp):
        yield from (site.node.left, site.node.right)
    if isinstance(site.node, ast.BoolOp):
        yield from site.node.values


def _order(site: Site) -> Iterator[ast.AST]:
    """Two neighbours exchanged: sides of an operator, positional arguments, entries of a tuple."""
    node = site.node
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add | ast.Mult):
        yield ast.BinOp(node.right, node.op, node.left)
    if isinstance(node, ast.Call):
        for arguments in _exchanged(node.args):
            yield ast.Call(node.func, arguments, node.keywords)
    if isinstance(node, ast.Tuple):
        for entries in _exchanged(node.elts):
            yield ast.Tuple(entries, node.ctx)


def _exchanged(items: list[ast.expr]) -> Iterator[list[ast.expr]]:
    for i in range(len(items) - 1):
        yield [*items[:i], items[i + 1], items[i], *items[i + 2 :]]


def _comparison(site: Site) -> Iterator[ast.AST]:
    """Every other comparison; `is` and `in` become their opposites."""
    node = site.node
    if isinstance(node, ast.Compare):
        for place, op in enumerate(node.ops):
            others = [OPPOSITES[type(op)]] if type(op) in OPPOSITES else COMPARISONS
            for other in others:
                ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)


def _constant(site: Site) -> Iterator[ast.AST]:
    """Integers off by one, or 0 and 1; floats scaled; truth values negated."""
    value = number(site.node)
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        others = [value + 1, value - 1, 0, 1]
        yield from (
            ast.Constant(other) for other in (others if value < 9 else [*others, value * 2])
        )
    elif isinstance(value, float):
        for scaled in (2 * value, value / 2, value / 10, 0.0):
            yield ast.Constant(float(f"{scaled:g}"))


def number(node: ast.AST) -> bool | int | float | None:
    """The value of a literal number, with its sign."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return node.value
    return None


def _axis(site: Site) -> Iterator[ast.AST]:
    """A fixed axis instead of the one that is asked for."""
    if isinstance(site.node, ast.Name) and site.node.id == "dim" and site.qualname == "softmax":
        yield from (ast.Constant(-1), ast.Constant(0))


def _condition(site: Site) -> Iterator[ast.AST]:
    """A condition negated, or always true."""
    node = site.node
    if isinstance(node, ast.If):
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        yield ast.If(ast.Constant(True), node.body, node.orelse)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand


def _sign(site: Site) -> Iterator[ast.AST]:
    """A minus removed, or put before the left side of an operator."""
    node = site.node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    if isinstance(node, ast.BinOp):
        yield ast.BinOp(ast.UnaryOp(ast.USub(), node.left), node.op, node.right)


def _argument(site: Site) -> Iterator[ast.AST]:
    """An argument left out."""
    node = site.node
    if isinstance(node, ast.Call):
        for i in range(len(node.keywords)):
            keywords = [*node.keywords[:i], *node.keywords[i + 1 :]]
            yield ast.Call(node.func, node.args, keywords)
        for i in range(len(node.args)):
            yield ast.Call(node.func, [*node.args[:i], *node.args[i + 1 :]], node.keywords)


def _statement(site: Site) -> Iterator[ast.AST]:
    """A statement left out."""
    if isinstance(site.node, ast.stmt):
        yield ast.Pass()


def _call(site: Site) -> Iterator[ast.AST]:
    """A call, a subscript or a transpose left out: what it is applied to instead."""
    node = site.node
    if isinstance(node, ast.Call):
        yield from (each for each in node.args if not isinstance(each, ast.Starred | ast.Constant))
        if isinstance(node.func, ast.Attribute) and not _imports(node.func, site.imported):
            yield node.func.value
    if isinstance(node, ast.Subscript):
        yield node.value
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield node.value


def _imports(node: ast.expr, imported: frozenset[str]) -> bool:
    """Whether a dotted name begins with something that was imported."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in imported


def _slice(site: Site) -> Iterator[ast.AST]:
    """The first or the last of what is gone through left out, or all of it backwards."""
    parent, field, _ = site.place
    if field == "iter" and isinstance(parent, ast.For | ast.comprehension):
        for text in ("[1:]", "[:-1]", "[::-1]"):
            yield ast.parse(f"list({ast.unparse(site.node)}){text}", mode="eval").body


def _name(site: Site) -> Iterator[ast.AST]:
    """A name for a similar one, or an argument for another of the same type."""
    node = site.node
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        known = {n.id for n in ast.walk(site.function) if isinstance(n, ast.Name)}
        known |= {
            argument.arg for argument in ast.walk(site.function) if isinstance(argument, ast.arg)
        }
        others = {n for n in _similar(node.id) if n in known} | _of_one_type(node.id, site.function)
        yield from (ast.Name(name, ast.Load()) for name in sorted(others | set(_related(node.id))))
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        for name in sorted({*_similar(node.attr), *_related(node.attr)}):
            yield ast.Attribute(node.value, name, ast.Load())


def _similar(name: str) -> Iterator[str]:
    for group in ALIKE:
        if name in group:
            yield from (other for other in group if other != name)


def _related(name: str) -> tuple[str, ...]:
    return RELATED.get(name, ())


def _of_one_type(name: str, function: ast.FunctionDef) -> set[str]:
    types = _types(function)
    return {other for other, kind in types.items() if kind == types.get(name) and other != name}


def _types(function: ast.FunctionDef) -> dict[str, str]:
    return {
        argument.arg: ast.unparse(argument.annotation)
        for argument in function.args.args
        if argument.annotation is not None
    }


def _detached(site: Site) -> Iterator[ast.AST]:
    """A value cut off the graph: a side of an operator, or the result."""
    node = site.node
    if isinstance(node, ast.BinOp):
        yield ast.BinOp(_method(node.left, "detach"), node.op, node.right)
        yield ast.BinOp(node.left, node.op, _method(node.right, "detach"))
    if isinstance(node, ast.Return) and node.value is not None:
        yield ast.Return(_method(node.value, "detach"))


def _in_place(site: Site) -> Iterator[ast.AST]:
    """A result written over what it is computed from."""
    node = site.node
    if isinstance(node, ast.BinOp) and type(node.op) in IN_PLACE:
        yield _method(node.left, IN_PLACE[type(node.op)], node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = f"{node.func.attr}_"
        if name in OVERWRITING:
            yield ast.Call(
                ast.Attribute(node.func.value, name, ast.Load()), node.args, node.keywords
            )


def _precision(site: Site) -> Iterator[ast.AST]:
    """A fixed format instead of one that is at least float32."""
    node = site.node
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "at_least_float32":
        yield from (_method(node.args[0], name) for name in ("float", "double"))


def _twice(site: Site) -> Iterator[ast.AST]:
    """A function of one argument applied once more."""
    node = site.node
    if isinstance(node, ast.Call) and len(node.args) == 1:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name not in IDEMPOTENT:
            yield ast.Call(node.func, [node], node.keywords)


def _nudged(site: Site) -> Iterator[ast.AST]:
    """A size off by one."""
    node = site.node
    name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else ""
    if name in SIZES or _types(site.function).get(name, "").startswith("int"):
        yield ast.BinOp(node, ast.Add(), ast.Constant(1))
        yield ast.BinOp(node, ast.Sub(), ast.Constant(1))


def _scaled(site: Site) -> Iterator[ast.AST]:
    """A result off by one part in ten thousand."""
    node = site.node
    if isinstance(node, ast.Return) and node.value is not None:
        yield ast.Return(ast.BinOp(node.value, ast.Mult(), ast.Constant(1.0001)))


def _method(value: ast.expr, name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(value, name, ast.Load()), list(arguments), [])


KINDS: dict[str, Make] = {
    "operator": _operator,
    "operand": _operand,
    "order": _order,
    "comparison": _comparison,
    "constant": _constant,
    "axis": _axis,
    "condition": _condition,
    "sign": _sign,
    "argument": _argument,
    "statement": _statement,
    "call": _call,
    "slice": _slice,
    "name": _name,
    "detached": _detached,
    "in-place": _in_place,
    "precision": _precision,
    "twice": _twice,
    "nudged": _nudged,
    "scaled": _scaled,
}
