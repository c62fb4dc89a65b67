"""The instructor's own settings: a TOML file outside the submission, named by `--config`.

```toml
[grade]                      # options, named as on the command line
component = ["rmsnorm", "rope"]
profile = "standard"
timeout = 20

[rubric]                     # what points are given for
[policy]                     # what a submission may not use
```

What stands on the command line goes before what stands here. Paths are as seen from the folder of
the file. The tables `rubric` and `policy` belong to other modules, which are asked only when the
table is there.
"""

from __future__ import annotations

import difflib
import importlib
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.errors import UsageError
from conformance.options import OPTIONS, GradeOptions, Option

TABLES = ("grade", "rubric", "policy")

LEFT_OUT = ("check", "config", "gate", "trust")
"""Options that say what one command is for; they are given on the command line."""

OWNERS = {
    "rubric": ("conformance.course.rubric", "Rubric"),
    "policy": ("conformance.policy", "Policy"),
}
"""Table -> the module and the class that understand it, by `from_mapping(table, where)`."""


@dataclass(frozen=True)
class Config:
    """What a file of settings says: values of options by their key, and tables of others."""

    path: Path
    grade: Mapping[str, Any] = field(default_factory=dict)
    rubric: Mapping[str, Any] | None = None
    policy: Mapping[str, Any] | None = None

    def owned(self, table: str) -> Any:
        """What the owner of `rubric` or `policy` makes of its table; None where there is none.

        Raises UsageError when the table is wrong, or nothing here understands it.
        """
        content = getattr(self, table)
        if content is None:
            return None
        module, name = OWNERS[table]
        try:
            owner = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise
            raise UsageError(
                f"{self.path}: this version of the suite has no use for [{table}]; remove the table"
            ) from None
        return owner.from_mapping(content, f"{self.path}: [{table}]")

    def tables(self) -> dict[str, Any]:
        """The tables of others, as values of the options of the same name."""
        found = {table: self.owned(table) for table in OWNERS}
        return {table: value for table, value in found.items() if value is not None}


def read_config(path: Path) -> Config:
    """The checked content of a file of settings; UsageError that names file and key."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror or error}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"--config {path}: not valid TOML: {error}") from None
    for name in data:
        if name not in TABLES:
            raise UsageError(
                f"{path}: there is no table [{name}]{_hint(name, TABLES)}; "
                f"the tables are: {', '.join(f'[{t}]' for t in TABLES)}"
            )
        if not isinstance(data[name], dict):
            raise UsageError(f"{path}: {name} must be a table, written as [{name}]")
    grade = _grade(path, data.get("grade", {}))
    for table in OWNERS:
        if table in grade and table in data:
            raise UsageError(f"{path}: [grade] names a {table}, and there is a table [{table}] too")
    return Config(path, grade, data.get("rubric"), data.get("policy"))


def with_config(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options as given on a command line, with those of `--config` where it is silent."""
    merged = dict(given)
    if given.get("config"):
        config = read_config(Path(given["config"]).expanduser())
        for key, value in {**config.grade, **config.tables()}.items():
            if merged.get(key) in (None, [], (), False):
                merged[key] = value
    return merged


def _grade(path: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    names = _names()
    found: dict[str, Any] = {}
    for name, value in table.items():
        option = names.get(name)
        if option is None:
            raise UsageError(_unknown(path, name, names))
        if option.key in found:
            raise UsageError(f"{path}: [grade] names {option.name} twice")
        where = f"{path}: [grade] {name} = {value!r}"
        found[option.key] = _checked(where, value, option, path)
    return found


def _names() -> dict[str, Option]:
    """Every name under which an option may stand: those that can be several in the plural too."""
    options = [option for option in OPTIONS if option.key not in LEFT_OUT]
    return {
        name: option
        for option in options
        for name in (option.name, *([f"{option.name}s"] if option.many else []))
    }


def _unknown(path: Path, name: str, names: Mapping[str, Option]) -> str:
    if name.replace("_", "-") in LEFT_OUT:
        return f"{path}: [grade] {name}: this is given on the command line only, as --{name}"
    return (
        f"{path}: [grade] has no option '{name}'{_hint(name.replace('_', '-'), names)}; "
        f"the options are: {', '.join(o.name for o in dict.fromkeys(names.values()))}"
    )


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name[:100], list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _checked(where: str, value: Any, option: Option, path: Path) -> Any:
    """A value as a command line gives it; UsageError where type or content is wrong."""
    wanted, good = _type(value, option)
    if not good:
        raise UsageError(f"{where}: give {wanted}")
    if option.metavar in ("FILE", "FOLDER", "PATH") and value != "-":
        value = str(path.parent / Path(value).expanduser())
    try:
        GradeOptions.parse("-", {option.key: value})
    except UsageError as error:
        raise UsageError(f"{where}: {_without_option(error.message)}") from None
    return value


def _type(value: Any, option: Option) -> tuple[str, bool]:
    """What an option takes, in words, and whether the value is of that type."""
    if option.flag:
        return "true or false", isinstance(value, bool)
    if option.many:
        items = value if isinstance(value, list) else [value]
        return "a list of names", bool(items) and all(isinstance(i, str) for i in items)
    if option.metavar == "N":
        return "a whole number", isinstance(value, int) and not isinstance(value, bool)
    if option.metavar in ("SECONDS", "MINUTES", "GIB"):
        return "a number", isinstance(value, int | float) and not isinstance(value, bool)
    return "a text in quotes", isinstance(value, str)


def _without_option(message: str) -> str:
    """`--timeout -1: give a positive number` without what `where` has said already."""
    return message.partition(": ")[2] if message.startswith("--") else message


def must_be_outside(path: Path, root: Path, option: str) -> None:
    """UsageError for a file of the instructor's that the submission holds, or leads to."""
    here = Path(os.path.abspath(path))
    for one in (here, here.resolve()):
        if one.is_relative_to(root.resolve()) or one.is_relative_to(Path(os.path.abspath(root))):
            raise UsageError(
                f"--{option} {path}: this file lies inside the submission {root}, which must not "
                "decide how it is graded; keep it outside"
            )
