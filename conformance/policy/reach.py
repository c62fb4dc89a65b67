"""Which code a component can reach: from its adapter function along the names that code refers to.

It is an estimate. Methods are followed by their names among the classes that are reached; what goes
through a registry or a computed name is not followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from conformance.candidate import sources
from conformance.candidate.resolve import Submission
from conformance.policy.reading import File, Unit, module_names, read

CLASSES = {
    "linear": "Linear",
    "embedding": "Embedding",
    "rmsnorm": "RMSNorm",
    "swiglu": "SwiGLU",
    "rope": "RotaryPositionalEmbedding",
    "multihead_self_attention": "MultiheadSelfAttention",
    "multihead_self_attention_with_rope": "MultiheadSelfAttention",
    "transformer_block": "TransformerBlock",
    "transformer_lm": "TransformerLM",
    "softmax": "softmax",
    "silu": "silu",
    "scaled_dot_product_attention": "scaled_dot_product_attention",
}
"""Component -> class or function that stands for it where there is no adapters module."""

ALWAYS = ("forward", "__init__")
"""Methods that are reached with their class, beside all with two underscores."""

MAX_FILES = 400

Place = tuple[Path, str]
"""A unit: its file and its name there."""


class Code:
    """The source files of a submission that its adapters import, with those it has loaded."""

    def __init__(self, submission: Submission, loaded: Iterable[str] = ()) -> None:
        self.submission = submission
        self.root = submission.root
        self.folders: Sequence[Path] = (*submission.search_path, submission.root)
        self.files: dict[Path, File] = {}
        self._modules: dict[str, Path] = {}
        starts = [] if submission.adapters is None else [submission.adapters]
        starts += [path for path in map(self._module_file, self._named()) if path is not None]
        starts += [submission.root / name for name in sorted(loaded)]
        self._read(starts)

    def _named(self) -> list[str]:
        table = {**self.submission.found, **self.submission.modules}
        return [place.partition(":")[0] for place in table.values()]

    def _module_file(self, module: str) -> Path | None:
        for folder in self.folders:
            stem = folder.joinpath(*module.split("."))
            for path in (stem.parent / f"{stem.name}.py", stem / "__init__.py"):
                if path.is_file():
                    return path
        return None

    def _read(self, starts: Iterable[Path]) -> None:
        """Read files and what they import; nothing outside the submission."""
        waiting = list(starts)
        while waiting and len(self.files) < MAX_FILES:
            path = waiting.pop(0)
            if path in self.files or not path.is_file() or not sources.inside(path, self.root):
                continue
            names = module_names(path, self.folders)
            if path == self.submission.adapters:
                names.insert(0, self.submission.module)
            self.files[path] = read(path, names[0] if names else "")
            self._modules.update({name: path for name in names if name not in self._modules})
            source = sources.read(path)
            waiting += sources.imported_files(source, self.folders)
            waiting += self._packages(path)

    def _packages(self, path: Path) -> Iterator[Path]:
        """The `__init__.py` of every package around a file."""
        folder = path.parent
        while folder != self.root and (folder / "__init__.py").is_file():
            yield folder / "__init__.py"
            folder = folder.parent

    def is_own(self, name: str) -> bool:
        """Whether a dotted name lies in a module of the submission."""
        parts = name.split(".")
        return any(".".join(parts[:count]) in self._modules for count in range(1, len(parts) + 1))

    # -- following names -------------------------------------------------------------------------

    def reached(self, component: str, function: str) -> set[Place]:
        """The units that a component can reach, those that run on import included."""
        found: set[Place] = set()
        waiting = self._starts(component, function)
        attributes: set[str] = set()
        while waiting:
            fresh = [place for place in waiting if place not in found]
            found.update(fresh)
            for place in fresh:
                attributes |= self._unit(place).attributes
            waiting = [goal for place in fresh for goal in self._goals(place)]
            if not waiting:
                waiting = [p for p in self._methods(found, attributes) if p not in found]
        return found | {(path, "") for path, _ in found if "" in self.files[path].units}

    def _starts(self, component: str, function: str) -> list[Place]:
        adapters, name = self.submission.adapters, CLASSES.get(component, "")
        starts = [] if adapters is None else list(self._definitions(adapters, function))
        table = {**self.submission.found, **self.submission.modules}
        if name in table and (adapters is None or name in self.submission.modules):
            module, _, attribute = table[name].partition(":")
            starts += self._resolved(f"{module}.{attribute}")
        return starts

    def _unit(self, place: Place) -> Unit:
        return self.files[place[0]].units[place[1]]

    def _goals(self, place: Place) -> Iterator[Place]:
        """What one unit refers to."""
        unit = self._unit(place)
        for name in sorted(unit.local):
            yield from self._definitions(place[0], name)
        for name in sorted(unit.names):
            yield from self._resolved(name)

    def _methods(self, found: set[Place], attributes: set[str]) -> Iterator[Place]:
        """Methods of reached classes whose name has come up, or that Python calls by itself."""
        for path, name in sorted(found):
            file = self.files[path]
            for unit in file.units if "." not in name else ():
                owner, _, method = unit.partition(".")
                called = method in attributes or method in ALWAYS or method.startswith("__")
                if owner == name and method and called:
                    yield path, unit

    def _resolved(self, name: str, depth: int = 0) -> Iterator[Place]:
        """The unit of the submission that a dotted name stands for; nothing if it has none."""
        parts = name.split(".")
        for count in range(len(parts) - 1, 0, -1):
            path = self._modules.get(".".join(parts[:count]))
            if path is not None:
                yield from self._definitions(path, ".".join(parts[count:]), depth)
                return

    def _definitions(self, path: Path, name: str, depth: int = 0) -> Iterator[Place]:
        """The unit called `name` in a file, also where it is only handed on from another file."""
        file = self.files.get(path)
        if file is None or depth > 20:
            return
        top, _, rest = name.partition(".")
        if top in file.units:
            yield path, top
            if name in file.units:
                yield path, name
            return
        meaning = file.scope.names.get(top)
        if meaning is not None:
            yield from self._resolved(f"{meaning}.{rest}" if rest else meaning, depth + 1)
            return
        for star in file.scope.stars:
            yield from self._resolved(f"{star}.{name}", depth + 1)
