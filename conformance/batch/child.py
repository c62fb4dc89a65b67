"""The first thing in the process that grades one submission: it ends with the one that started it.

A batch that is killed cannot end its processes any more. Each of them holds the end of a pipe whose
other end is the batch's; when that is gone, the process and its group end at once, so that whoever
goes on with the batch finds nobody else at work.
"""

from __future__ import annotations

import os
import signal
import threading

from conformance import clean

START = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from conformance.batch.child import main; sys.exit(main())"
)


def main() -> int:
    """Watch the pipe and run the command; both are named in the arguments.

    With the pipe, after a comma, the socket of the fork server to use.
    """
    import sys

    pipe, _, server = sys.argv.pop(1).partition(",")
    watch(int(pipe))
    if server:
        from conformance.candidate.forkserver import inherit

        inherit(int(server))
    return clean.resume()


def watch(pipe: int) -> None:
    """End this process with its group when the other end of the pipe is closed."""
    threading.Thread(target=_wait, args=(pipe,), daemon=True).start()


def _wait(pipe: int) -> None:
    try:
        os.read(pipe, 1)
    finally:
        if os.getpgid(0) == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(4)
