"""What a candidate can reach, in each of the sandboxes and without one."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]
import pytest

from conformance.candidate import sandbox, scratch
from conformance.candidate.limits import Limits
from conformance.candidate.messages import Call, Outcome, Reply
from conformance.candidate.process import Worker
from conformance.candidate.resolve import resolve
from conformance.candidate.view import suite_folders, view_of
from conformance.errors import SandboxError

Write = Callable[[Mapping[str, str]], Path]

pytestmark = pytest.mark.skipif(not sandbox.LINUX, reason="the sandboxes are Linux's")

X = np.ones(3, dtype=np.float32)

CANDIDATE = """
    import json

    def run_code(x, code):
        scope = {}
        exec(code, scope)
        print(json.dumps(scope["result"]))
        return x * 1

    def run_silu(in_features):
        return in_features * in_features.sigmoid()
"""

BOUNDS = Limits(
    call_seconds=5, memory_bytes=1 << 30, processes=12, file_bytes=1 << 20, open_files=100
)

READ = """
def can_read(path):
    try:
        open(path, "rb").read(1)
        return True
    except OSError:
        return False
"""

STRAGGLER = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.execvp("sleep", ["sleep", "{seconds}"])
    os._exit(0)
time.sleep(0.3)
result = None
"""


def programs(tmp_path_factory: pytest.TempPathFactory, *names: str) -> Path:
    """A folder that holds only these programs, to be the whole PATH."""
    folder = tmp_path_factory.mktemp("programs")
    for name in names:
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"{name} is not installed here")
        (folder / name).symlink_to(found)
    return folder


#: the programs that are there, the mode, and what has to be in force then
KINDS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "bubblewrap": (("bwrap",), "require", "sandbox: bubblewrap"),
    "forked": (("bwrap",), "require", "sandbox: bubblewrap"),
    "namespaces": (("unshare",), "auto", "sandbox: user namespaces and Landlock"),
    "landlock": ((), "auto", "sandbox: Landlock"),
    "none": ((), "off", "no sandbox (--sandbox off)"),
}


class Place:
    """A class of two submissions, of which one is graded."""

    def __init__(self, kind: str, worker: Worker, folder: Path) -> None:
        self.kind = kind
        self.worker = worker
        self.folder = folder

    def ask(self, code: str) -> Reply:
        return self.worker.call(Call("run_code", {"x": X, "code": textwrap.dedent(code)}))

    def look(self, code: str) -> Any:
        reply = self.ask(code)
        assert reply.outcome is Outcome.PASSED, f"{reply.message}\n{reply.traceback}"
        return json.loads(reply.printed)


@pytest.fixture(scope="module", params=KINDS)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    names, mode, expected = KINDS[request.param]
    folder = tmp_path_factory.mktemp("class")
    for name in ("alice", "bob"):
        (folder / name).mkdir()
        (folder / name / "adapters.py").write_text(textwrap.dedent(CANDIDATE), "utf-8")
    submission = resolve(str(folder / "alice"), cwd=Path("/"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(programs(tmp_path_factory, *names)))
        patch.setenv("SECRET_TOKEN", "hunter2")
        worker = Worker(submission, limits=BOUNDS, sandbox=mode)
        try:
            worker.start()
        except SandboxError as error:
            pytest.skip(f"it does not work here: {error}")
    with worker:
        words = worker.describe().isolation
        if request.param == "forked":  # the first process imports torch, the next ones need not
            worker._drop()
            assert worker.describe().isolation == words
            assert worker._link is not None
            assert worker._link.forked
        lesser = request.param in ("landlock", "namespaces")
        if lesser and not any(word.startswith(expected) for word in words):
            pytest.skip(f"it does not work here: {words}")
        assert any(word.startswith(expected) for word in words), words
        yield Place(request.param, worker, folder)


# -- what it can reach ---------------------------------------------------------------------------


def test_files(place: Place) -> None:
    reference, fixtures = suite_folders()[1:]
    tried = {
        "own": place.folder / "alice" / "adapters.py",
        "sibling": place.folder / "bob" / "adapters.py",
        "home": Path.home() / ".profile-of-the-tests",
        "golden": fixtures / "manifest.json",
    }
    with contextlib.suppress(OSError):
        tried["home"].write_text("secret", "utf-8")
    try:
        paths = {name: str(path) for name, path in tried.items() if path.exists()}
        code = f"import os\n{READ}\nresult = {{n: can_read(p) for n, p in {paths!r}.items()}}"
        reply = place.ask(code)
    finally:
        tried["home"].unlink(missing_ok=True)
    if place.kind == "none":
        assert reply.outcome is Outcome.DELEGATED  # the golden vectors are the suite's
        return
    assert json.loads(reply.printed) == {name: name == "own" for name in paths}
    assert place.worker.hides(tried["sibling"])
    assert place.worker.hides(reference)
    assert not place.worker.hides(tried["own"])


def test_writing(place: Place) -> None:
    own, temporary = place.look(
        f"""
        import os, tempfile
        def can_write(folder):
            try:
                open(os.path.join(folder, "mark"), "w").close()
                return True
            except OSError:
                return False
        result = can_write({str(place.folder / "alice")!r}), can_write(tempfile.gettempdir())
        """
    )
    assert temporary
    assert own == (place.kind == "none")
    assert (place.folder / "alice" / "mark").exists() == own


def test_programs_that_were_started_outside(place: Place) -> None:
    if place.kind not in ("bubblewrap", "forked"):
        return  # the times of a file of one's own can be changed there
    programs = [Path(name).resolve() for name in (sys.executable, shutil.which("bwrap")) if name]
    before = [path.stat() for path in programs]
    tried = place.look(
        """
        import os
        result = []
        for pid in ["self", *(name for name in os.listdir("/proc") if name.isdigit())]:
            try:
                result.append(os.readlink(f"/proc/{pid}/exe"))
                os.utime(f"/proc/{pid}/exe", (1, 1))
            except OSError:
                pass
        """
    )
    assert tried
    after = [path.stat() for path in programs]
    assert [s.st_mtime for s in after] == [s.st_mtime for s in before]


def test_network(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        reached = place.look(
            f"""
            import socket
            try:
                socket.create_connection(("127.0.0.1", {port}), timeout=3).close()
                result = True
            except OSError:
                result = False
            """
        )
    assert reached == (place.kind == "none")


def test_the_judge(place: Place) -> None:
    judge = f"/proc/{os.getpid()}"
    code = f"""
{READ}
import os
def can_follow(path):
    try:
        return bool(os.readlink(path))
    except OSError:
        return False
def can_signal(pid):
    try:
        os.kill(pid, 0)
        return True
    except OSError:
        return False
reach = [can_read({judge!r} + name) for name in ("/environ", "/mem", "/fd/0", "/fd/1")]
result = [*reach, can_follow({judge!r} + "/fd/0"), can_signal({os.getpid()})]
"""
    *read, signalled = place.look(code)
    assert read == [False] * 5
    # the capability to signal others is gone as well, but root's own processes root may signal
    assert not signalled or place.kind == "none"


def test_privileges_descriptors_environment(place: Place) -> None:
    facts = place.look(
        """
        import os, tempfile
        status = dict(l.split(":", 1) for l in open("/proc/self/status").read().splitlines())
        result = {
            "new": status["NoNewPrivs"].strip(),
            "effective": int(status["CapEff"], 16),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "secret": [n for n in os.environ if n.startswith(("SECRET", "PYTHON"))],
            "home": os.path.expanduser("~") == tempfile.gettempdir(),
            "leader": os.getpid() == os.getsid(0) == os.getpgid(0),
        }
        """
    )
    dangerous = sum(1 << bit for bit in (5, 19, 21, 24))
    assert facts["effective"] & dangerous == 0
    if place.kind in ("bubblewrap", "forked", "namespaces"):
        assert facts["effective"] == 0
    # stdin, stdout, stderr, the judge's three pipes, the file for stacks, the listing itself
    assert facts["descriptors"] <= 8
    assert facts["new"] == "1"
    assert facts["secret"] == []
    assert facts["home"]
    assert facts["leader"] or place.kind == "bubblewrap"


def test_the_suite_itself(place: Place) -> None:
    path = suite_folders()[1] / "adapters.py"
    code = f"import runpy\ntry:\n    runpy.run_path({str(path)!r})\nfinally:\n    result = 1"
    for tried in (code, "import importlib\nimportlib.import_module('reference_impl.norm')"):
        reply = place.ask(tried)
        assert reply.outcome is Outcome.DELEGATED, reply.message
        assert "the suite's own reference implementation (reference_impl" in reply.message
    assert place.look("result = 1") == 1


# -- what it may use -----------------------------------------------------------------------------


def test_files_are_bounded(place: Place) -> None:
    reply = place.ask(
        """
        import os, tempfile
        with open(os.path.join(tempfile.gettempdir(), "large"), "wb") as file:
            file.write(bytes(1 << 21))
        """
    )
    assert reply.outcome is Outcome.RAISED
    assert "a file may not grow further here" in reply.message or "is full" in reply.message


def test_open_files_are_bounded(place: Place) -> None:
    reply = place.ask("held = [open('/dev/null') for _ in range(200)]")
    assert reply.outcome is Outcome.RAISED
    assert "no more files may be open at once" in reply.message


def test_processes_are_bounded(place: Place) -> None:
    if place.kind in ("namespaces", "landlock"):
        return  # the same watch, and the keeper that is there without any sandbox
    reply = place.ask(
        "import subprocess, time\n"
        "for _ in range(20): subprocess.Popen(['/usr/bin/sleep', '600'])\ntime.sleep(60)"
    )
    assert reply.outcome is Outcome.CRASHED
    assert reply.message == "started more than 12 processes and was ended for it"
    # whoever runs away from its parents ends with the process, which was just shown to be new
    seconds = f"7000.{os.getpid()}"
    place.look(STRAGGLER.format(seconds=seconds).replace('"sleep", [', '"/usr/bin/sleep", ['))
    assert running(seconds)
    place.worker._drop()
    assert not running(seconds)


def running(argument: str) -> list[Any]:
    found = psutil.process_iter(["cmdline", "status"])
    lines = [(p.info["cmdline"] or [], p.info["status"]) for p in found]
    return [line for line, status in lines if argument in line and status != psutil.STATUS_ZOMBIE]


def test_processor_time_is_bounded(write: Write) -> None:
    folder = write({"adapters.py": CANDIDATE})
    burn = "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass"
    bounds = Limits(call_seconds=30, import_seconds=60, total_seconds=60)
    with Worker(resolve(str(folder), cwd=Path("/")), limits=bounds) as worker:
        # more than a second has gone into importing torch
        reply = worker.call(Call("run_code", {"x": X, "code": burn}))
        assert reply.outcome in (Outcome.TIMED_OUT, Outcome.CRASHED)
        assert "processor time" in reply.message or "SIGKILL" in reply.message
        # and of the time of the whole run nothing is left
        worker._left = 0.0
        reply = worker.call(Call("run_code", {"x": X, "code": burn}))
        assert reply.outcome is Outcome.TIMED_OUT
        assert reply.message == "the candidate has had its 1 minutes of this run"


# -- a judge that is killed ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bubblewrap", "forked", "none"])
def test_nothing_outlives_a_killed_judge(
    kind: str, write: Write, tmp_path_factory: pytest.TempPathFactory
) -> None:
    names, mode, _ = KINDS[kind]
    path = programs(tmp_path_factory, *names)
    folder = write({"adapters.py": CANDIDATE})
    seconds = f"7100.{os.getpid()}"
    code = STRAGGLER.format(seconds=seconds).replace('"sleep", [', '"/usr/bin/sleep", [')
    judge = f"""
import time
from pathlib import Path
import numpy as np
from conformance.candidate.messages import Call
from conformance.candidate.process import Worker
from conformance.candidate.resolve import resolve
worker = Worker(resolve({str(folder)!r}, cwd=Path("/")), sandbox={mode!r})
if {kind!r} == "forked":
    worker.describe()
    worker._drop()
reply = worker.call(Call("run_code", {{"x": np.ones(1), "code": {code!r}}}))
print(reply.outcome, worker._folder.path, flush=True)
time.sleep(600)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", judge],
        stdout=subprocess.PIPE,
        env={**os.environ, "PATH": str(path)},
        encoding="utf-8",
    )
    assert process.stdout is not None
    with process:
        outcome, _, left = process.stdout.readline().strip().partition(" ")
        if not outcome:
            pytest.skip(f"{kind} does not work here")
        assert outcome == "passed"
        assert running(seconds)
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + 20
    while running(seconds) and time.monotonic() < until:
        time.sleep(0.05)
    assert not running(seconds)
    assert Path(left).exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scratch, "SETTLED", -1.0)
        scratch.sweep()
    assert not Path(left).exists()


def test_the_folder_of_a_living_judge_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "SETTLED", -1.0)
    held = scratch.Scratch()
    scratch.sweep()
    assert held.path.exists()
    held.remove()
    assert not held.path.exists()


# -- which one is taken --------------------------------------------------------------------------


def ladder(mode: str, folder: Path, tmp_path: Path) -> sandbox.Ladder:
    submission = resolve(str(folder), cwd=Path("/"))
    place = tmp_path / "scratch"
    place.mkdir()
    view = view_of(submission, Path(sys.executable), place)
    view.script.touch()
    return sandbox.Ladder(mode, view, Path(sys.executable), dict(os.environ), 1 << 20)


@pytest.mark.parametrize("body", ["echo no namespaces >&2; exit 1", "exec sleep 60"])
def test_a_broken_bubblewrap_is_passed_over(
    body: str, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write({"adapters.py": CANDIDATE})
    monkeypatch.setattr(sandbox, "PATIENCE", 1.0)
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{body}\n", "utf-8")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = ladder("auto", folder, tmp_path)
    taken = found.take()
    assert taken.name in ("Landlock", "none")
    assert any("bubblewrap does not work here" in word for word in taken.words)


def test_required_and_not_there(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match=r"bubblewrap \(bwrap\) is not installed.*apt-get"):
        ladder("require", write({"adapters.py": CANDIDATE}), tmp_path).take()


def test_a_bubblewrap_of_the_submission_is_not_run(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write({"adapters.py": CANDIDATE, "bwrap": "#!/bin/sh\nexit 0\n"})
    (folder / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    found = ladder("auto", folder, tmp_path)
    found.take()
    assert "bubblewrap (bwrap) is not installed" in found.reasons


# -- what has to be seen -------------------------------------------------------------------------


def test_environments_and_packages_installed_in_place(write: Write, tmp_path: Path) -> None:
    """A virtual environment of the instructor's, in which a package points to its sources."""
    folder = write(
        {"adapters.py": "from helper import VALUE\ndef run_silu(x):\n    return x * VALUE\n"}
    )
    source = tmp_path / "elsewhere"
    (source / "helper").mkdir(parents=True)
    (source / "helper" / "__init__.py").write_text("VALUE = 5\n", "utf-8")
    environment = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (packages,) = environment.glob("lib/python3*/site-packages")
    torch = Path(next(p for p in sys.path if (Path(p) / "torch").is_dir()))
    (packages / "pointers.pth").write_text(f"{source}\n{torch}\nimport sys\n", "utf-8")
    with Worker(resolve(str(folder), cwd=Path("/")), python=environment) as worker:
        reply = worker.call(Call("run_silu", {"x": X}))
    assert reply.outcome is Outcome.PASSED, reply.message
    np.testing.assert_array_equal(reply.outputs[0], 5 * X)


@pytest.mark.parametrize("way", ["by name", "in a project", "in a class"])
def test_what_lies_beside_a_package(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    (tmp_path / "mine" / "adapters.py").write_text("def run_silu(x):\n    return x\n", "utf-8")
    (tmp_path / ".git").mkdir()
    if way == "in a project":
        (tmp_path / "setup.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    found = resolve("mine", cwd=Path("/") if way == "by name" else tmp_path)
    view = view_of(found, Path(sys.executable), tmp_path / "scratch")
    assert view.shows(tmp_path / "mine" / "adapters.py")
    assert view.shows(tmp_path / "helper.py") == (way != "in a class")


def test_single_files_do_not_see_each_other(tmp_path: Path) -> None:
    silu = "def run_silu(in_features):\n    return in_features\n"
    for name, text in {"ann": "from shared import f\n" + silu, "ben": silu}.items():
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
    (tmp_path / "shared.py").write_text("def f(): ...\n", "utf-8")
    view = view_of(
        resolve(str(tmp_path / "ann.py"), cwd=tmp_path), Path(sys.executable), tmp_path / "scratch"
    )
    assert view.shows(tmp_path / "ann.py")
    assert view.shows(tmp_path / "shared.py")
    assert not view.shows(tmp_path / "ben.py")


def test_a_link_to_the_suite_is_not_the_suite(tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(suite_folders()[1])
    assert resolve(str(suite_folders()[1]), cwd=tmp_path).ours
    assert not resolve("mine", cwd=tmp_path).ours


def test_reports_in_the_folder_are_hidden(write: Write, tmp_path: Path) -> None:
    folder = write({"adapters.py": CANDIDATE, "reports/mine/results.jsonl": ""})
    view = view_of(
        resolve(str(folder), cwd=folder),
        Path(sys.executable),
        tmp_path / "scratch",
        hidden=[folder / "reports" / "mine"],
    )
    assert view.shows(folder / "adapters.py")
    assert not view.shows(folder / "reports" / "mine" / "results.jsonl")
    rules = sandbox.landlock_rules(view)["read"]
    assert str(folder / "adapters.py") in rules
    assert not [path for path in rules if path.startswith(str(folder / "reports"))]


# -- leaving it to the suite ---------------------------------------------------------------------


def test_what_leans_on_the_suite_is_told_apart(write: Write) -> None:
    """An import at the top takes only what uses it along."""
    folder = write(
        {
            "adapters.py": """
                from reference_impl.adapters import run_rope
                from reference_impl import norm
                try:
                    import conformance
                except ImportError:
                    conformance = None

                def run_rmsnorm(x):
                    return norm.RMSNorm(3)(x)

                def run_silu(x):
                    return x * x.sigmoid()
            """
        }
    )
    with Worker(resolve(str(folder), cwd=Path("/"))) as worker:
        description = worker.describe()
        assert any(
            note.startswith("while it is imported, it uses the suite's own")
            for note in description.notices
        )
        outcomes = {name: worker.call(Call(name, {"x": X})) for name in description.functions}
    assert outcomes["run_silu"].outcome is Outcome.PASSED
    for name in ("run_rope", "run_rmsnorm"):
        assert outcomes[name].outcome is Outcome.DELEGATED, outcomes[name].message
        assert "the suite's own reference implementation" in outcomes[name].message
