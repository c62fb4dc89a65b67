"""The temporary folder of a candidate's process, and those that killed judges have left behind.

A judge holds a lock on the folder for as long as it lives; the system releases it whatever becomes
of the judge. So a folder without a lock is nobody's, in whatever container its judge ran.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from conformance.errors import UsageError

PREFIX = "conformance-candidate-"
SETTLED = 60.0
"""A folder without a lock that is younger than this, in seconds, may be about to get one."""


class Scratch:
    """A fresh temporary folder; `remove` takes it away again."""

    def __init__(self) -> None:
        sweep()
        try:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
        except OSError as error:
            raise UsageError(
                f"no temporary folder can be made in {tempfile.gettempdir()}: {error.strerror}; "
                "make room there, or name another one with the environment variable TMPDIR"
            ) from None
        self._lock = lock(self.path)

    def remove(self) -> None:
        """Remove the folder with all that the candidate has left in it."""
        with contextlib.suppress(OSError):
            self.path.unlink()  # what the candidate may have put in its place
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def lock(folder: Path) -> int | None:
    """A descriptor that holds the folder's lock; None if another one does, or nobody can."""
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def sweep() -> None:
    """Remove the folders of this user's judges that are gone."""
    if not hasattr(os, "getuid"):
        return
    with contextlib.suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
            with contextlib.suppress(OSError):
                _sweep(folder)


def _sweep(folder: Path) -> None:
    facts = folder.lstat()
    if facts.st_uid != os.getuid() or time.time() - facts.st_ctime < SETTLED:
        return
    held = lock(folder)
    if held is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)
