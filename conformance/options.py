"""What a run can be asked to do: every option, its default and its words, in one place.

The pytest plugin and the command line both build their options from `OPTIONS`; the table in the
README is tested against it. Nothing heavy is imported here.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.errors import UsageError

if TYPE_CHECKING:
    from conformance.course.rubric import Rubric
    from conformance.policy import Policy

PROFILES = ("quick", "standard", "thorough")
LEVELS = ("must", "should")
AUDIENCES = ("student", "instructor")
SANDBOXES = ("auto", "require", "off")
DTYPES = ("float32", "bfloat16", "float16", "float64")
LARGEST = 1_000_000
"""Seconds and GiB beyond this are a typing error."""


@dataclass(frozen=True)
class Option:
    """One option: `--name METAVAR`; `many` may be given several times or separated by commas."""

    name: str
    metavar: str
    help: str
    default: Any = None
    many: bool = False
    flag: bool = False

    @property
    def key(self) -> str:
        """Name of the field in `GradeOptions`."""
        return self.name.replace("-", "_")

    @property
    def described(self) -> str:
        """The help text with the default."""
        return self.help + ("" if self.default is None else f" (default: {self.default})")


OPTIONS = (
    Option("component", "NAME", "grade only this component", many=True),
    Option("level", "LEVEL", "what the verdict demands: must or should", default="must"),
    Option("dtype", "DTYPE", "run only the checks in this dtype", many=True),
    Option("device", "DEVICE", "device of the candidate: cpu, cuda, cuda:1, mps", default="cpu"),
    Option("seed", "N", "seed of everything that is drawn; the default is fixed", default=0),
    Option("profile", "NAME", "how much is asked: quick, standard or thorough", default="standard"),
    Option("check", "ID", "run only this check, as the report names it", many=True),
    Option(
        "report",
        "FOLDER",
        "where the reports go (default: reports/CANDIDATE; with --check its folder replay, "
        "with --component, --dtype or -k its folder partial)",
    ),
    Option("python", "PATH", "interpreter or virtual environment that runs the candidate"),
    Option("timeout", "SECONDS", "wall clock of one call", default=10.0),
    Option("max-minutes", "MINUTES", "after that, ask as little as the quick profile does"),
    Option("import-timeout", "SECONDS", "wall clock of the candidate's imports", default=60.0),
    Option("memory", "GIB", "memory the candidate may take beside torch itself", default=8.0),
    Option("in-process", "", "run the candidate in this process, for a debugger", flag=True),
    Option("config", "FILE", "the instructor's own settings, a TOML file outside the submission"),
    Option("gate", "", "decide: only a whole run that conforms ends with 0", flag=True),
    Option("hidden-seed-file", "FILE", "a secret from which unseen inputs are drawn; - is stdin"),
    Option(
        "trust",
        "",
        "pytest only: let the settings and the conftest.py of the current folder take part",
        flag=True,
    ),
    Option("rubric", "FILE", "points of each component, a TOML file; they are shown at the end"),
    Option(
        "audience",
        "WHO",
        "who reads the reports: instructor, or student, who is shown no expected value",
        default="instructor",
    ),
    Option("junit", "FILE", "write the checks as JUnit XML"),
    Option("gradescope", "FILE", "write Gradescope's results.json"),
    Option("github", "", "annotations, job summary and points in GitHub Actions", flag=True),
    Option("policy", "NAME", "what may not be used: from-scratch, or a TOML file with [policy]"),
    Option(
        "sandbox",
        "MODE",
        "around the candidate: auto (the strongest there is), require (or do not grade) or off",
        default="auto",
    ),
    Option("require-sandbox", "", "the same as --sandbox require", flag=True),
    Option(
        "stop-after",
        "MINUTES",
        "time that the candidate has for everything; after that, what is left has timed out",
        default=60.0,
    ),
    Option(
        "benchmark",
        "",
        "pytest only: measure speed in place of grading, as `conformance bench` does",
        flag=True,
    ),
    Option("threads", "N", "with --benchmark: threads for everyone who is measured", default=1),
    Option("max-seconds", "SECONDS", "with --benchmark: the most for one component"),
)

OPENING = (
    *("python", "device", "timeout", "import-timeout", "memory", "in-process"),
    *("sandbox", "require-sandbox"),
)
"""Those that say how a candidate is opened and asked; `conformance replay` takes them as well."""

WRITING = ("rubric", "audience", "junit", "gradescope", "github")
"""Those that say what is written about a run; `conformance report` takes them as well."""

BENCHMARKING = ("benchmark", "threads", "max_seconds")
"""Those of a benchmark; `conformance bench` takes them and those in `conformance.bench.command`."""

NOT_REPEATED = ("config", "gate", "hidden_seed_file", "trust", "policy", *BENCHMARKING, *WRITING)
"""Those that a command which asks a single check or input again does without."""

DEFAULTS: Mapping[str, Any] = {option.key: option.default for option in OPTIONS}


@dataclass(frozen=True)
class GradeOptions:
    """The options of one run, checked and converted."""

    impl: str
    component: tuple[str, ...] = ()
    level: str = DEFAULTS["level"]
    dtype: tuple[str, ...] = ()
    device: str = DEFAULTS["device"]
    seed: int = DEFAULTS["seed"]
    profile: str = DEFAULTS["profile"]
    check: tuple[str, ...] = ()
    report: Path | None = None
    python: Path | None = None
    timeout: float = DEFAULTS["timeout"]
    max_minutes: float | None = None
    import_timeout: float = DEFAULTS["import_timeout"]
    memory: float = DEFAULTS["memory"]
    in_process: bool = False
    config: Path | None = None
    gate: bool = False
    hidden_seed_file: Path | None = None
    trust: bool = False
    rubric: Rubric | None = None
    audience: str = DEFAULTS["audience"]
    junit: Path | None = None
    gradescope: Path | None = None
    github: bool = False
    policy: Policy | None = None
    sandbox: str = DEFAULTS["sandbox"]
    require_sandbox: bool = False
    stop_after: float = DEFAULTS["stop_after"]
    benchmark: bool = False
    threads: int = DEFAULTS["threads"]
    max_seconds: float | None = None
    command: str = field(default="", compare=False)

    @classmethod
    def parse(cls, impl: str, given: Mapping[str, Any], command: str = "") -> GradeOptions:
        """Options as given on a command line (text or None); UsageError if one is bad."""
        if not impl.strip():
            raise UsageError("--impl needs a package, a folder, or the path of an adapters file")
        values: dict[str, Any] = {}
        for option in OPTIONS:
            raw = given.get(option.key)
            if raw is not None and raw != [] and raw != ():
                values[option.key] = _CONVERT[option.key](raw, option)
        options = cls(impl=impl, command=command, **values)
        options._must_agree()
        return options

    def _must_agree(self) -> None:
        """UsageError when a check is asked for and its component is not."""
        for id in self.check if self.component else ():
            owner = id.partition("::")[0]
            if owner not in self.component:
                raise UsageError(
                    f"--check {id} is a check of {owner}, but --component selects only "
                    f"{', '.join(self.component)}; leave one of the two out"
                )

    def not_default(self) -> dict[str, Any]:
        """The options that differ from their defaults, to repeat a run with."""
        return {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name in DEFAULTS
            and f.name not in NOT_REPEATED
            and getattr(self, f.name) not in (f.default, DEFAULTS[f.name])
        }


def grade_command(options: GradeOptions) -> str:
    """The command that grades with these options; all that are the default are left out."""
    words = ["conformance", "grade", options.impl]
    for name, value in options.not_default().items():
        for one in value if isinstance(value, tuple) else (value,):
            words += [f"--{name.replace('_', '-')}", *_words(one)]
    return shlex.join(words)


def _words(value: Any) -> list[str]:
    """The value of an option as words of a command; none for a flag."""
    if value is True:
        return []
    return [f"{value:g}" if isinstance(value, float) else str(value)]


def command_line() -> str:
    """The command this process was started with, with the program's bare name."""
    program = Path(sys.argv[0])
    if program.name in ("__main__.py", "-m"):
        return shlex.join(["python", "-m", program.parent.name, *sys.argv[1:]])
    return shlex.join([program.name, *sys.argv[1:]])


def _choice(*allowed: str) -> Callable[[Any, Option], str]:
    def convert(raw: Any, option: Option) -> str:
        value = str(raw).lower()
        if value not in allowed:
            raise UsageError(f"--{option.name} {raw}: choose one of {', '.join(allowed)}")
        return value

    return convert


def _several(raw: Any, option: Option) -> tuple[str, ...]:
    """Each name once; separated by commas (the id of a check holds none) or given one by one."""
    entries = [raw] if isinstance(raw, str) else list(raw)
    parts = [part.strip() for entry in entries for part in entry.split(",") if part.strip()]
    if not parts:
        raise UsageError(f"--{option.name}: give at least one {option.metavar}")
    return tuple(dict.fromkeys(parts))


def _dtypes(raw: Any, option: Option) -> tuple[str, ...]:
    one = _choice(*DTYPES)
    return tuple(one(part, option) for part in _several(raw, option))


def _components(raw: Any, option: Option) -> tuple[str, ...]:
    from conformance.spec import component_spec

    names = [component_spec(name.lower()).name for name in _several(raw, option)]
    return tuple(dict.fromkeys(names))


def _checks(raw: Any, option: Option) -> tuple[str, ...]:
    from conformance.spec import component_spec

    for name in (found := _several(raw, option)):
        component, separator, rest = name.partition("::")
        if not (separator and rest):
            raise UsageError(f"--check {name}: ids look like rope::definition[float32]")
        try:
            component_spec(component)
        except UsageError as error:
            raise UsageError(f"--check {name}: {error.message}") from None
    return found


def _positive(raw: Any, option: Option) -> float:
    try:
        value = float(raw)
    except ValueError:
        value = -1.0
    if not 0 < value <= LARGEST:
        raise UsageError(f"--{option.name} {raw}: give a positive number, {LARGEST:,} at most")
    return value


def _seed(raw: Any, option: Option) -> int:
    try:
        value = int(raw)
    except ValueError:
        value = -1
    if not 0 <= value < 2**32:
        raise UsageError(f"--{option.name} {raw}: give a whole number from 0 to 2^32 - 1")
    return value


def _threads(raw: Any, option: Option) -> int:
    try:
        value = int(raw)
    except ValueError:
        value = 0
    if not 1 <= value <= 1024:
        raise UsageError(f"--{option.name} {raw}: give a whole number from 1 to 1024")
    return value


def _device(raw: Any, option: Option) -> str:
    value = str(raw).lower()
    if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", value):
        raise UsageError(f"--{option.name} {raw}: give cpu, cuda, cuda:N or mps")
    return value


def _path(raw: Any, option: Option) -> Path:
    if not str(raw).strip():
        raise UsageError(f"--{option.name}: give a path")
    return Path(raw).expanduser()


def _rubric(raw: Any, option: Option) -> Rubric:
    """A file of that name; or the rubric itself, where the instructor's file holds it."""
    from conformance.course.rubric import Rubric

    return raw if isinstance(raw, Rubric) else Rubric.read(_path(raw, option))


def _policy(raw: Any, option: Option) -> Policy:
    """A name or a file; or the policy itself, where the instructor's file holds it."""
    from conformance.policy import Policy

    return raw if isinstance(raw, Policy) else Policy.load(str(raw))


_CONVERT: Mapping[str, Callable[[Any, Option], Any]] = {
    "component": _components,
    "level": _choice(*LEVELS),
    "dtype": _dtypes,
    "device": _device,
    "seed": _seed,
    "profile": _choice(*PROFILES),
    "check": _checks,
    "report": _path,
    "python": _path,
    "timeout": _positive,
    "max_minutes": _positive,
    "import_timeout": _positive,
    "memory": _positive,
    "in_process": lambda raw, option: bool(raw),
    "config": _path,
    "gate": lambda raw, option: bool(raw),
    "hidden_seed_file": _path,
    "trust": lambda raw, option: bool(raw),
    "rubric": _rubric,
    "audience": _choice(*AUDIENCES),
    "junit": _path,
    "gradescope": _path,
    "github": lambda raw, option: bool(raw),
    "policy": _policy,
    "sandbox": _choice(*SANDBOXES),
    "require_sandbox": lambda raw, option: bool(raw),
    "stop_after": _positive,
    "benchmark": lambda raw, option: bool(raw),
    "threads": _threads,
    "max_seconds": _positive,
}
