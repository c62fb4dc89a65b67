"""What a candidate prints: collected by a thread, cut by request, bounded.

The worker writes a mark with the id of the request behind everything that was printed during it;
a candidate that prints without end fills nothing but the small buffer here.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import IO

from conformance.candidate.frames import clean
from conformance.candidate.worker import MARK

#: an id is 16 characters; a mark that does not end within this is text of the candidate's
_LONGEST_ID = 64


class Bounded:
    """The beginning and the end of a stream of bytes."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0

    def add(self, data: bytes) -> None:
        self._size += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data
            if len(self._tail) > 2 * self._half:
                del self._tail[: -self._half]

    def text(self) -> str:
        tail = bytes(self._tail[-self._half :])
        left_out = self._size - len(self._head) - len(tail)
        middle = f"\n... [{left_out} bytes left out] ...\n".encode() if left_out else b""
        return clean((bytes(self._head) + middle + tail).decode("utf-8", errors="replace"))


class Capture:
    """Drains a pipe in a thread; `take` gives what belongs to one request."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._now = Bounded(limit)
        self._carry = b""
        self._ended = False
        self._done: OrderedDict[str, str] = OrderedDict()
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        with self._stream as stream:
            descriptor = stream.fileno()
            while data := self._read(descriptor):
                with self._change:
                    self._feed(self._carry + data)
                    self._change.notify_all()
        with self._change:
            self._now.add(self._carry)
            self._carry = b""
            self._ended = True
            self._change.notify_all()

    @staticmethod
    def _read(descriptor: int) -> bytes:
        try:
            return os.read(descriptor, 1 << 16)
        except OSError:
            return b""

    def _feed(self, data: bytes) -> None:
        """Sorts `data` into the text so far and the marks that end it."""
        while (start := data.find(MARK)) >= 0:
            end = data.find(b"\0", start + len(MARK))
            self._now.add(data[:start])
            length = (len(data) if end < 0 else end) - start - len(MARK)
            if end < 0 and length <= _LONGEST_ID:
                self._carry = data[start:]
                return
            if length > _LONGEST_ID:
                self._now.add(data[start : start + len(MARK)])
                data = data[start + len(MARK) :]
                continue
            identity = data[start + len(MARK) : end].decode("ascii", errors="replace")
            self._finish(identity)
            data = data[end + 1 :]
        # a mark may have been cut in two
        keep = next((n for n in range(len(MARK) - 1, 0, -1) if data.endswith(MARK[:n])), 0)
        self._now.add(data[: len(data) - keep])
        self._carry = data[len(data) - keep :]

    def _finish(self, identity: str) -> None:
        self._done[identity] = self._now.text()
        self._now = Bounded(self._limit)
        while len(self._done) > 8:
            self._done.popitem(last=False)

    def take(self, identity: str, timeout: float = 2.0) -> str:
        """What was printed up to the mark of `identity`, sent before the answer."""
        with self._change:
            arrived = self._change.wait_for(lambda: identity in self._done or self._ended, timeout)
            if arrived and identity in self._done:
                return self._done.pop(identity)
            return self._now.text()

    def rest(self, timeout: float = 0.5) -> str:
        """What was printed since the last mark; waits a little for a dying process's last words."""
        self._thread.join(timeout)
        with self._change:
            return self._now.text()
