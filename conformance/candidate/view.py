"""Which files a candidate in a sandbox may see.

Everything is found by looking at names and at text files: the interpreter that is to run the
candidate may be the submission's own, so it is not asked.

Visible are the system's programs and libraries, the interpreter with its packages (those that are
installed in place included), and the submission, all of them read-only. Nothing else is: not the
home folder, not what lies beside the submission, not this suite.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from conformance.candidate import sources
from conformance.candidate.resolve import Submission
from conformance.candidate.sources import entries

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"),
    *("/etc/localtime", "/etc/timezone", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf"),
    *("/etc/fonts", "/etc/mime.types", "/etc/ssl/openssl.cnf"),
    # libraries ask here for the processors that there are
    *("/sys/devices/system/cpu", "/sys/devices/system/node"),
)
"""What programs need of a Linux system."""

ACCELERATOR = (
    *("/sys", "/opt/rocm", "/opt/cuda", "/opt/nvidia", "/run/opengl-driver", "/etc/nvidia"),
    *("/usr/lib/wsl", "/etc/OpenCL", "/etc/vulkan", "/run/nvidia-persistenced"),
)
"""What the drivers of accelerators need beside."""

DEVICES = ("nvidia*", "dri", "kfd", "dxg", "infiniband/uverbs*")
"""Their devices, below /dev."""

VARIABLES = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH")
"""Variables that the candidate inherits and that name folders."""

LARGEST = 1 << 20


@dataclass(frozen=True)
class View:
    """The files of the judge's system as the candidate sees them."""

    #: where it may write: its temporary folder
    scratch: Path
    #: files and folders that can be read, if they are there
    readable: tuple[Path, ...]
    #: those among them that cannot, unless something below them is readable
    hidden: tuple[Path, ...]
    #: device files
    devices: tuple[Path, ...] = ()
    #: those of the readable ones that are the submission's
    own: tuple[Path, ...] = ()

    @property
    def script(self) -> Path:
        """The worker's own file: the judge puts it into the temporary folder."""
        return self.scratch / "worker.py"

    def shows(self, path: Path) -> bool:
        """Can the candidate read what lies there?"""
        real = path.resolve()
        around = (real, *real.parents)
        marked = dict(self.steps())
        return next((marked[p] for p in around if p in marked), False)

    def steps(self) -> list[tuple[Path, bool]]:
        """(path, whether it can be read), outer ones first, without those that change nothing."""
        marked = dict.fromkeys(self.readable, True) | dict.fromkeys(self.hidden, False)
        kept: list[tuple[Path, bool]] = []
        state: dict[Path, bool] = {}
        for path in sorted(marked, key=lambda p: p.parts):
            around = next((state[p] for p in path.parents if p in state), False)
            if marked[path] != around:
                state[path] = marked[path]
                kept.append((path, marked[path]))
        return kept


def view_of(
    submission: Submission,
    python: Path,
    scratch: Path,
    *,
    device: str = "cpu",
    user_site: str | None = None,
    hidden: Iterable[Path] = (),
) -> View:
    """What a candidate under that interpreter needs to see; `hidden` are more that it must not."""
    own = (submission.root, *submission.visible, *_project_around(submission))
    interpreter = interpreter_folders(python)
    packages = _with_links([Path(user_site)]) if user_site else []
    readable = [*map(Path, SYSTEM), *interpreter, *packages]
    for folder in [*packages, *_packages(interpreter)]:
        # what a submission's own environment points to is the submission's choice, not ours
        if not any(folder.is_relative_to(root) for root in own):
            readable += _installed_in_place(folder)
    readable += [p for name in VARIABLES for p in _named_in(os.environ.get(name, ""))]
    readable += [] if device == "cpu" else [Path(name) for name in ACCELERATOR]
    readable = [p for p in readable if p.exists() and not _holds_suite(p)]
    readable += _with_links(own)
    return View(
        scratch=scratch,
        readable=tuple(dict.fromkeys(readable)),
        hidden=tuple(dict.fromkeys([*_suite(submission), *_others(submission), *hidden])),
        devices=() if device == "cpu" else tuple(_devices()),
        own=own,
    )


def _project_around(submission: Submission) -> Iterator[Path]:
    """The project that a package was named of: its other packages are its author's too.

    A folder that is only under version control may be that of a whole class.
    """
    for folder in submission.search_path:
        named = any((folder / name).is_file() for name in ("pyproject.toml", "setup.py"))
        if named and folder in submission.root.parents and not too_wide(folder):
            yield folder


def _devices() -> Iterator[Path]:
    for pattern in DEVICES:
        yield from Path("/dev").glob(pattern)


# -- the interpreter -----------------------------------------------------------------------------


def interpreter_folders(python: Path) -> list[Path]:
    """The folders of an interpreter: of its virtual environment, and of what that is made from."""
    found: list[Path] = []
    for program in _chain(python):
        found += _prefix(program)
    for home in _homes(python.parent.parent / "pyvenv.cfg"):
        for program in (home / "python3", home / "python"):
            if os.access(program, os.X_OK):
                found += [folder for link in _chain(program) for folder in _prefix(link)]
    return list(dict.fromkeys(_with_links(dict.fromkeys(found))))


def _chain(path: Path) -> Iterator[Path]:
    """A path, and what it leads to, link by link."""
    for _ in range(20):
        yield path
        if not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / os.readlink(path)))
    yield path.resolve()


def _prefix(program: Path) -> list[Path]:
    """The folder that belongs to `bin/python`; only what is Python's where that is too much."""
    folder = program.parent.parent
    libraries = [*folder.glob("lib*/python3*"), *folder.glob("lib/libpython*")]
    whole = (folder / "pyvenv.cfg").exists() or libraries
    if program.parent.name in ("bin", "Scripts") and whole and not too_wide(folder):
        return [folder]
    return [program, *libraries]


def too_wide(folder: Path) -> bool:
    """Does a folder hold much that is no business of a candidate's?"""
    return folder in (Path.home(), *Path.home().parents, Path(folder.anchor))


def _homes(configuration: Path) -> Iterator[Path]:
    """The folder of the interpreter that a virtual environment is made from."""
    for line in _lines(configuration):
        key, _, value = line.partition("=")
        if key.strip().lower() == "home" and value.strip():
            yield Path(value.strip())


def _packages(prefixes: Iterable[Path]) -> Iterator[Path]:
    """The folders of installed packages below the folders of an interpreter."""
    for prefix in prefixes:
        for pattern in ("lib*/python3*/site-packages", "lib*/python3*/dist-packages"):
            yield from prefix.glob(pattern)
            yield from prefix.glob(f"local/{pattern}")


def _installed_in_place(packages: Path) -> Iterator[Path]:
    """Folders that are installed by a pointer to them: in a .pth file, or with `pip install -e`."""
    names = [entry.name for entry in entries(packages)]
    for path in (packages / name for name in names if name.endswith(".pth")):
        for line in _lines(path):
            if line and not line.startswith(("#", "import ", "import\t")):
                yield from _with_links([packages / line.strip()])
    for path in (packages / n / "direct_url.json" for n in names if n.endswith(".dist-info")):
        try:
            found = json.loads("\n".join(_lines(path)) or "null")
            url = urlsplit(found["url"])
            editable = found["dir_info"]["editable"] is True
        except (ValueError, KeyError, TypeError):
            continue
        if editable and url.scheme == "file":
            yield from _with_links([Path(unquote(url.path))])


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _named_in(text: str) -> Iterator[Path]:
    for part in text.split(os.pathsep):
        if part.startswith(os.sep) and not too_wide(Path(part)):
            yield from _with_links([Path(part)])


def _with_links(paths: Iterable[Path]) -> list[Path]:
    """The paths as they are written and as they are, links followed."""
    return [q for p in paths for q in (Path(os.path.abspath(p)), p.resolve()) if q.exists()]


# -- what must not be seen -----------------------------------------------------------------------


def suite_folders() -> tuple[Path, ...]:
    """The folders of this suite: its code, the reference implementation, the golden vectors."""
    package = Path(__file__).resolve().parents[1]
    around = package.parent
    return (package, around / "reference_impl", around / "fixtures")


def _suite(submission: Submission) -> list[Path]:
    """Those that are to be hidden, and in a checkout all else of the suite that is written."""
    package, reference, fixtures = suite_folders()
    checkout = package.parent
    found = [package, reference]
    if checkout.name not in ("site-packages", "dist-packages"):
        found += [fixtures, checkout / "tests", checkout / "reports"]
    return [p for p in found if p.exists() and p != submission.root]


def _holds_suite(folder: Path) -> bool:
    """Is this the checkout of the suite itself, installed in place?"""
    checkout = suite_folders()[0].parent
    installed = checkout.name in ("site-packages", "dist-packages")
    return not installed and (folder == checkout or folder in checkout.parents)


def _others(submission: Submission) -> Iterator[Path]:
    """Other submissions beside one that is a single file, and the secrets of a home folder."""
    root, adapters = submission.root, submission.adapters
    if root == Path.home():
        yield from (path for path in entries(root) if path.name.startswith("."))
    if adapters is None or not submission.single:
        return
    contract = sources.contract_functions()
    used = sources.reachable_files(adapters, submission.search_path)
    for path in entries(adapters.parent):
        file = path / "adapters.py" if path.is_dir() else path
        if file.suffix != ".py" or file in used or not file.is_file():
            continue
        if sources.read(file).adapters(contract):
            yield path
