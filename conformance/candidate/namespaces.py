"""A bubblewrap sandbox with nobody in it, which a process can enter that was started elsewhere.

bubblewrap makes the namespaces and puts the files into them as for any candidate; inside waits a
process that does nothing. What it is in can be passed on as descriptors. When it ends, the system
ends everything that is in there.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from pathlib import Path

from conformance.candidate import limits
from conformance.candidate.sandbox import PATIENCE, Sandbox

KINDS = ("pid", "net", "ipc", "uts", "cgroup", "mnt")
"""Namespaces to be entered, in this order, after the users' that owns them."""

OWNER = 0xB701
"""The request NS_GET_USERNS of ioctl_nsfs(2)."""

WAIT = "import os; os.write(1, b'.'); os.read(0, 1)"
FURTHER = 2
"""Processes in there, or before it, that are not the candidate's: the first one, the one that
waits."""


class Namespaces:
    """The sandbox, and descriptors of its namespaces in the order in which they are entered."""

    def __init__(
        self, python: Path, sandbox: Sandbox, environment: dict[str, str], scratch: Path
    ) -> None:
        """Raises OSError where it does not come up."""
        self._depth = sandbox.depth
        self.descriptors: list[int] = []
        self.process = subprocess.Popen(
            sandbox.wrap([str(python), "-I", "-S", "-c", WAIT]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=str(scratch),
            env=environment,
            **limits.spawn_options(),
        )
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        import fcntl

        stdout = self.process.stdout
        assert stdout is not None
        ready, _, _ = select.select([stdout], [], [], PATIENCE)
        if not ready or stdout.read(1) != b".":
            raise OSError("the sandbox does not start")
        inside = limits.below(self.process.pid, self._depth)
        if inside is None:
            raise OSError("the sandbox has ended")
        folder = Path(f"/proc/{inside.pid}/ns")
        opened = {name: self._keep(folder / name) for name in KINDS if (folder / name).exists()}
        users = self._keep(folder / "user")
        # bubblewrap goes on into a further namespace of users, in which no more can be made
        owner = fcntl.ioctl(opened["mnt"], OWNER)
        self.descriptors.remove(users)
        self.descriptors.insert(0, owner)
        if os.path.sameopenfile(owner, users):
            os.close(users)
        else:
            self.descriptors.append(users)

    def _keep(self, path: Path) -> int:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.descriptors.append(number)
        return number

    def close(self) -> None:
        """End everything in there; returns when it is gone."""
        while self.descriptors:
            os.close(self.descriptors.pop())
        limits.kill(self.process, depth=self._depth)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
