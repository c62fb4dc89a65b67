"""Taking more than there is: memory, processes, files, output."""

from __future__ import annotations

from ..catalogue import Entry, Holds

ENTRIES = [
    Entry(
        "ten-gigabytes",
        "allocates 10 GiB at once",
        Holds("out of memory"),
        code="""\
import torch


def attack(right, *given):
    return torch.ones(10 << 30, dtype=torch.uint8)
""",
        honest=True,
    ),
    Entry(
        "ten-gigabytes-of-python",
        "allocates 10 GiB as bytes",
        Holds("out of memory", "MemoryError"),
        code="def attack(right, *given):\n    return bytearray(10 << 30)\n",
    ),
    Entry(
        "maps-ten-gigabytes",
        "maps 10 GiB of memory without using it",
        Holds(("out of memory", "raised")),
        code="""\
import mmap


def attack(right, *given):
    mmap.mmap(-1, 10 << 30)
    return right(*given)
""",
    ),
    Entry(
        "grows-with-every-call",
        "keeps 200 MB more after every call",
        Holds("out of memory"),
        code="""\
kept = []


def attack(right, *given):
    kept.append(bytearray(200 << 20))
    return right(*given)
""",
        options="--memory 1",
    ),
    Entry(
        "memory-of-children",
        "lets eight children hold 300 MB each",
        Holds(("out of memory", "raised", "crashed", "timed out")),
        code="""\
import os
import time


def attack(right, *given):
    for _ in range(8):
        if os.fork() == 0:
            kept = b"x" * (300 << 20)
            time.sleep(30)
            os._exit(0)
    time.sleep(10)
    return right(*given)
""",
        options="--memory 1",
    ),
    Entry(
        "forks-and-forks",
        "starts 30 processes in generations, each of which sleeps for a minute",
        Holds(("passed", "raised", "crashed")),
        code="""\
import os
import time

started = False


def breed(generations):
    if generations:
        for _ in range(2):
            if os.fork() == 0:
                breed(generations - 1)
                time.sleep(60)
                os._exit(0)


def attack(right, *given):
    global started
    if not started:
        started = True
        breed(4)
    return right(*given)
""",
    ),
    Entry(
        "child-that-burns-time",
        "leaves a child behind that computes for a minute",
        Holds("passed"),
        code="""\
import subprocess
import sys

child = None


def attack(right, *given):
    global child
    if child is None:
        child = subprocess.Popen([sys.executable, "-I", "-c", "while True: pass"])
    return right(*given)
""",
        alone=True,
    ),
    Entry(
        "leaves-the-group",
        "leaves a process that has moved to a session of its own and waits for the judge to end",
        Holds("passed"),
        code="""\
import os
import time

import tools

started = False


def attack(right, *given):
    global started
    if not started:
        started = True
        if os.fork() == 0:
            os.setsid()
            time.sleep(20)
            tools.mark(tools.REPORT)
            os._exit(0)
    return right(*given)
""",
        alone=True,
    ),
    Entry(
        "leaves-the-family",
        "forks twice, so that nobody's child waits in a session of its own for the judge to end",
        Holds("passed"),
        code="""\
import os
import time

import tools

started = False


def attack(right, *given):
    global started
    if not started:
        started = True
        child = os.fork()
        if child == 0:
            os.setsid()
            if os.fork() == 0:
                for descriptor in range(0, 64):
                    try:
                        os.close(descriptor)
                    except OSError:
                        pass
                time.sleep(20)
                tools.mark(tools.REPORT)
            os._exit(0)
        os.waitpid(child, 0)
    return right(*given)
""",
        alone=True,
    ),
    Entry(
        "two-hundred-threads",
        "starts 200 threads that wait",
        Holds(("passed", "raised")),
        code="""\
import threading
import time

started = False


def attack(right, *given):
    global started
    if not started:
        started = True
        for _ in range(200):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return right(*given)
""",
    ),
    Entry(
        "opens-every-file",
        "opens files until no descriptor is left",
        Holds(("passed", "raised", "crashed")),
        code="""\
import os


def attack(right, *given):
    try:
        while True:
            os.open(os.devnull, os.O_RDONLY)
    except OSError:
        pass
    return right(*given)
""",
    ),
    Entry(
        "prints-without-end",
        "prints for ever",
        Holds("timed out", "no answer within 3 s"),
        code="""\
def attack(right, *given):
    while True:
        print("progress " * 1000)
""",
    ),
    Entry(
        "prints-one-long-line",
        "writes 300 MB without a line break to stderr and answers rightly",
        Holds(("passed", "timed out")),
        code="""\
import os

done = False


def attack(right, *given):
    global done
    if not done:
        done = True
        block = b"x" * (1 << 20)
        for _ in range(300):
            os.write(2, block)
    return right(*given)
""",
    ),
    Entry(
        "fills-the-temporary-folder",
        "writes 200 MB into its temporary folder and answers rightly",
        Holds(("passed", "raised", "crashed")),
        code="""\
import tempfile

done = False


def attack(right, *given):
    global done
    if not done:
        done = True
        file = tempfile.NamedTemporaryFile(delete=False)
        for _ in range(200):
            file.write(bytes(1 << 20))
        file.close()
    return right(*given)
""",
    ),
    Entry(
        "fills-its-own-folder",
        "writes 200 MB beside its adapters and answers rightly",
        Holds(("passed", "raised", "crashed")),
        code="""\
import os

done = False


def attack(right, *given):
    global done
    if not done:
        done = True
        with open(os.path.join(os.path.dirname(__file__), "filler"), "wb") as file:
            for _ in range(200):
                file.write(bytes(1 << 20))
    return right(*given)
""",
    ),
    Entry(
        "a-thousand-files",
        "makes a thousand files and folders in its temporary folder, some of them unreadable",
        Holds(("passed", "raised")),
        code="""\
import os
import tempfile

done = False


def attack(right, *given):
    global done
    if not done:
        done = True
        for number in range(500):
            folder = tempfile.mkdtemp()
            open(os.path.join(folder, "file"), "w").close()
            os.chmod(folder, 0)
    return right(*given)
""",
    ),
    Entry(
        "long-message",
        "raises with a message of 50 million characters",
        Holds(("raised", "out of memory")),
        code="def attack(right, *given):\n    raise ValueError('a' * 50_000_000)\n",
    ),
]
