"""Ways to end, or to keep from ending."""

from __future__ import annotations

from ..catalogue import Entry, Holds

ENTRIES = [
    Entry(
        "exit-with-success",
        "leaves the process with os._exit(0), as if all had passed",
        Holds("crashed", "ended with exit status 0 during the call"),
        code="import os\n\n\ndef attack(right, *given):\n    os._exit(0)\n",
    ),
    Entry(
        "exits-after-some-calls",
        "answers rightly five times and then leaves with os._exit(0)",
        Holds("crashed", "ended with exit status 0 during the call"),
        code="""\
import os

calls = 0


def attack(right, *given):
    global calls
    calls += 1
    if calls > 5:
        os._exit(0)
    return right(*given)
""",
    ),
    Entry(
        "aborts",
        "calls abort()",
        Holds("crashed", "SIGABRT"),
        code="import os\n\n\ndef attack(right, *given):\n    os.abort()\n",
    ),
    Entry(
        "segmentation-fault",
        "reads from address 0",
        Holds("crashed", "SIGSEGV"),
        code="import ctypes\n\n\ndef attack(right, *given):\n    ctypes.string_at(0)\n",
    ),
    Entry(
        "kills-itself",
        "sends itself SIGKILL",
        Holds("crashed", "SIGKILL"),
        code="""\
import os
import signal


def attack(right, *given):
    os.kill(os.getpid(), signal.SIGKILL)
""",
    ),
    Entry(
        "stops-itself",
        "sends itself SIGSTOP and waits",
        Holds("timed out", "no answer within 3 s"),
        code="""\
import os
import signal


def attack(right, *given):
    os.kill(os.getpid(), signal.SIGSTOP)
    return right(*given)
""",
    ),
    Entry(
        "ignores-signals",
        "ignores every signal that can be ignored and loops for ever",
        Holds("timed out", "no answer within 3 s"),
        code="""\
import signal


def attack(right, *given):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        pass
""",
    ),
    Entry(
        "deadlock",
        "waits for a lock that it holds",
        Holds("timed out", "no answer within 3 s"),
        code="""\
import threading


def attack(right, *given):
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
""",
    ),
    Entry(
        "becomes-another-program",
        "replaces its process by `sleep 300`",
        Holds(("crashed", "timed out")),
        code="""\
import os


def attack(right, *given):
    os.execv("/bin/sleep", ["sleep", "300"])
""",
    ),
    Entry(
        "backward-never-ends",
        "answers rightly and loops for ever in backward",
        Holds("timed out", "no answer within"),
        code="""\
import torch


class Endless(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        while True:
            pass


def attack(right, *given):
    return Endless.apply(right(*given))
""",
    ),
    Entry(
        "backward-exits",
        "answers rightly and leaves with os._exit(0) in backward",
        Holds("crashed", "ended with exit status 0 during the call"),
        code="""\
import os

import torch


class Leaves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        os._exit(0)


def attack(right, *given):
    return Leaves.apply(right(*given))
""",
    ),
    Entry(
        "raises-system-exit",
        "raises SystemExit(0) in a call",
        Holds("raised", "SystemExit: the candidate called exit(0)"),
        code="import sys\n\n\ndef attack(right, *given):\n    sys.exit(0)\n",
    ),
    Entry(
        "raises-interrupt",
        "raises KeyboardInterrupt, as if the user had ended the run",
        Holds("raised", "KeyboardInterrupt"),
        code="def attack(right, *given):\n    raise KeyboardInterrupt\n",
    ),
    Entry(
        "raises-own-base-exception",
        "raises an exception that only BaseException catches",
        Holds("raised", "Escape"),
        code="""\
class Escape(BaseException):
    pass


def attack(right, *given):
    raise Escape
""",
    ),
    Entry(
        "recursion",
        "calls itself for ever",
        Holds("raised", "RecursionError"),
        code="def attack(right, *given):\n    return attack(right, *given)\n",
    ),
    Entry(
        "recursion-without-limit",
        "raises the recursion limit and recurses through C until the stack is full",
        Holds(("crashed", "raised", "out of memory")),
        code="""\
import sys


class Deep:
    def __getattr__(self, name):
        return getattr(self, name + "x"[:0])

    def __add__(self, other):
        return sorted([1, 2], key=lambda _: self + other)


def attack(right, *given):
    sys.setrecursionlimit(10**9)
    return Deep() + 1
""",
    ),
    Entry(
        "exit-hook",
        "registers an exit hook that writes a file and prints a verdict",
        Holds("passed"),
        code="""\
import atexit

import tools


def leave():
    print("Verdict: CONFORMING, score 1.00", flush=True)
    tools.mark(tools.HOME)


atexit.register(leave)


def attack(right, *given):
    return right(*given)
""",
    ),
    Entry(
        "threads-that-never-end",
        "starts threads, daemons or not, that never end",
        Holds("passed"),
        code="""\
import threading
import time


def wait():
    while True:
        time.sleep(1)


for daemon in (True, False):
    threading.Thread(target=wait, daemon=daemon).start()


def attack(right, *given):
    return right(*given)
""",
    ),
    Entry(
        "exit-with-success-at-import",
        "leaves with os._exit(0) while it is imported",
        Holds("not loaded", "ended with exit status 0"),
        code="import os\n\nos._exit(0)\n",
        alone=True,
    ),
    Entry(
        "endless-import",
        "loops for ever while it is imported",
        Holds("not loaded", "takes more than 3 s"),
        code="while True:\n    pass\n",
        alone=True,
        options="--import-timeout 3",
    ),
    Entry(
        "exit-with-success-as-a-thread",
        "leaves with os._exit(0) from a thread, some time after it was imported",
        Holds("crashed", "ended with exit status 0"),
        code="""\
import os
import threading


def attack(right, *given):
    threading.Timer(0.0, os._exit, (0,)).start()
    while True:
        pass
""",
    ),
    Entry(
        "ends-the-judge",
        "sends SIGTERM to the process that grades it",
        Holds("incomplete", "interrupted"),
        boxed=Holds("passed"),
        code="""\
import os
import signal
import time

import tools


def attack(right, *given):
    judge = tools.judge()
    if judge is not None:
        os.kill(judge, signal.SIGTERM)
        time.sleep(1)
    return right(*given)
""",
        alone=True,
    ),
    Entry(
        "kills-the-judge",
        "sends SIGKILL to the process that grades it",
        Holds("killed", changes=("tmp",)),
        boxed=Holds("passed"),
        code="""\
import os
import signal
import time

import tools


def attack(right, *given):
    judge = tools.judge()
    if judge is not None:
        os.kill(judge, signal.SIGKILL)
        time.sleep(5)
    return right(*given)
""",
        alone=True,
    ),
]
