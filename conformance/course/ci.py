"""`conformance init --ci SERVICE`: the files with which a service grades submissions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformance.course.rubric import DEFAULT_POINTS, Rubric
from conformance.errors import UsageError

TEMPLATES = Path(__file__).parent / "templates"

COURSE = "course.toml"
"""The instructor's own file."""

FILES: Mapping[str, Mapping[str, str]] = {
    "github": {".github/workflows/conformance.yml": "github.yml"},
    "gitlab": {".gitlab-ci.yml": "gitlab.yml"},
    "gradescope": {"setup.sh": "setup.sh", "run_autograder": "run_autograder"},
}
"""Service -> path below the folder -> template; each gets `course.toml` as well."""

ADVICE: Mapping[str, str] = {
    "github": "course.toml belongs into the repository that CONFORMANCE_COURSE names, not into "
    "those of the students",
    "gitlab": "course.toml belongs into the repository that CONFORMANCE_COURSE names, not into "
    "those of the students",
    "gradescope": "zip these files with a checkout of the suite in transformer-conformance/",
}
"""What is left to do."""

SCRIPTS = ("setup.sh", "run_autograder")
"""Those that are run, and so need the right to be."""


def write_ci(service: str, folder: Path) -> list[Path]:
    """Write the files for one service; returns what was written.

    UsageError when one of them exists already or the folder cannot be written.
    """
    wanted = {
        folder / name: (TEMPLATES / template).read_text("utf-8")
        for name, template in FILES[service].items()
    }
    wanted[folder / COURSE] = course_text()
    for path in wanted:
        if path.exists() or path.is_symlink():
            raise UsageError(f"{path} exists already; nothing was written")
    try:
        for path, text in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8", newline="\n")
            if path.name in SCRIPTS:
                path.chmod(0o755)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror or error}") from error
    return list(wanted)


def course_text() -> str:
    """The instructor's file to start from: the default rubric, written out."""
    rows = "\n".join(
        f"{worth.component} = {DEFAULT_POINTS}" for worth in Rubric.default().components
    )
    return (TEMPLATES / COURSE).read_text("utf-8").replace("ROWS", rows)
