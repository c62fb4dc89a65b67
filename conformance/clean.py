"""Starting over in a Python that reads nothing of the folder it is started in.

A judge must not import what lies in a submission. `python -m`, `PYTHONPATH` and pytest's settings
put folders on `sys.path`, and Python and pytest then run files of them before any code of ours.
What has been run cannot be taken back; so the command is handed to a new process, which Python
starts without these, and this one ends. Only the standard library is needed here.
"""

from __future__ import annotations

import os
import site
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SEARCHED: list[str] = []
"""Folders of `PYTHONPATH` in which a candidate may be looked for, and nothing be imported from."""

_START = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from conformance.clean import resume; sys.exit(resume())"
)


def is_clean() -> bool:
    """Whether this Python was started without `PYTHONPATH` and without the current folder."""
    return bool(sys.flags.ignore_environment and sys.flags.safe_path)


def foreign_paths(*folders: Path) -> list[str]:
    """Entries of `sys.path` inside these folders; installed packages and our own code are not."""
    ours = Path(__file__).resolve().parents[1]
    kept = [Path(sysconfig.get_path(n)).resolve() for n in ("stdlib", "platstdlib", "purelib")]
    kept += [Path(sysconfig.get_path("platlib")).resolve(), Path(sys.executable).resolve().parent]
    kept += [Path(sys.executable).absolute().parent.resolve()]
    kept += [Path(site.getusersitepackages()).resolve()] if site.ENABLE_USER_SITE else []
    roots = [folder.resolve() for folder in folders]
    found = []
    for entry in sys.path:
        path = Path(entry or ".").resolve()
        inside = any(path.is_relative_to(root) for root in roots)
        if inside and path != ours and not any(path.is_relative_to(folder) for folder in kept):
            found.append(entry)
    return found


def suspicious(impl: str | None = None) -> bool:
    """Whether files of the candidate could have been imported here: it, or its folder, is near."""
    if is_clean():
        return False
    return bool(_apart(impl) or foreign_paths(*_roots(impl)))


def _roots(impl: str | None) -> list[Path]:
    """Where files of the candidate may lie: what `--impl` names, and the folder one is in."""
    here = Path.cwd().resolve()
    if not impl:
        return [here]
    try:
        path = Path(impl).expanduser().resolve()
        if not path.exists():
            return [here] if _holds(here, impl) else []
    except (OSError, ValueError, RuntimeError):  # too long, or no path at all; that is told later
        return []
    root = path if path.is_dir() else path.parent
    near = root.is_relative_to(here) or here.is_relative_to(root)
    return [root, here] if near else [root]


def _holds(folder: Path, name: str) -> bool:
    """Whether a folder has the package or module of that dotted name."""
    first = name.partition(".")[0]
    if not first.isidentifier():
        return False
    return (folder / first).is_dir() or (folder / f"{first}.py").is_file()


def start_over(program: str, arguments: Sequence[str], impl: str | None) -> int:
    """Run `conformance` or `pytest` with these arguments in a clean Python; its exit code.

    Where the system can replace a process by another, this function does not return.
    """
    command = clean_command(program, arguments, impl)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    if os.name == "posix":
        os.execv(sys.executable, command)
    return subprocess.call(command)


def clean_command(
    program: str, arguments: Sequence[str], impl: str | None, start: str = _START, *more: str
) -> list[str]:
    """The command of a clean Python: `start` runs there, `more` stands before our arguments."""
    return [
        sys.executable,
        *_flags(),
        "-c",
        start,
        str(Path(__file__).resolve().parents[1]),
        *more,
        os.pathsep.join(_apart(impl)),
        os.pathsep.join(_outside(impl)),
        program,
        *arguments,
    ]


def _flags() -> list[str]:
    """The isolated mode; the user's own packages stay where this Python runs from them."""
    flags = ["-E", "-P"]
    own = site.getusersitepackages() if site.ENABLE_USER_SITE else None
    if own is None or own not in sys.path or foreign_paths(Path(own)):
        flags.append("-s")
    flags += ["-B"] if sys.dont_write_bytecode else []
    flags += ["-X", f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []
    return [*flags, "-X", f"utf8={sys.flags.utf8_mode}"]


def _python_path() -> list[str]:
    return [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


def _is_apart(entry: str, impl: str | None) -> bool:
    """Whether an entry of `PYTHONPATH` belongs to the candidate."""
    path = Path(entry).resolve()
    return any(path.is_relative_to(root) for root in _roots(impl)) or _holds(path, impl or "")


def _apart(impl: str | None) -> list[str]:
    return [os.path.abspath(e) for e in _python_path() if _is_apart(e, impl)]


def _outside(impl: str | None) -> list[str]:
    return [os.path.abspath(e) for e in _python_path() if not _is_apart(e, impl)]


def resume() -> int:
    """What the new process does: forget the old environment, then run the program."""
    apart, outside, program, *arguments = sys.argv[1:]
    SEARCHED[:] = _split(apart)
    # last, so that nothing there stands in front of what is installed
    sys.path += _split(outside)
    for name in [name for name in os.environ if name.startswith("PYTHON")]:
        del os.environ[name]
    os.environ["PYTHONSAFEPATH"] = "1"  # for processes that pytest-xdist starts
    sys.argv = [program, *arguments]
    main: Any
    if program == "pytest":
        import pytest

        from conformance.plugin import SUITE_INI

        ours = ["-c", str(SUITE_INI), f"--rootdir={Path.cwd()}"]
        # it warns that this module has been imported before it could rewrite its assertions
        ours += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        main = pytest.main([*ours, *arguments])
    else:
        from conformance.cli import main as conformance

        main = conformance(arguments)
    return int(main)


def _split(text: str) -> list[str]:
    return [entry for entry in text.split(os.pathsep) if entry]
