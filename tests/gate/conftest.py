"""Real commands for the tests of the gate; the tools are those of `tests/cli/conftest.py`."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CLI = Path(__file__).resolve().parents[1] / "cli"
SECRET = "c0ffee-and-a-long-secret-of-the-course"

HOSTILE = {
    "adapters.py": "def run_silu(in_features):\n    return in_features * 0.0\n",
    "pytest.ini": "[pytest]\naddopts = -p evil\npythonpath = .\n",
    "evil.py": "import os\n\ndef pytest_sessionfinish(session):\n"
    "    print('evil takes part')\n    session.exitstatus = 0\n\n"
    "def pytest_unconfigure():\n    os._exit(0)\n",
    "conftest.py": "raise RuntimeError('conftest.py was executed')\n",
    "tabulate.py": "raise RuntimeError('tabulate.py was imported')\n",
    "numpy.py": "raise RuntimeError('numpy.py was imported')\n",
    "conformance.toml": "timeout = 1000\n[grade]\ncomponent = ['softmax']\n",
}
"""A wrong candidate that would like to pass."""

CONFTEST = "def pytest_report_header():\n    return 'the conftest.py of the folder takes part'\n"


def tools() -> ModuleType:
    """The conftest of the tests of the command line, as a module."""
    name = "conformance_tests_cli"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, CLI / "conftest.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


class Place:
    """An empty folder beside the candidates, with the instructor's settings."""

    def __init__(self, root: Path, candidates: Path) -> None:
        self.root = root
        self.cwd = root / "here"
        self.cwd.mkdir(parents=True)
        self.candidates = candidates
        (root / "silu.toml").write_text(
            "[grade]\ncomponent = ['silu']\nprofile = 'quick'\n", "utf-8"
        )

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.cwd / name).write_text(text, "utf-8")

    def process(self, command: str, **more: Any) -> subprocess.Popen[str]:
        """A command; {c} are the candidates, {config} the settings."""
        places = {"c": str(self.candidates), "config": str(self.root / "silu.toml")}
        if command.startswith("python "):
            words = [sys.executable, *command.format(**places).split()[1:]]
        else:
            words = tools().words_of(command, places)
        return subprocess.Popen(
            words,
            cwd=self.cwd,
            env=tools().environment(more.pop("env", None)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            **more,
        )

    def run(
        self,
        command: str,
        said: str = "",
        meanwhile: Callable[[], None] | None = None,
        **more: Any,
    ) -> Any:
        """The command at its end; `meanwhile` is done when some results have been written."""
        process = self.process(command, **more)
        if meanwhile is not None:
            self._wait_for_results(process)
            meanwhile()
        out, err = process.communicate(said, timeout=tools().LONGEST)
        return tools().Done(process.returncode, out, err, self.cwd)

    def _wait_for_results(self, process: subprocess.Popen[str]) -> None:
        end = time.monotonic() + 120
        while not any(
            path.read_bytes().count(b"\n") > 2 for path in self.cwd.rglob("results.jsonl")
        ):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end, "no results come"
            time.sleep(0.02)


def _wrong(place: Place) -> Any:
    return place.run("grade {c}/zeros.py --gate --config {config}")


def _passes(place: Place) -> Any:
    command = "grade {c}/right.py --gate --config {config} --hidden-seed-file -"
    return place.run(command, said=SECRET + "\n")


def _wrong_for_the_hidden(place: Place) -> Any:
    command = "grade {c}/zeros.py --gate --config {config} --hidden-seed-file -"
    return place.run(command, said=SECRET + "\n")


def _chooses(place: Place) -> Any:
    return place.run("grade {c}/declared --gate --profile quick")


def _cannot_be_loaded(place: Place) -> Any:
    return place.run("grade {c}/missing --gate --config {config}")


def _hostile_gate(place: Place) -> Any:
    place.write(HOSTILE)
    return place.run("grade . --gate --config {config}", env={"PYTHONPATH": "."})


def _hostile_pytest(place: Place) -> Any:
    place.write(HOSTILE)
    return place.run("pytest --impl=. silu --profile quick")


def _hostile_module(place: Place) -> Any:
    place.write({k: v for k, v in HOSTILE.items() if k not in ("pytest.ini", "numpy.py")})
    return place.run("python -m pytest --impl . silu --profile quick")


def _trusted(place: Place) -> Any:
    place.write({"adapters.py": HOSTILE["adapters.py"], "conftest.py": CONFTEST})
    place.write({"pytest.ini": "[pytest]\naddopts = -rN --tb=no\n"})
    return place.run("pytest --impl=. silu --profile quick --trust -p no:cacheprovider")


def _edited(place: Place) -> Any:
    def edit() -> None:
        path = place.cwd / "out" / "results.jsonl"
        path.write_text(path.read_text("utf-8").replace("passed", "failed", 1), "utf-8")

    command = "grade {c}/slow.py --gate --config {config} --report out"
    return place.run(command, meanwhile=edit)


def _removed(place: Place) -> Any:
    command = "grade {c}/slow.py --gate --config {config} --report out"
    return place.run(command, meanwhile=lambda: shutil.rmtree(place.cwd / "out"))


def _ended(place: Place) -> Any:
    process = place.process("grade {c}/slow.py --gate --config {config} --report out")
    place._wait_for_results(process)
    process.terminate()
    out, err = process.communicate(timeout=60)
    return tools().Done(process.returncode, out, err, place.cwd)


RUNS: dict[str, Callable[[Place], Any]] = {
    name.removeprefix("_").replace("_", " "): function
    for name, function in list(globals().items())
    if name.startswith("_") and not name.startswith("__") and callable(function)
}


class Runs:
    """Runs that several tests look at, made two at a time and only once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.candidates = root / "candidates"
        shutil.copytree(CLI / "candidates", self.candidates)
        tools()  # imported here, before several threads want it
        self._pool = ThreadPoolExecutor(max_workers=2)
        self._started: dict[str, Future[Any]] = {}

    def start(self, name: str) -> None:
        if name not in self._started:
            place = self.place(name)
            self._started[name] = self._pool.submit(RUNS[name], place)

    def place(self, name: str) -> Place:
        return Place(self.root / name, self.candidates)

    def get(self, name: str) -> Any:
        self.start(name)
        return self._started[name].result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gated(name): the run of the command line it looks at")


@pytest.fixture(scope="session")
def gate_runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """All runs; those that tests of this session ask for are started at once."""
    made = Runs(tmp_path_factory.mktemp("gate"))
    for item in request.session.items:
        for mark in item.iter_markers("gated"):
            made.start(mark.args[0])
    yield made
    made.close()


@pytest.fixture
def done(request: pytest.FixtureRequest, gate_runs: Runs) -> Any:
    """The run that the test names."""
    return gate_runs.get(request.node.get_closest_marker("gated").args[0])


@pytest.fixture
def place(request: pytest.FixtureRequest, gate_runs: Runs) -> Place:
    """An empty folder for a command of the test's own."""
    return gate_runs.place(f"of {request.node.name}"[:60].replace("/", "-"))
