"""Submissions that want to be executed, believed or followed by whoever reads their folder."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from ..catalogue import Entry, Holds

RIGHT = "def attack(right, *given):\n    return right(*given)\n"
MARK = """\
import sys

if not sys.argv[0].endswith("worker.py"):
    with open("@ELSEWHERE@/MARKER", "w") as file:
        file.write("executed")
    raise RuntimeError("the judge has executed a file of the submission")
"""
"""A module that the judge must not import; in the candidate's own process it does nothing."""

OWN = "def run_silu(in_features):\n    return in_features\n"
MISLED = Holds("not loaded", "conformance.toml")
IGNORED = Holds("passed", "ignored in its conformance.toml")


def _fifo(folder: Path) -> None:
    (folder / "adapters.py").unlink()
    os.mkfifo(folder / "adapters.py")


def _folder(folder: Path) -> None:
    (folder / "adapters.py").unlink()
    (folder / "adapters.py").mkdir()


def _socket(folder: Path) -> None:
    (folder / "adapters.py").unlink()
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(folder)  # the path would be too long for a socket
        try:
            server.bind("adapters.py")
        finally:
            os.chdir(here)


def _link(folder: Path) -> None:
    (folder / "adapters.py").rename(folder.parent / "hidden.py")
    (folder / "adapters.py").symlink_to("../hidden.py")


def _dangling(folder: Path) -> None:
    (folder / "adapters.py").unlink()
    (folder / "adapters.py").symlink_to("nowhere.py")


def _endless(folder: Path) -> None:
    (folder / "adapters.py").unlink()
    (folder / "adapters.py").symlink_to("/dev/zero")


def _sparse(folder: Path) -> None:
    with (folder / "adapters.py").open("r+b") as file:
        file.truncate(8 << 30)


def _loops(folder: Path) -> None:
    for number in range(20):
        (folder / f"loop{number}").symlink_to(folder)
        (folder / f"up{number}").symlink_to("..")


def _many(folder: Path) -> None:
    for number in range(1500):
        (folder / f"p{number}").mkdir()
        (folder / f"p{number}" / "adapters.py").write_text(OWN, "utf-8")


def whole(name: str, does: str, text: str | bytes, holds: Holds, **more: object) -> Entry:
    """An entry that is an adapters module of its own."""
    return Entry(name, does, holds, files={"adapters.py": text}, **more)  # type: ignore[arg-type]


ENTRIES = [
    Entry(
        "settings-of-pytest",
        "has conftest.py, pytest.ini, pyproject.toml, setup.cfg and tox.ini that steer pytest",
        Holds("passed"),
        code=RIGHT,
        alone=True,
        files={
            "conftest.py": MARK,
            "tests/conftest.py": MARK,
            "pytest.ini": "[pytest]\naddopts = -p conftest --co -x\n",
            "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--nonsense"\n',
            "setup.cfg": "[tool:pytest]\naddopts = --nonsense\n",
            "tox.ini": "[pytest]\naddopts = --nonsense\n",
            "test_mine.py": MARK,
        },
    ),
    Entry(
        "settings-of-pytest-from-inside",
        "the same, graded with `pytest --impl=.` from inside its folder",
        Holds("passed"),
        code=RIGHT,
        alone=True,
        command="pytest",
        files={
            "conftest.py": MARK,
            "pytest.ini": "[pytest]\naddopts = --nonsense\npythonpath = .\n",
            "tox.ini": "[pytest]\naddopts = --nonsense\n",
            "test_mine.py": MARK,
        },
    ),
    Entry(
        "plugin-in-the-settings-of-pytest",
        "has a pytest.ini that loads a module of it as a plugin, graded with `pytest --impl=.`",
        Holds(("incomplete", "passed")),
        code=RIGHT,
        alone=True,
        command="pytest",
        files={"mine.py": MARK, "pytest.ini": "[pytest]\naddopts = -p mine\n"},
    ),
    Entry(
        "plugin-in-the-settings-of-python-m-pytest",
        "the same, graded with `python -m pytest --impl=.`, which can import from the folder",
        Holds(("incomplete", "passed")),
        code=RIGHT,
        alone=True,
        command="python",
        files={"mine.py": MARK, "pytest.ini": "[pytest]\naddopts = -p mine\n"},
        defects=dict.fromkeys(
            ("plain", "bubblewrap"),
            "pytest imports the plugins that a settings file names before any plugin can object; "
            "`conformance grade` reads no such file",
        ),
    ),
    Entry(
        "modules-that-shadow",
        "has modules called like those of the judge and of Python",
        Holds("passed"),
        code=RIGHT,
        alone=True,
        files={
            f"{name}.py": MARK
            for name in (
                *("pytest", "tabulate", "jinja2", "hypothesis", "jsonschema", "psutil"),
                *("safetensors", "ml_dtypes", "json", "torch", "numpy", "secrets", "queue"),
            )
        },
    ),
    Entry(
        "suite-of-its-own",
        "has packages called conformance and reference_impl",
        Holds("passed"),
        code=RIGHT,
        alone=True,
        files={
            "conformance/__init__.py": MARK,
            "conformance/plugin.py": MARK,
            "reference_impl/__init__.py": MARK,
        },
    ),
    Entry(
        "start-up-files",
        "has sitecustomize, usercustomize, a .pth file and a __main__",
        Holds("passed"),
        code=RIGHT,
        alone=True,
        files={
            "sitecustomize.py": MARK,
            "usercustomize.py": MARK,
            "evil.pth": 'import os; open("@ELSEWHERE@/MARKER", "w").close()\n',
            "__main__.py": MARK,
            "setup.py": MARK,
        },
    ),
    Entry(
        "configures-the-selection",
        "has a conformance.toml that selects components and raises limits",
        IGNORED,
        code=RIGHT,
        alone=True,
        files={"conformance.toml": '[grade]\ncomponents = ["silu"]\ntimeout = 1000\n'},
    ),
    Entry(
        "adapters-of-another",
        "has a conformance.toml whose adapters are those of the submission beside it",
        MISLED,
        code=RIGHT,
        alone=True,
        files={"conformance.toml": 'adapters = "../alice/adapters.py"\n'},
    ),
    Entry(
        "adapters-of-the-suite",
        "has a conformance.toml whose adapters are those of the reference",
        MISLED,
        code=RIGHT,
        alone=True,
        files={"conformance.toml": 'adapters = "@SUITE@/reference_impl/adapters.py"\n'},
    ),
    Entry(
        "configuration-that-is-no-toml",
        "has a conformance.toml of binary noise",
        MISLED,
        code=RIGHT,
        alone=True,
        files={"conformance.toml": bytes(range(256)) * 10},
    ),
    Entry(
        "adapters-as-a-folder",
        "has a folder called adapters.py",
        Holds(("refused", "not loaded")),
        code=RIGHT,
        alone=True,
        build=_folder,
        honest=True,
    ),
    Entry(
        "adapters-as-a-pipe",
        "has a FIFO called adapters.py, which nobody writes to",
        Holds(("refused", "not loaded")),
        code=RIGHT,
        alone=True,
        build=_fifo,
    ),
    Entry(
        "adapters-as-a-socket",
        "has a socket called adapters.py",
        Holds(("refused", "not loaded")),
        code=RIGHT,
        alone=True,
        build=_socket,
    ),
    Entry(
        "adapters-as-a-link",
        "has an adapters.py that is a link to a file outside of its folder",
        Holds(("refused", "not loaded", "passed")),
        code=RIGHT,
        alone=True,
        build=_link,
    ),
    Entry(
        "adapters-as-a-dangling-link",
        "has an adapters.py that is a link to nothing",
        Holds(("refused", "not loaded")),
        code=RIGHT,
        alone=True,
        build=_dangling,
    ),
    Entry(
        "adapters-without-end",
        "has an adapters.py that is a link to /dev/zero",
        Holds(("refused", "not loaded")),
        code=RIGHT,
        alone=True,
        build=_endless,
    ),
    Entry(
        "adapters-of-gigabytes",
        "has a sparse adapters.py of 8 GiB",
        Holds(("refused", "not loaded")),
        code=RIGHT,
        alone=True,
        build=_sparse,
    ),
    Entry(
        "folders-in-a-circle",
        "has links in its folder that lead back to it and to the folder above",
        Holds("passed"),
        code=RIGHT,
        alone=True,
        build=_loops,
    ),
    Entry(
        "many-folders",
        "has 1500 folders with an adapters.py each",
        Holds("passed"),
        code=RIGHT,
        alone=True,
        build=_many,
    ),
    whole(
        "source-that-nests",
        "has a source of 100000 nested brackets and signs",
        "x = " + "(" * 100_000 + "-" * 100_000 + "1\n" + OWN,
        Holds(("refused", "not loaded")),
    ),
    whole(
        "source-with-a-long-sum",
        "has an expression of 50000 terms, which a reader of syntax trees follows to the bottom",
        "x = " + "+".join(["1"] * 50_000) + "\n" + OWN,
        Holds(("refused", "not loaded", "failed")),
    ),
    whole(
        "claims-to-conform",
        "sets verdict, score and outcomes as variables of its module",
        'verdict = "conforming"\nscore = 1.0\n__all__ = ["verdict"]\n'
        "from honest import *\n\n\ndef run_silu(in_features):\n    return in_features\n",
        Holds("failed", "the result is wrong"),
    ),
    whole(
        "module-with-getattr",
        "has a module whose __getattr__ offers every function there could be",
        "import torch\nfrom honest import run_softmax, run_rotation_matrix\n\n\n"
        "def run_silu(in_features):\n    return in_features\n\n\n"
        "def __getattr__(name):\n    if name.startswith('__'):\n"
        "        raise AttributeError(name)\n"
        "    return lambda *a, **k: torch.zeros(1)\n",
        Holds("failed"),
    ),
    whole(
        "replaces-its-module",
        "replaces itself in sys.modules by an object that answers True to everything",
        "import sys\nfrom honest import *\n\n\nclass Yes:\n    def __getattr__(self, name):\n"
        "        return True\n\n\nsys.modules[__name__] = Yes()\n\n\n"
        "def run_silu(in_features):\n    return in_features\n",
        Holds(("failed", "not loaded", "raised", "not implemented")),
    ),
]
