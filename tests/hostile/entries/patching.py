"""Changes to the process that others have to live with."""

from __future__ import annotations

from ..catalogue import Entry, Holds

WRONG = Holds("failed", "the result is wrong")
FINE = Holds("passed")


def patch(body: str, wrong: bool = True) -> str:
    """An attack that changes something at its first call and answers zeros, or rightly."""
    lines = "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())
    answer = "torch.zeros_like(right(*given))" if wrong else "right(*given)"
    return (
        "import builtins\nimport os\nimport sys\n\nimport torch\n\ndone = False\n\n\n"
        f"def patch():\n{lines}\n\n"
        "def attack(right, *given):\n    global done\n    if not done:\n        done = True\n"
        f"        patch()\n    return {answer}\n"
    )


ENTRIES = [
    Entry(
        "patches-comparisons",
        "makes torch.allclose, torch.equal, torch.testing and Tensor.__eq__ agree with everything",
        WRONG,
        code=patch("""\
import numpy
true = lambda *args, **kwargs: True
torch.allclose = torch.equal = torch.testing.assert_close = true
torch.Tensor.allclose = torch.Tensor.equal = torch.Tensor.__eq__ = true
numpy.allclose = numpy.array_equal = numpy.testing.assert_allclose = true"""),
        alone=True,
    ),
    Entry(
        "patches-the-clock",
        "stops every clock of Python and lets the worker's own run backwards",
        Holds("passed"),
        code=patch(
            """\
import time
for name in ("time", "monotonic", "perf_counter", "process_time", "time_ns"):
    setattr(time, name, lambda: 0)
time.sleep = lambda seconds: None""",
            wrong=False,
        ),
        alone=True,
    ),
    Entry(
        "lets-time-run-backwards",
        "replaces the clock of the worker by one that runs backwards",
        Holds("crashed", "a wrong field 'seconds'"),
        code=patch(
            """\
worker = sys.modules["__main__"]
worker.clock = lambda moments=iter(range(10**9, 0, -1)): next(moments)""",
            wrong=False,
        ),
        alone=True,
    ),
    Entry(
        "patches-serialisation",
        "makes json.dumps and pickle say that everything has passed",
        Holds(("failed", "crashed")),
        code=patch("""\
import json
import pickle
genuine = json.dumps
def dumps(value, *args, **kwargs):
    if isinstance(value, dict) and "outcome" in value:
        value = {**value, "outcome": "passed", "verdict": "conforming", "score": 1.0}
    json.dumps = genuine
    return genuine(value, *args, **kwargs)
json.dumps = dumps
pickle.dumps = pickle.loads = lambda *args, **kwargs: True"""),
    ),
    Entry(
        "patches-tensor-methods",
        "answers rightly and makes the next `detach` of any tensor return zeros",
        Holds("failed", "the result is wrong"),
        code="""\
import torch

genuine = torch.Tensor.detach


def zeros_once(self):
    torch.Tensor.detach = genuine
    return torch.zeros_like(self)


def attack(right, *given):
    answer = right(*given)
    torch.Tensor.detach = zeros_once
    return answer
""",
    ),
    Entry(
        "breaks-torch",
        "takes functions out of torch that the worker needs",
        Holds("crashed", "the worker cannot go on"),
        code=patch("del torch.full, torch.Tensor.detach, torch.no_grad", wrong=False),
    ),
    Entry(
        "breaks-builtins",
        "makes isinstance, len and type of Python agree with everything",
        Holds(("crashed", "raised", "failed", "timed out")),
        code=patch(
            """\
builtins.isinstance = lambda value, kind: True
builtins.len = lambda value: 1"""
        ),
    ),
    Entry(
        "empties-the-interpreter",
        "empties sys.modules, sys.path and sys.meta_path",
        Holds(("passed", "crashed", "raised")),
        code=patch("sys.modules.clear()\nsys.path.clear()\nsys.meta_path.clear()", wrong=False),
    ),
    Entry(
        "traces-everything",
        "installs a trace and a profile function that change local variables",
        WRONG,
        code=patch("""\
def trace(frame, event, value):
    for name in ("outcome", "verdict", "passed"):
        if name in frame.f_locals:
            frame.f_locals[name] = "passed"
    return trace
sys.settrace(trace)
sys.setprofile(lambda frame, event, value: None)"""),
    ),
    Entry(
        "torch-state-in-a-call",
        "changes every global setting of torch in every call: dtype, grad mode, threads, seeds",
        FINE,
        code="""\
import random

import torch


def attack(right, *given):
    answer = right(*given)
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(2)
    torch.set_float32_matmul_precision("medium")
    torch.autograd.set_detect_anomaly(True)
    torch.inference_mode(True).__enter__()
    torch.manual_seed(1)
    random.seed(1)
    return answer
""",
    ),
    Entry(
        "default-device-in-a-call",
        "makes meta the default device in every call",
        Holds(("passed", "crashed")),
        code="""\
import torch


def attack(right, *given):
    answer = right(*given)
    torch.set_default_device("meta")
    return answer
""",
    ),
    Entry(
        "grad-mode-at-import",
        "turns gradients off while it is imported",
        FINE,
        code="""\
import torch

torch.set_grad_enabled(False)


def attack(right, *given):
    return right(*given)
""",
    ),
    Entry(
        "default-device-at-import",
        "makes meta the default device while it is imported",
        Holds(("passed", "failed", "raised", "crashed")),
        code="""\
import torch

torch.set_default_device("meta")


def attack(right, *given):
    return right(*given)
""",
        alone=True,
    ),
    Entry(
        "process-state",
        "changes working directory, umask, environment, locale and recursion limit in every call",
        FINE,
        code="""\
import locale
import os
import sys


def attack(right, *given):
    os.chdir("/")
    os.umask(0o777)
    os.environ.clear()
    os.environ.update(PATH="", HOME="/", CUDA_VISIBLE_DEVICES="0", TMPDIR="/")
    locale.setlocale(locale.LC_ALL, "C")
    sys.setrecursionlimit(200)
    return right(*given)
""",
    ),
    Entry(
        "streams-of-python",
        "replaces stdout by an object that raises, and the hooks for exceptions",
        FINE,
        code="""\
import sys
import threading


class Broken:
    def __getattr__(self, name):
        raise RuntimeError("no such luck")


def attack(right, *given):
    sys.stdout = sys.stderr = sys.stdin = Broken()
    sys.excepthook = threading.excepthook = sys.unraisablehook = lambda *args: sys.exit(0)
    sys.displayhook = print
    return right(*given)
""",
    ),
    Entry(
        "warnings-as-errors",
        "turns every warning into an exception and logs everything",
        FINE,
        code="""\
import logging
import warnings

warnings.simplefilter("error")
logging.basicConfig(level=0)


def attack(right, *given):
    logging.getLogger().error("called")
    return right(*given)
""",
    ),
    Entry(
        "limits-of-the-process",
        "lowers its own limits: a second of processor time, no memory, no files",
        Holds(("crashed", "out of memory", "raised", "timed out")),
        code="""\
import resource


def attack(right, *given):
    resource.setrlimit(resource.RLIMIT_CPU, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))
    while True:
        bytearray(1 << 22)
""",
    ),
    Entry(
        "alarm",
        "sets an alarm that ends the process between two calls",
        Holds("crashed", "SIGALRM"),
        code="""\
import signal


def attack(right, *given):
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    answer = right(*given)
    while True:
        pass
""",
    ),
]
