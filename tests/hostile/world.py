"""A small world around a hostile submission: what is graded in it, and what was seen.

Everything lies below one temporary folder: a home, the temporary files of the judge, the folder of
a class with another submission in it, the folder of the run with its report. What the submission
changes outside its own folder therefore shows, and hurts nobody.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from .catalogue import BOXED, HONEST, PLAIN, Arrangement, adapters, module_name

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 400
"""Seconds after which a run is taken for hanging."""
MOST_TEXT = 4 << 20
SECRET = "squeamish-ossifrage"

TOOLS = '''\
"""What the attacks share; everything in here could be found out by looking around."""

import os

TOKEN, HOME, ELSEWHERE = "@TOKEN@", "@HOME@", "@ELSEWHERE@"
REPORT, SIBLING, SUITE, PORT = "@REPORT@", "@SIBLING@", "@SUITE@", @PORT@


def mark(folder, name="MARKER"):
    """Leaves a file in a folder, if that can be done."""
    try:
        with open(os.path.join(folder, name), "w") as file:
            file.write("I was here")
    except OSError:
        return False
    return True


def reached(what):
    """Tells the judge that an attack has got through."""
    raise RuntimeError("REACHED " + what)


def judge():
    """The process that grades, or None where it cannot be seen."""
    pid = os.getppid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\\0")
            with open(f"/proc/{pid}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            return None
        if b"grade" in words and any(b"conformance" in word for word in words):
            return pid
        pid = parent
    return None
'''
"""`tools.py` of every submission."""


@dataclass(frozen=True)
class World:
    """The folders."""

    root: Path

    def __getattr__(self, name: str) -> Path:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.root / FOLDERS[name]


FOLDERS = {
    "home": "home",
    "elsewhere": "elsewhere",
    "tmp": "tmp",
    "submission": "class/mallory",
    "sibling": "class/alice",
    "cwd": "run",
    "report": "run/report",
}


@dataclass
class Seen:
    """What there was to see of one run."""

    mode: str
    code: int
    out: str
    seconds: float
    report: Path
    #: places that were changed
    changes: list[str] = field(default_factory=list)
    #: command lines of processes that were left
    survivors: list[str] = field(default_factory=list)
    #: the judge's greatest resident memory, in MiB
    memory: float = 0.0


@contextlib.contextmanager
def world(arrangement: Arrangement, port: int) -> Iterator[World]:
    """A fresh world with the submission in it."""
    root = Path(tempfile.mkdtemp(prefix="hostile-")).resolve()
    made = World(root)
    try:
        for name in FOLDERS.values():
            if name != "run/report":
                (root / name).mkdir(parents=True, exist_ok=True)
        (made.sibling / "adapters.py").write_text(f"# {SECRET}\n", "utf-8")
        (made.elsewhere / "victim.txt").write_text("precious\n", "utf-8")
        _write(made, arrangement, port)
        yield made
    finally:
        _remove(root)


def _remove(root: Path) -> None:
    for path in [root, *root.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):
                path.chmod(0o700)
    shutil.rmtree(root, ignore_errors=True)


def _write(made: World, arrangement: Arrangement, port: int) -> None:
    files: dict[str, str | bytes] = {
        "adapters.py": adapters(arrangement),
        "honest.py": HONEST,
        "tools.py": TOOLS,
    }
    for entry in arrangement.entries:
        if entry.code:
            files[module_name(entry) + ".py"] = entry.code
        files.update(entry.files)
    values = {
        "@TOKEN@": made.root.name,
        "@HOME@": str(made.home),
        "@ELSEWHERE@": str(made.elsewhere),
        "@REPORT@": str(made.report),
        "@SIBLING@": str(made.sibling),
        "@SUITE@": str(ROOT),
        "@PORT@": str(port),
    }
    for name, content in files.items():
        path = made.submission / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
            continue
        for placeholder, value in values.items():
            content = content.replace(placeholder, value)
        path.write_text(content, "utf-8")
    for entry in arrangement.entries:
        if entry.build is not None:
            entry.build(made.submission)


# -- one run -------------------------------------------------------------------------------------


def observe(arrangement: Arrangement, mode: str, look: object) -> object:
    """Grade the submission in a world of its own; `look(seen)` is called while it still exists."""
    with listening() as port, world(arrangement, port) as made:
        before = {name: snapshot(getattr(made, name)) for name in COMPARED}
        seen = _graded(made, arrangement, mode)
        seen.survivors = survivors(made.root.name)
        for name in COMPARED:
            if snapshot(getattr(made, name)) != before[name]:
                seen.changes.append(name)
        if any(made.report.glob("MARKER*")):
            seen.changes.append("report")
        if {p.name for p in made.cwd.iterdir()} - {"report"}:
            seen.changes.append("cwd")
        return look(seen)  # type: ignore[operator]


COMPARED = ("home", "elsewhere", "sibling", "tmp")


def command_line(made: World, arrangement: Arrangement, mode: str) -> tuple[list[str], Path]:
    """The command and the folder it is run in."""
    first = arrangement.entries[0]
    words = ["--profile", "quick", "--report", str(made.report)]
    words += _selection(made, arrangement, mode)
    given = " ".join(entry.options for entry in arrangement.entries if entry.options)
    for name, value in (("--timeout", "3"), ("--memory", "2"), ("--import-timeout", "20")):
        if name not in given:
            words += [name, value]
    words += [*dict.fromkeys(first.options.split()), *sandbox_words(mode)]
    if first.command == "grade":
        return [_program("conformance"), "grade", str(made.submission), *words], made.cwd
    pytest = [_program("pytest")]
    if first.command == "python":
        pytest = [sys.executable, "-m", "pytest"]
    return [*pytest, "--impl=.", "-p", "no:cacheprovider", *words], made.submission


def _selection(made: World, arrangement: Arrangement, mode: str) -> list[str]:
    """Which components; in the sandbox as an instructor says it who lets the run decide."""
    first = arrangement.entries[0]
    if first.command != "grade" or mode != BOXED:
        return [] if first.as_declared else ["--component", ",".join(arrangement.selected)]
    rules = made.root / "rules.toml"
    wanted = "" if first.as_declared else f"components = {json.dumps(arrangement.selected)}\n"
    rules.write_text(f"[grade]\n{wanted}", "utf-8")
    return ["--gate", "--config", str(rules)]


def _program(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    assert found is not None, f"{name} is not installed beside {sys.executable}"
    return found


def sandbox_words(mode: str) -> list[str]:
    """How the command line asks for the mode."""
    from conformance.options import OPTIONS

    if any(option.name == "sandbox" for option in OPTIONS):
        return ["--sandbox", {PLAIN: "off", BOXED: "require"}[mode]]
    return []


def _graded(made: World, arrangement: Arrangement, mode: str) -> Seen:
    words, cwd = command_line(made, arrangement, mode)
    dropped = ("PYTEST_", "PYTHONPATH", "CONFORMANCE_", "XDG_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    if env.pop("PYTHONDONTWRITEBYTECODE", ""):
        env["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "conformance-tests-pyc")
    env |= {"HOME": str(made.home), "TMPDIR": str(made.tmp), "COLUMNS": "100", "NO_COLOR": "1"}
    env |= {"GRADING_TOKEN": SECRET}
    secret = (made.root / "secret.txt").open("w+")
    secret.write(SECRET)
    secret.flush()
    began = time.monotonic()
    with secret, tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            words,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(secret.fileno(),),
        )
        peak = Peak(process.pid)
        try:
            process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        memory = peak.stop()
        out.seek(0)
        text = out.read(MOST_TEXT + 1).decode("utf-8", errors="replace")
    seconds = time.monotonic() - began
    return Seen(mode, process.returncode, text, seconds, made.report, memory=memory)


class Peak:
    """Follows the resident memory of a process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._highest = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._over.wait(0.05):
            with contextlib.suppress(psutil.Error):
                now = psutil.Process(self._pid).memory_info().rss / 2**20
                self._highest = max(self._highest, now)

    def stop(self) -> float:
        self._over.set()
        self._thread.join()
        return self._highest


def survivors(token: str, patience: float = 3.0) -> list[str]:
    """Processes that belong to the world and are still there after a while; they are ended here."""
    until = time.monotonic() + patience
    while (left := _belonging(token)) and time.monotonic() < until:
        time.sleep(0.2)
    words = []
    for process in left:
        with contextlib.suppress(psutil.Error):
            words.append(" ".join(process.cmdline())[:100] or process.name())
            process.kill()
    return words


def _belonging(token: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                continue
            if any(token in word for word in (*process.cmdline(), *process.environ().values())):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def snapshot(folder: Path) -> dict[str, str]:
    """Everything below a folder: kind, rights and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        text = oct(mode)
        if stat.S_ISLNK(mode):
            text += os.readlink(path)
        elif stat.S_ISREG(mode):
            text += hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(folder))] = text
    return found


@contextlib.contextmanager
def listening() -> Iterator[int]:
    """A port of this machine at which somebody would answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def can_box() -> bool:
    """Whether the suite has a sandbox and bubblewrap works here."""
    if not sandbox_words(BOXED):
        return False
    program = shutil.which("bwrap")
    if program is None:
        return False
    words = [program, "--ro-bind", "/", "/", "--unshare-all", "true"]
    return subprocess.run(words, capture_output=True).returncode == 0
