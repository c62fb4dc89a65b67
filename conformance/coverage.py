"""What the suite covers, component by component: everything is counted from the code.

A law is a check that compares answers of the candidate with each other, or that draws its inputs
with Hypothesis. Which checks these are is read from their compiled code: they use one of `LAWS`,
or a function of the suite that does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from tabulate import tabulate  # type: ignore[import-untyped]  # it has no annotations

from conformance.golden.build import golden_cases
from conformance.options import DTYPES
from conformance.spec import Level, component_names
from conformance.suite.check import Check, checks
from conformance.suite.component import Component, component

LAWS = frozenset({"law", "for_all", "unaffected"})
"""What laws are written with: `Grader.law`, `Grader.for_all`, `protocols.unaffected`."""

HEAD = ("component", *map(str, Level), "checks", "vectors", "laws", "dtypes", "gradients", "module")
WIDTHS = (34, None, None, None, None, None, None, 17, 18, 25)
COMMAND = "conformance explain --coverage --markdown > docs/coverage.md"

INTRODUCTION = f"""# What is covered

Counted from the code; `{COMMAND}` writes this page anew.

- **MUST**, **SHOULD**, **MAY**: requirements of that level; every one of them has a check.
- **checks**: a requirement may have several, and one for each dtype.
- **vectors**: golden vectors in `fixtures/`.
- **laws**: checks that compare answers with each other, or draw their inputs with Hypothesis.
- **dtypes**: with the number of checks in each.
- **gradients**: the arguments whose gradients are compared with the derivative of the definition.
- **module**: the class whose constructor, parameters and `forward` are checked where there is one.
"""


@dataclass(frozen=True)
class Coverage:
    """What there is for one component."""

    name: str
    levels: Mapping[str, int]
    checks: int
    vectors: int
    laws: tuple[Check, ...]
    dtypes: Mapping[str, int]
    gradients: tuple[str, ...]
    modules: tuple[str, ...]

    @property
    def row(self) -> tuple[str, ...]:
        """Its row of the table."""
        counts = [self.levels.get(level, 0) for level in map(str, Level)]
        counts += [self.checks, self.vectors, len(self.laws)]
        return (
            self.name,
            *(str(count) if count else "-" for count in counts),
            ", ".join(f"{dtype} ({count})" for dtype, count in self.dtypes.items()),
            ", ".join(self.gradients) or "-",
            ", ".join(self.modules) or "-",
        )


def coverage(name: str) -> Coverage:
    """What there is for a component."""
    owner, found = component(name), list(checks(name))
    by_dtype = Counter(check.dtype for check in found)
    return Coverage(
        name=name,
        levels=Counter(str(r.level) for r in owner.spec.requirements.values()),
        checks=len(found),
        vectors=sum(1 for _ in golden_cases(owner)),
        laws=tuple({check.name: check for check in found if is_law(check.function)}.values()),
        dtypes={dtype: by_dtype[dtype] for dtype in DTYPES if by_dtype[dtype]},
        gradients=tuple(_gradients(owner)),
        modules=tuple(sorted({check.module for check in found if check.module})),
    )


def coverage_text() -> str:
    """The table for a terminal."""
    rows = [coverage(name).row for name in component_names()]
    align = ("left", *["right"] * 6, "left", "left", "left")
    table = tabulate(
        rows, HEAD, "simple", disable_numparse=True, colalign=align, maxcolwidths=list(WIDTHS)
    )
    return str(table)


def coverage_markdown() -> str:
    """The same as a page, with the laws by name."""
    found = [coverage(name) for name in component_names()]
    lines = [INTRODUCTION, _row(HEAD), _row(("---", *["---:"] * 6, "---", "---", "---"))]
    lines += [_row(one.row) for one in found]
    lines += ["", "## Laws", ""]
    for one in found:
        laws = [f"`{law.name}` ({law.requirement.id})" for law in one.laws]
        lines.append(f"- {one.name}: {', '.join(laws) or 'none'}")
    return "\n".join(lines)


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _gradients(owner: Component) -> Iterator[str]:
    """The arguments that are differentiated; a dictionary with the number of its entries."""
    names = dict.fromkeys(name for case in owner.cases for name in case.wrt)
    entries = Counter(name.partition(".")[0] for name in names if "." in name)
    for holder in dict.fromkeys(name.partition(".")[0] for name in names):
        yield f"{holder} (all {entries[holder]} entries)" if entries[holder] else holder


# -- which checks are laws -----------------------------------------------------------------------


@cache
def is_law(function: Callable[..., Any]) -> bool:
    """Whether a check is written with one of `LAWS`, itself or through functions that it uses."""
    waiting, seen = [function], {function}
    while waiting:
        names = _names(waiting[-1].__code__)
        if names & LAWS:
            return True
        used = set(_functions(waiting.pop(), names)) - seen
        seen |= used
        waiting += used
    return False


def _names(code: CodeType) -> set[str]:
    """Names of globals and attributes in a piece of code and in the functions inside it."""
    inner = [_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    return set(code.co_names).union(*inner)


def _functions(function: Callable[..., Any], names: set[str]) -> Iterator[FunctionType]:
    """The functions of the suite that a function may use under these names."""
    space = function.__globals__
    values = [space[name] for name in names if name in space]
    for module in [value for value in values if isinstance(value, ModuleType)]:
        values += [vars(module)[name] for name in names if name in vars(module)]
    for value in values:
        if isinstance(value, FunctionType) and value.__module__.startswith("conformance."):
            yield value
