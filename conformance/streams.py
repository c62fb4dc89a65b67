"""Streams that a run cannot fail on."""

from __future__ import annotations

import os
from typing import Any, TextIO


class Patient:
    """A stream for the user's eyes: when nobody reads it any more, grading still goes on.

    Where the reader of a pipe has gone (`... | head`), what follows is thrown away.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @classmethod
    def around(cls, stream: TextIO | None) -> Any:
        """The stream, made patient; one that leads nowhere in place of one that is closed."""
        if isinstance(stream, Patient):
            return stream
        if stream is None:
            return open(os.devnull, "w", encoding="utf-8")
        return cls(stream)

    def write(self, text: str) -> int:
        """Write, as far as anybody reads it."""
        try:
            return self._stream.write(text)
        except UnicodeEncodeError:
            return self._stream.write(text.encode("ascii", "backslashreplace").decode("ascii"))
        except OSError:
            self._give_up()
            return len(text)

    def flush(self) -> None:
        """Flush, as far as anybody reads it."""
        try:
            self._stream.flush()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        """Lead the stream nowhere, so that what is left in its buffer can go somewhere too."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
