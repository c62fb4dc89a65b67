"""Honest accidents: what tired people hand in."""

from __future__ import annotations

from typing import Any

from ..catalogue import Entry, Holds

WITNESSES = "from honest import run_rotation_matrix, run_softmax\n"
SILU = "\n\ndef run_silu(in_features):\n    return in_features * in_features.sigmoid()\n"


def mishap(name: str, does: str, text: str | bytes, holds: Holds, **more: Any) -> Entry:
    """An adapters module with an accident in it; a text is put before right functions."""
    files = {"adapters.py": WITNESSES + text + SILU if isinstance(text, str) else text}
    files |= more.pop("beside", {})
    return Entry(name, does, holds, files=files, honest=True, **more)


FINE = Holds("passed")
BROKEN = Holds("not loaded")

ENTRIES = [
    mishap(
        "exit-at-the-end", "calls exit() at module level", "exit()\n", Holds("not loaded", "exit(")
    ),
    mishap(
        "asks-for-input",
        "calls input() at module level",
        "name = input('your name: ')\n",
        Holds("not loaded", "EOF"),
    ),
    mishap(
        "breakpoint-left-in",
        "has a breakpoint() at module level",
        "breakpoint()\n",
        Holds("not loaded"),
    ),
    Entry(
        "debugger-left-in",
        "has pdb.set_trace() in a function",
        Holds("raised"),
        honest=True,
        code="import pdb\n\n\ndef attack(right, *given):\n    pdb.set_trace()\n"
        "    return right(*given)\n",
    ),
    mishap(
        "training-at-import",
        "trains a model while it is imported",
        "import torch\nw = torch.zeros(9, requires_grad=True)\nwhile True:\n"
        "    (w * w).sum().backward()\n    print('step', flush=True)\n",
        Holds("not loaded", "takes more than 4 s"),
        options="--import-timeout 4",
    ),
    mishap(
        "arguments-at-import",
        "parses the command line at import",
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', required=True)\n"
        "p.parse_args()\n",
        Holds("not loaded", "exit("),
    ),
    mishap(
        "figure-at-import",
        "imports matplotlib and shows a figure at import",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n",
        FINE,
    ),
    mishap(
        "window-at-import",
        "opens a window at import",
        "import tkinter\ntkinter.Tk().mainloop()\n",
        Holds(("not loaded", "passed")),
    ),
    mishap(
        "relative-file",
        "opens a file beside it by its relative path",
        "settings = open('settings.txt').read()\n",
        FINE,
        beside={"settings.txt": "x"},
    ),
    mishap(
        "missing-file",
        "opens a file that was not handed in",
        "settings = open('data/vocabulary.json').read()\n",
        Holds("not loaded", "FileNotFoundError"),
    ),
    mishap(
        "logging-configured",
        "configures logging to a file at import",
        "import logging\nlogging.basicConfig(filename='run.log', level=0)\n"
        "logging.warning('loaded')\n",
        FINE,
        boxed=Holds("not loaded", "run.log"),
    ),
    mishap(
        "missing-package",
        "imports a package that is not installed",
        "import a_package_that_nobody_has\n",
        FINE,
    ),
    mishap(
        "missing-package-used",
        "uses a package that is not installed while it is imported",
        "import a_package_that_nobody_has as p\nx = 1 + p.value\n",
        BROKEN,
    ),
    mishap(
        "syntax-error",
        "has a syntax error",
        "def f(:\n    pass\n",
        Holds("not loaded", "SyntaxError"),
    ),
    mishap(
        "conflict-markers",
        "has conflict markers of git",
        "<<<<<<< HEAD\nx = 1\n=======\n",
        Holds("not loaded", "SyntaxError"),
    ),
    mishap(
        "tabs-and-spaces",
        "mixes tabs and spaces",
        "def f():\n    x = 1\n\treturn x\n",
        Holds("not loaded", "TabError"),
    ),
    mishap(
        "latin-1",
        "is written in Latin-1 without saying so",
        ("text = 'gr\xfc\xdfe'" + SILU).encode("latin-1"),
        BROKEN,
    ),
    mishap(
        "utf-16", "is written in UTF-16", SILU.encode("utf-16"), Holds(("not loaded", "refused"))
    ),
    mishap(
        "byte-order-mark",
        "begins with a byte order mark",
        b"\xef\xbb\xbf" + (WITNESSES + SILU).encode(),
        FINE,
    ),
    mishap("nul-byte", "holds a NUL byte", SILU.encode() + b"\0", Holds(("not loaded", "refused"))),
    mishap("empty-file", "is empty", b"", Holds(("not loaded", "refused"))),
    mishap(
        "notebook",
        "is a notebook under the name of a module",
        b'{"cells": [], "metadata": {}, "nbformat": 4}\n',
        Holds(("not loaded", "refused")),
    ),
    mishap(
        "circular-import",
        "imports a module that imports it",
        "from helper import thing\n",
        FINE,
        beside={"helper.py": "from adapters import run_silu as thing\n"},
    ),
    mishap(
        "wrong-case",
        "imports a module by a name of the wrong case",
        "from Helper import thing\nx = thing + 1\n",
        Holds("not loaded", "elper"),
        beside={"helper.py": "thing = 1\n"},
    ),
    mishap(
        "undefined-name",
        "uses an undefined name at module level",
        "x: Tensor = toch.zeros(1)\n",
        Holds("not loaded", "NameError"),
    ),
    Entry(
        "cuda-in-a-call",
        "moves everything to the GPU",
        Holds("raised"),
        honest=True,
        code="def attack(right, *given):\n    return right(*given).cuda()\n",
    ),
    mishap(
        "cuda-at-import",
        "needs a GPU while it is imported",
        "import torch\ntable = torch.zeros(3, device='cuda')\n",
        BROKEN,
    ),
    mishap(
        "memory-at-import",
        "allocates 10 GiB while it is imported",
        "import torch\ntable = torch.zeros(10 << 30, dtype=torch.uint8)\n",
        BROKEN,
    ),
    mishap(
        "older-edition",
        "has a function with another argument than the contract's",
        (WITNESSES + "\n\ndef run_silu(x):\n    return x\n").encode(),
        Holds("not implemented"),
    ),
    Entry(
        "prints-progress",
        "prints the tensor in every call",
        FINE,
        honest=True,
        code="def attack(right, *given):\n    print('in', given)\n    return right(*given)\n",
    ),
    Entry(
        "forgets-to-return",
        "forgets the return statement",
        Holds("not implemented", "returned None"),
        honest=True,
        code="def attack(right, *given):\n    right(*given)\n",
    ),
    Entry(
        "todo",
        "raises NotImplementedError",
        Holds("not implemented"),
        honest=True,
        code="def attack(right, *given):\n    raise NotImplementedError\n",
    ),
]
