"""Runs of the real command line, each in a process of its own and made only once.

Most tests here look at a run that grades a candidate, which takes seconds. `RUNS` lists these runs.
A test names those it wants with `@after("name")`; they are made two at a time in the background,
and the test gets the first one as `done`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

collect_ignore = ["candidates"]

HERE = Path(__file__).parent
LONGEST = 300
"""Seconds after which a run is taken for hanging; on an idle machine none takes twenty."""


@dataclass(frozen=True)
class Done:
    """A command that has ended: what it printed, its exit code, and the report it wrote."""

    code: int
    out: str
    err: str
    cwd: Path

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def folder(self) -> Path:
        """The only folder with a report below the working directory."""
        (found,) = {path.parent for path in self.cwd.rglob("report.json")}
        return found

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "report.json").read_text("utf-8"))
        return found

    def outcomes(self, component: str = "") -> dict[str, str]:
        """Outcome by id of the checks (of one component)."""
        checks = self.report["checks"]
        return {c["id"]: c["outcome"] for c in checks if component in ("", c["component"])}

    def messages(self, component: str) -> str:
        return "\n".join(c["message"] for c in self.report["checks"] if c["component"] == component)

    def has_no_traceback(self) -> bool:
        return "Traceback" not in self.text and "INTERNALERROR" not in self.text


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of the tests without what steers pytest, Python's streams or a CI."""
    dropped = ("PYTEST_", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONPATH", "CONFORMANCE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    if kept.pop("PYTHONDONTWRITEBYTECODE", ""):
        # compiling everything anew for each run would cost half a minute in all
        kept["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "conformance-tests-pyc")
    return {**kept, "COLUMNS": "100", **(more or {})}


def words_of(command: str, places: Mapping[str, Any]) -> list[str]:
    """`grade X` and the like as words, with the programs beside this Python.

    {name} stands for a place.
    """
    words = [word.format(**places) for word in command.split()]
    words = words if words[:1] == ["pytest"] else ["conformance", *words]
    program = shutil.which(words[0], path=str(Path(sys.executable).parent))
    assert program is not None, f"{words[0]} is not installed beside {sys.executable}"
    return [program, *words[1:]]


def heed_interrupts() -> None:
    """In the new process: signals that end it work even if these tests run in the background.

    There Ctrl-C and Ctrl-\\ are ignored, and under nohup the end of the terminal is as well.
    """
    for name in ("SIGINT", "SIGHUP", "SIGQUIT"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)


def run(
    command: str,
    cwd: Path,
    places: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Done:
    """Run a command to its end."""
    process = subprocess.run(
        words_of(command, places or {}),
        cwd=cwd,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=LONGEST,
    )
    return Done(process.returncode, process.stdout, process.stderr, cwd)


@dataclass(frozen=True)
class Run:
    """A command, {c} being the folder of candidates; `inside`: the candidate it is run in."""

    command: str
    inside: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


def one(candidate: str, components: str, more: str = "") -> Run:
    """`conformance grade` of some components in the quick profile."""
    return Run(f"grade {{c}}/{candidate} --component {components} --profile quick {more}")


RUNS: dict[str, Run] = {
    "hangs": one("hangs.py", "silu,linear", "--timeout 2"),
    "unruly": one(
        "unruly.py",
        "linear,embedding,silu,swiglu,rmsnorm,rope,softmax",
        "--timeout 2 --memory 1",
    ),
    "exits": one("exits.py", "silu"),
    "rope_half_split": one("rope_half_split.py", "rope"),
    "no_causal_mask": one("no_causal_mask.py", "multihead_self_attention"),
    "eps_outside_root": one("eps_outside_root.py", "rmsnorm"),
    "float32_for_bfloat16": one("float32_for_bfloat16.py", "rmsnorm"),
    "post_norm": one("post_norm.py", "transformer_block"),
    "zeros": Run(
        "grade {c}/zeros.py --component silu --profile quick --report größe",
        env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"},
    ),
    "echo": one("echo.py", "silu"),
    "delegates": one("delegates.py", "silu,softmax"),
    "raises": one("raises.py", "silu"),
    "stubs": one("stubs.py", "linear,rmsnorm,silu,softmax"),
    "missing": one("missing", "silu"),
    "syntax": one("syntax", "silu"),
    "exit_at_import": one("exit_at_import", "silu"),
    "no_cuda": one("right.py", "silu", "--device cuda"),
    "seed": Run("grade {c}/right.py --component silu --seed 3"),
    "seed again": Run("grade {c}/right.py --component silu --seed 3"),
    "other seed": Run("grade {c}/right.py --component silu --seed 4"),
    "check": Run("grade {c}/right.py --check silu::definition[float32]"),
    "options": Run(
        "grade {c}/right.py --component silu --component linear,softmax --dtype float32"
        " --dtype float16 --level should --profile quick --timeout 60 --import-timeout 90"
        " --memory 4 --python {python} --report out/here --verbose"
    ),
    "declared, in process": Run("grade {c}/declared --profile quick --in-process"),
    "pytest hostile": Run("pytest --impl=. silu --profile quick -v", inside="hostile"),
    "pytest beside": Run(
        "pytest --impl={c}/beside --component=silu,softmax,linear,rmsnorm --profile=quick -q"
    ),
    "pytest deselected": Run("pytest --impl={c}/right.py silu -k definition -p no:cacheprovider"),
    "pytest stopped": Run("pytest --impl={c}/zeros.py silu --profile=quick -x --tb=line"),
    "pytest distributed": Run("pytest --impl={c}/zeros.py silu --profile=quick -n 2"),
    "pytest broken suite": Run(
        "pytest -p breaks_the_suite --impl={c}/right.py silu --profile=quick",
        env={"PYTHONPATH": str(HERE / "plugins")},
    ),
}


class Runs:
    """The runs that the tests of this session want, made two at a time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.candidates = root / "candidates"
        shutil.copytree(HERE / "candidates", self.candidates)
        # not in the repository, where tools would stumble over it
        (self.candidates / "syntax").mkdir()
        (self.candidates / "syntax" / "adapters.py").write_text(
            "import torch\n\n\ndef run_silu(in_features)\n    return in_features\n", "utf-8"
        )
        stub = "def run_silu(in_features):\n    return in_features\n"
        (self.candidates / "utf16.py").write_text(stub, "utf-16")
        (self.candidates / "holds_nul").mkdir()
        (self.candidates / "holds_nul" / "adapters.py").write_text(stub + "\n\0\n", "utf-8")
        self.places = {"c": str(self.candidates), "python": Path(sys.executable).parents[1]}
        self._pool = ThreadPoolExecutor(max_workers=2)
        self._started: dict[str, Future[Done]] = {}

    def start(self, name: str) -> None:
        if name not in self._started:
            self._started[name] = self._pool.submit(self._make, name)

    def _make(self, name: str) -> Done:
        wanted = RUNS[name]
        cwd = self.root / name
        if wanted.inside:
            shutil.copytree(self.candidates / wanted.inside, cwd)
        else:
            cwd.mkdir()
        return run(wanted.command, cwd, self.places, wanted.env)

    def get(self, name: str) -> Done:
        self.start(name)
        return self._started[name].result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def wanted_runs(item: pytest.Item) -> list[str]:
    return [name for mark in item.iter_markers("after") for name in mark.args]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "after(*names): the runs of the command line it looks at")


@pytest.fixture(scope="session")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """All runs; those that tests of this session ask for are started at once."""
    made = Runs(tmp_path_factory.mktemp("cli"))
    for item in request.session.items:
        for name in wanted_runs(item):
            made.start(name)
    yield made
    made.close()


@pytest.fixture
def done(request: pytest.FixtureRequest, runs: Runs) -> Done:
    """The first run that the test names."""
    return runs.get(wanted_runs(request.node)[0])


@pytest.fixture
def candidates(runs: Runs) -> Path:
    """The folder of candidates, a copy that may be written to."""
    return runs.candidates


Command = Callable[..., Done]


@pytest.fixture
def conformance(tmp_path: Path, runs: Runs) -> Command:
    """Runs a command in an empty folder: `conformance("explain")`."""

    def command(text: str, cwd: Path = tmp_path, **env: str) -> Done:
        return run(text, cwd, runs.places, env)

    return command
