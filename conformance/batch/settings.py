"""What every submission of a class is graded with, and a mark by which to know it again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance import SPEC_VERSION, __version__
from conformance.batch.command import PASSED_ON
from conformance.candidate.forkserver import possible
from conformance.candidate.limits import interpreter
from conformance.config import with_config
from conformance.course.rubric import Rubric
from conformance.errors import UsageError
from conformance.options import DEFAULTS, OPTIONS, GradeOptions

NOT_FOR_A_CLASS = ("report", "junit", "gradescope", "github", "in-process", "max-minutes")
"""Options that may stand in the instructor's file, and that cannot be the same for everybody."""

SPARE_MINUTES = 30
"""What the judge may take beside the time of the candidate."""

LONGEST_SECRET = 60_000


@dataclass(frozen=True)
class Settings:
    """The words of each command, and what the judge of the class has to know itself.

    `mark` is the same as long as nothing that decides a grade has changed. A hidden seed is not in
    it: nothing is kept that could be derived from the secret. `shut_in`: whether it was said
    whether submissions are in a sandbox, one without network or none.
    """

    words: tuple[str, ...]
    limit: float
    rubric: Rubric | None
    mark: str
    reads_secret: bool = False
    shut_in: bool = False
    #: whether their workers may come from a fork server
    forks: bool = False

    @classmethod
    def read(cls, given: Mapping[str, Any], limit: float | None = None) -> Settings:
        """From options as given on the command line; UsageError where one is wrong."""
        passed = {o.key: given.get(o.key) for o in OPTIONS if o.name in PASSED_ON}
        merged = with_config(passed)
        for name in NOT_FOR_A_CLASS:
            if merged.get(name.replace("-", "_")):
                raise UsageError(
                    f"{given['config']}: [grade] {name} cannot hold for every submission of a "
                    "class; take it out"
                )
        options = GradeOptions.parse("-", merged)
        seconds = 60.0 * (options.stop_after + SPARE_MINUTES if limit is None else limit)
        words = tuple(_words(passed))
        told = [__version__, SPEC_VERSION, seconds, *_told(passed), *_told(merged)]
        mark = hashlib.sha256(json.dumps(told).encode()).hexdigest()
        secret = str(merged.get("hidden_seed_file")) == "-"
        shut_in = options.require_sandbox or options.sandbox != DEFAULTS["sandbox"]
        forks = possible(options.sandbox, options.device, interpreter(options.python))
        return cls(words, seconds, options.rubric, mark, secret, shut_in, forks)


def _words(passed: Mapping[str, Any]) -> list[str]:
    words = []
    for option in OPTIONS:
        value = passed.get(option.key)
        if value is None or value is False:
            continue
        words.append(f"--{option.name}" if value is True else f"--{option.name}={value}")
    return words


def _told(values: Mapping[str, Any]) -> list[Any]:
    """Options as they decide a grade: of a file what it holds, not where it lies."""
    told: list[Any] = []
    for key in sorted(values):
        value = values[key]
        if value is None or value is False:
            continue
        if key == "hidden_seed_file":
            told.append([key, True])
        elif key in ("config", "rubric", "policy") and isinstance(value, str):
            told.append([key, _content(value)])
        elif isinstance(value, str | int | float | list):  # tables are in the file of the config
            told.append([key, value])
    return told


def _content(name: str) -> str:
    path = Path(name).expanduser()
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else name
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
