"""The sandbox around a candidate's process: the strongest that this system has.

1. bubblewrap: the candidate sees nothing but what `view` names, read-only; no network, processes,
   `/proc`, `/tmp` and `/dev` of its own, no privileges;
2. without it, user namespaces by `unshare` (no network, processes and `/proc` of its own) and
   Landlock (reads what `view` names, writes its temporary folder), or one of them;
3. nothing but a process of its own.

Each is tried with the interpreter that is to run in it before it is used: where a system has the
program and forbids what it does, as containers and some distributions do, the next one is taken.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from conformance.candidate import confine
from conformance.candidate.limits import amount
from conformance.candidate.sources import entries
from conformance.candidate.view import View
from conformance.errors import SandboxError

MODES = ("auto", "require", "off")
PATIENCE = 20.0
"""Seconds after which a sandbox that does not start is taken for one that does not work."""

FIRST = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Folders that are links into /usr on most systems, and have to be so in the sandbox."""

WRITABLE = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm")

HELP = (
    "install bubblewrap (apt-get install bubblewrap) on a system that allows user namespaces "
    "(Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0; Docker: --security-opt "
    "seccomp=unconfined --security-opt systempaths=unconfined), or grade with --sandbox auto"
)


@dataclass(frozen=True)
class Sandbox:
    """One way to start a candidate's process."""

    name: str
    #: what comes before the command
    prefix: tuple[str, ...] = ()
    #: for the report: what was in force
    words: tuple[str, ...] = ()
    #: the candidate's process is so many generations below the one that is started
    depth: int = 0
    #: the worker has to stay behind itself to end what the candidate leaves
    keeper: bool = False
    #: users of its own: tasks of the judge's user do not count as the candidate's
    own_users: bool = False
    #: it sees no other files than those of the view
    files: bool = False
    #: no network, no other files, not their modes either, no other processes: enough for `require`
    whole: bool = False
    #: a process that was started outside can enter it
    forkable: bool = False
    #: a program and the copy of it that is run
    copied: tuple[Path, Path] | None = None

    def renew(self) -> None:
        """Makes the copy of its program anew: whoever was in it can have changed that."""
        if self.copied is not None:
            own_copy(*self.copied)

    def wrap(self, command: list[str]) -> list[str]:
        """The command line that runs `command` in this sandbox."""
        return [*self.prefix, *command, *(["keep"] if self.keeper else [])]


LINUX = sys.platform.startswith("linux")
NONE = Sandbox("none", depth=int(LINUX), keeper=LINUX)


class Ladder:
    """The sandboxes that work here, the strongest first; `take` gives one after the other."""

    def __init__(
        self, mode: str, view: View, python: Path, environment: Mapping[str, str], size: int
    ) -> None:
        self.mode = mode
        self.view = view
        self.python = python
        self.environment = environment
        self.size = size
        #: why stronger ones are not in force
        self.reasons: list[str] = []
        self._rungs = self._climb_down()

    def take(self) -> Sandbox:
        """The next one. Raises SandboxError when a sandbox is demanded and none is left."""
        return next(self._rungs)

    def _climb_down(self) -> Iterator[Sandbox]:
        if self.mode == "off":
            yield replace(NONE, words=("no sandbox (--sandbox off)",))
            return
        if LINUX:
            for sandbox in chain(self._bubblewraps(), self._others()):
                if (self.mode == "auto" or sandbox.whole) and self._works(sandbox):
                    over = tuple(f"nothing stronger: {reason}" for reason in self.reasons)
                    yield replace(sandbox, words=(*sandbox.words, *over))
        else:
            self.reasons.append(f"there is none for {sys.platform}")
        why = "; ".join(self.reasons)
        if self.mode == "require":
            raise SandboxError(f"--sandbox require: no sandbox works here ({why}); {HELP}")
        yield replace(NONE, words=(f"no sandbox: {why}",))

    def _works(self, sandbox: Sandbox) -> bool:
        """Does the interpreter start in it, and can it read the submission?"""
        probe = "import os, sys; [os.close(os.open(p, os.O_RDONLY)) for p in sys.argv[1:]]"
        needed = [str(self.view.script), *map(str, self.view.own)]
        command = [*sandbox.prefix, str(self.python), "-I", "-S", "-c", probe, *needed]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=self.environment,
                cwd=self.view.scratch,
                timeout=PATIENCE,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self.reasons.append(f"{sandbox.name} does not work here ({error})"[:300])
            return False
        if done.returncode == 0:
            return True
        said = done.stderr.decode("utf-8", errors="replace").strip().splitlines()
        why = said[-1] if said else f"exit status {done.returncode}"
        reason = f"{sandbox.name} does not work here ({why[:200]})"
        if reason not in self.reasons:
            self.reasons.append(reason)
        return False

    def _program(self, name: str) -> str | None:
        """An installed program, never one of the submission's."""
        found = shutil.which(name)
        if found is None or not os.path.isabs(found):
            return None
        real = Path(found).resolve()
        return None if any(real.is_relative_to(p) for p in self.view.own) else found

    def _unchangeable(self, program: Path) -> tuple[Path, Path] | None:
        """The program and a copy, where the candidate's user could change it. Raises OSError."""
        found = program.stat()
        if found.st_uid != os.geteuid() or found.st_mode & stat.S_ISUID:
            return None
        copy = own_copy(program, self.view.scratch / "bwrap")
        # nothing is run from some temporary folders
        return (program, copy) if os.access(copy, os.X_OK) else None

    # -- bubblewrap ------------------------------------------------------------------------------

    def _bubblewraps(self) -> Iterator[Sandbox]:
        """The newest form first; then without what older versions and containers lack."""
        program = self._program("bwrap")
        if program is None:
            self.reasons.append("bubblewrap (bwrap) is not installed")
            return
        try:
            copied = self._unchangeable(Path(program))
        except OSError as error:
            self.reasons.append(f"bubblewrap does not work here ({error})"[:300])
            return
        run = program if copied is None else str(copied[1])
        for modern, own_proc in ((True, True), (False, True), (False, False)):
            bound = f" of at most {amount(self.size)}" if modern else ""
            yield Sandbox(
                "bubblewrap",
                tuple(bubblewrap(run, self.view, self.size if modern else 0, own_proc)),
                (
                    "sandbox: bubblewrap",
                    "no network",
                    "files: sees the system, Python and the submission, all read-only",
                    f"own temporary folder{bound}",
                    "own processes and /proc" if own_proc else "own processes",
                ),
                depth=2,
                own_users=True,
                files=True,
                whole=True,
                forkable=True,
                copied=copied,
            )

    # -- without it ------------------------------------------------------------------------------

    def _others(self) -> Iterator[Sandbox]:
        """User namespaces, Landlock, or both."""
        unshare, landlock = self._unshare(), self._landlock()
        both = ("sandbox: user namespaces and Landlock", *UNSHARED[1:], LOCKED)
        if unshare and landlock:
            yield Sandbox(
                "unshare with Landlock",
                (*unshare, *landlock),
                both,
                depth=2,
                keeper=True,
                own_users=True,
                files=True,
            )
        if landlock:
            yield Sandbox("Landlock", landlock, landlocked(), depth=1, keeper=True, files=True)
        if unshare:
            yield Sandbox("unshare", unshare, UNSHARED, depth=2, keeper=True, own_users=True)

    def _unshare(self) -> tuple[str, ...]:
        program = self._program("unshare")
        if program is None:
            self.reasons.append("unshare is not installed")
            return ()
        # to be nobody there: root would keep its privileges within the namespaces
        nobody = ("--map-user=65534", "--map-group=65534")
        own = ("--mount", "--mount-proc", "--pid", "--fork", "--kill-child", "--net", "--ipc")
        return (program, "--user", *nobody, *own)

    def _landlock(self) -> tuple[str, ...]:
        found = importlib.util.find_spec("landlockpy")
        if found is None or found.origin is None:
            self.reasons.append("landlockpy is not installed")
            return ()
        library = str(Path(found.origin).parents[1])
        rules = json.dumps(landlock_rules(self.view))
        return (sys.executable, "-I", "-S", confine.__file__, library, rules)


def own_copy(program: Path, copy: Path) -> Path:
    """A copy of a program that is started outside of the sandbox and can be seen in it.

    /proc/PID/exe leads to the file that a process runs, where that process was started and not
    where the sandbox has it. If it belongs to the user of the candidate, who may be root, it could
    change the file's mode, and nobody else would start it again. Nothing depends on a copy.
    """
    copy.unlink(missing_ok=True)
    shutil.copyfile(program.resolve(), copy)
    copy.chmod(0o500)
    return copy


# -- bubblewrap's command line -------------------------------------------------------------------


def bubblewrap(program: str, view: View, size: int, own_proc: bool) -> list[str]:
    """The words before a command. `size`: of the temporary folders, 0 where bwrap is too old."""
    words = [program, "--unshare-user", *(["--disable-userns"] if size else [])]
    words += ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--proc", "/proc"] if own_proc else ["--ro-bind", "/proc", "/proc"]
    words += ["--dev", "/dev"]

    def folder(path: Path, limit: int) -> list[str]:
        return [*(["--size", str(limit)] if size else []), "--tmpfs", str(path)]

    sealed = [Path("/dev")]
    words += [*folder(Path("/dev/shm"), size), *folder(Path("/tmp"), size)]
    words += ["--symlink", "/tmp", "/var/tmp"]
    for path, readable in view.steps():
        if readable and str(path) in FIRST and path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        elif readable:
            words += ["--ro-bind-try", str(path), str(path)]
        elif path.is_dir():
            words += folder(path, 1 << 16)
            sealed.append(path)
        elif path.exists():
            words += ["--ro-bind", os.devnull, str(path)]
    for path in view.devices:
        words += ["--dev-bind-try", str(path), str(path)]
    words += folder(view.scratch, size)
    script = str(view.script)
    words += ["--ro-bind-try", script, script]
    for path in (*sealed, Path("/")):
        words += ["--remount-ro", str(path)]
    return [*words, "--chdir", str(view.scratch), "--"]


# -- Landlock's rules ----------------------------------------------------------------------------


UNSHARED = ("sandbox: user namespaces", "no network", "own processes and /proc")
LOCKED = "files: reads the system, Python and the submission, writes its temporary folder"


def landlocked() -> tuple[str, ...]:
    """What Landlock does, as far as this system knows it."""
    version = confine.version()
    network = "no TCP, but the rest of the network" if version >= 4 else "with the network"
    return (
        f"sandbox: Landlock (version {version})",
        LOCKED,
        *(["other processes out of reach"] if version >= 6 else []),
        *([network] if version < 10 else ["no network"]),
    )


def landlock_rules(view: View) -> dict[str, list[str]]:
    """The view as rules for `confine`. Rules hold for whole folders, so where something below is
    hidden every entry beside it is named instead; only the names in such a folder can be read."""
    hidden = set(view.hidden)
    readable = {path for path, allowed in view.steps() if allowed}
    rules: dict[str, list[str]] = {"list": [], "read": ["/proc"], "write": []}

    def allow(path: Path) -> None:
        if not any(path in secret.parents for secret in hidden):
            rules["read"].append(str(path))
            return
        rules["list"].append(str(path))
        for entry in entries(path):
            # a rule for a link would be one for what it leads to
            if entry not in hidden and not entry.is_symlink():
                allow(entry)

    for path in sorted(readable):
        allow(path)
    rules["write"] = [*WRITABLE, *map(str, view.devices), str(view.scratch)]
    return rules
