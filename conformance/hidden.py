"""A secret of the instructor from which inputs are drawn that nobody has seen.

Of the content of the file only a hash is kept, and only in the judge: no report, no record and no
message to the candidate holds either of them.
"""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from pathlib import Path

from conformance.errors import UsageError

SHORTEST = 16
"""Bytes of a secret; fewer can be guessed."""

LONGEST = 1 << 20


class HiddenSeed:
    """The key of everything that is drawn from the secret; it does not show itself."""

    __slots__ = ("_key",)

    def __init__(self, content: bytes) -> None:
        self._key = hashlib.sha256(b"transformer-conformance hidden seed\0" + content).hexdigest()

    def seed(self, number: int) -> str:
        """The seed of the draw of that number, for `Case.arguments`."""
        return f"hidden/{self._key}/{number}"

    def __repr__(self) -> str:
        return "HiddenSeed(...)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a hidden seed stays where it is")


@cache
def read_hidden_seed(path: Path) -> HiddenSeed:
    """The secret in a file; `-` is standard input. Read once, so a pipe will do.

    Raises UsageError when it cannot be read, or is too short to be one.
    """
    option = f"--hidden-seed-file {path}"
    try:
        if str(path) in ("-", "/dev/stdin"):
            content = sys.stdin.buffer.read(LONGEST + 1)
        else:
            with path.open("rb") as file:
                content = file.read(LONGEST + 1)
    except (OSError, AttributeError, ValueError) as error:
        raise UsageError(f"{option}: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > LONGEST:
        raise UsageError(f"{option}: more than {LONGEST:,} bytes; give a short secret")
    if len(content.strip()) < SHORTEST:
        raise UsageError(
            f"{option}: fewer than {SHORTEST} bytes can be guessed; "
            "`openssl rand -hex 32` makes a secret"
        )
    return HiddenSeed(content.strip())


def stays_readable(path: Path) -> bool:
    """Whether others with our rights can read the secret after us: not where it came by a pipe."""
    return str(path) != "-" and path.is_file()
