"""Malformed frames in large numbers: nothing but the declared error may come of them.

    python tests/hostile/fuzz.py --count 1000000 --seed 0

Valid answers of every kind are spoiled byte by byte, in the lengths of their parts, in the values
of their JSON and in the table of their tensors, then read as the judge reads them. The address
space is bounded, so that a frame which makes the reader take much memory shows as a MemoryError; a
frame that takes more than a second counts as a hang.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import random
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformance.candidate import frames, worker
from conformance.candidate.frames import MalformedFrame
from conformance.candidate.messages import Call, Description, ModuleCall, Observe, Reply
from conformance.numerics import tensors

SLOW = 1.0
"""Seconds that no frame may take."""
ROOM = 1 << 30
"""Bytes of address space that reading may add."""

X = np.zeros((2, 3), dtype=np.float32)
ONE = Call("run_it", {"x": X, "weights": {"w": X}}, wrt=("x",), cotangent=X, repeat=2)
MODULE = ModuleCall("It", {"d": 3}, inputs=(X,), cotangent=X, return_state=True, steps=1)
OBSERVE = Observe(ONE)


def _body(*names: str) -> bytes:
    return worker.pack([(name, "F32", (2, 3), X.tobytes()) for name in names])


ANSWER = {
    "id": "0123456789abcdef",
    "outcome": "passed",
    "message": "",
    "traceback": "",
    "outputs": ["o0", "o1"],
    "dtype": "float32",
    "device": "cpu",
    "modified": ["x"],
    "aliased": [],
    "overwritten": False,
    "seconds": 0.25,
    "gradients": {"x": "g0"},
    "second_gradients": {"x": None},
}
ARGUMENT = {"name": "d", "required": True, "positional": True, "keyword": True}
FACTS = {"name": "w", "shape": [2, 3], "dtype": "float32"}
OF_A_MODULE = {
    **ANSWER,
    "outputs": ["o0"],
    "gradients": {"input": "g0", "w": "g0"},
    "second_gradients": {},
    "module": {
        "parameters": [{**FACTS, "device": "cpu", "requires_grad": True}],
        "buffers": [{**FACTS, "persistent": False}],
        "state": [FACTS],
        "losses": [1.0, 0.5],
        "constructor": ["d"],
        "signature": [ARGUMENT],
        "forward": [ARGUMENT],
    },
    "state": {"w": "s0"},
}
LOADED = {
    "outcome": "passed",
    "functions": {"run_it": ["x", "**"]},
    "classes": {"It": "adapters:It"},
    **dict.fromkeys(("python", "torch", "platform", "device", "device_name"), "text"),
    "threads": 1,
    "isolation": ["GPU hidden"],
    "notices": [],
}
OBSERVED = {
    "outcome": "passed",
    "message": "",
    "uses": [["adapters.py", 3, ["torch.softmax"]]],
    "files": ["adapters.py"],
    "whole": True,
}

Read = Callable[[dict[str, Any], bytes], Any]


@dataclass(frozen=True)
class Kind:
    """One kind of answer: a valid one, and how the judge reads it."""

    header: dict[str, Any]
    body: bytes
    read: Read
    gives: type


KINDS = (
    Kind(ANSWER, _body("o0", "o1", "g0"), lambda h, b: frames.decode_reply(h, b, ONE), Reply),
    Kind(
        OF_A_MODULE, _body("o0", "g0", "s0"), lambda h, b: frames.decode_reply(h, b, MODULE), Reply
    ),
    Kind(OBSERVED, b"", lambda h, b: frames.decode_reply(h, b, OBSERVE), Reply),
    Kind(LOADED, b"", lambda h, b: frames.decode_description(h), Description),
)

#: values that have hurt readers of JSON
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**300, 0.5, -0.0, 1e308),
    *(float("nan"), float("inf"), "", "o0", "\x00", "\x1b[2J", "\ud800", "a" * 70_000, "passed"),
    *([], [[]], [None], ["o0"] * 1000, {}, {"": ""}, {"x": "o0"}, [2, 3], [-1], [2**62, 4]),
)


class Spoiler:
    """Makes malformed frames of valid ones; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def frames(self) -> Iterator[tuple[Kind, bytes]]:
        """Without end."""
        ways = (self._bytes, self._lengths, self._value, self._table, self._text)
        while True:
            kind = self._draw.choice(KINDS)
            yield kind, self._draw.choice(ways)(kind)

    def _bytes(self, kind: Kind) -> bytes:
        """Bytes changed, put in, taken out, repeated, cut off."""
        draw, data = self._draw, bytearray(frames.join(kind.header, kind.body))
        for _ in range(draw.choice((1, 1, 2, 8))):
            place = draw.randrange(len(data) + 1)
            way = draw.randrange(5)
            if way == 0 and place < len(data):
                data[place] = draw.randrange(256)
            elif way == 1:
                data[place:place] = draw.randbytes(draw.randrange(1, 20))
            elif way == 2:
                del data[place : place + draw.randrange(1, 20)]
            elif way == 3:
                data[place:place] = data[place : place + 40]
            else:
                del data[place:]
            data = data or bytearray(b"\0")
        return bytes(data)

    def _lengths(self, kind: Kind) -> bytes:
        """Lengths that lie, in the frame or in the file of tensors."""
        draw = self._draw
        text, body = json.dumps(kind.header).encode(), bytearray(kind.body)
        sizes = [len(text), len(body)]
        lies = (0, 1, 7, 8, 2**16, 2**24, 2**26, 2**30, 2**31, 2**32, 2**63, 2**64 - 1)
        if body and draw.random() < 0.5:
            body[:8] = struct.pack("<Q", draw.choice(lies))
        else:
            near = [max(0, size + draw.randrange(-9, 10)) for size in sizes]
            sizes[draw.randrange(2)] = draw.choice((*near, *lies))
        return worker.PREFIX.pack(*sizes) + text + bytes(body)

    def _value(self, kind: Kind) -> bytes:
        """One value of the header is another, or is missing, or there is one more."""
        draw, header = self._draw, json.loads(json.dumps(kind.header))
        for _ in range(draw.choice((1, 1, 1, 3))):
            self._spoil(header)
        return frames.join(header, kind.body)

    def _spoil(self, holder: Any) -> None:
        draw = self._draw
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            key = draw.choice(keys) if keys else None
            inner = holder[key] if keys else None
            if isinstance(inner, dict | list) and inner and draw.random() < 0.6:
                holder = inner
                continue
            break
        odd = copy.deepcopy(draw.choice(ODD))
        if key is None or draw.random() < 0.1:
            if isinstance(holder, dict):
                holder[draw.choice(("x", "module", "state", "event", "\n"))] = odd
            else:
                holder.append(odd)
        elif draw.random() < 0.15:
            del holder[key]
        else:
            holder[key] = odd

    def _table(self, kind: Kind) -> bytes:
        """The table of the tensors holds something else."""
        if not kind.body:
            return self._value(kind)
        start = 8 + struct.unpack_from("<Q", kind.body)[0]
        table = json.loads(kind.body[8:start])
        self._spoil(table)
        head = json.dumps(table).encode()
        body = struct.pack("<Q", len(head)) + head + kind.body[start:]
        return frames.join(kind.header, body)

    def _text(self, kind: Kind) -> bytes:
        """Headers that are JSON of an unusual kind, or none."""
        draw = self._draw
        text = draw.choice(
            (
                b"[" * draw.choice((10, 2000, 200_000)),
                b'{"a":' * draw.choice((10, 2000, 100_000)),
                b'{"seconds": ' + b"9" * draw.choice((30, 400, 5000)) + b"}",
                b'{"outcome": "passed", "outcome": "failed"}',
                b'{"seconds": NaN, "id": Infinity}',
                b'"' + b"\\ud800" * 50 + b'"',
                b"\xff\xfe{\0}\0",
                b"\0" * 100,
                b"",
            )
        )
        return worker.PREFIX.pack(len(text), len(kind.body)) + text + kind.body


@dataclass
class Tally:
    """What came of the frames."""

    ends: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    longest: float = 0.0
    seconds: float = 0.0

    @property
    def count(self) -> int:
        return self.ends.total()

    @property
    def words(self) -> str:
        ends = ", ".join(f"{count} {name}" for name, count in sorted(self.ends.items()))
        return (
            f"{self.count} frames in {self.seconds:.0f} s "
            f"({self.count / max(self.seconds, 1e-9):.0f} a second, the slowest "
            f"{1000 * self.longest:.0f} ms): {ends}; {len(self.problems)} problems"
        )


def fuzz(count: int, seed: int) -> Tally:
    """Read so many malformed frames."""
    tally = Tally()
    began = time.monotonic()
    for (kind, data), _ in zip(Spoiler(seed).frames(), range(count), strict=False):
        start = time.perf_counter()
        try:
            end = read(kind, data)
        except Exception as error:
            end = "undeclared"
            tally.problems.append(f"{type(error).__name__}: {error!s:.200} from {data[:300]!r}")
        spent = time.perf_counter() - start
        tally.longest = max(tally.longest, spent)
        if spent > SLOW:
            tally.problems.append(f"{spent:.1f} s for {data[:300]!r}")
        tally.ends[end] += 1
    tally.seconds = time.monotonic() - began
    return tally


def read(kind: Kind, data: bytes) -> str:
    """Read a stream as the judge does, to its end; how that went."""
    stream = io.BytesIO(data)
    try:
        while (frame := frames.read_frame(stream)) is not None:
            header, body = frame
            _agree(body)
            made = kind.read(header, body)
            if not isinstance(made, kind.gives):
                raise TypeError(f"a {type(made).__name__} was made")
            return "accepted"
    except MalformedFrame:
        return "refused"
    return "cut off"


def _agree(body: bytes) -> None:
    """The two readers of tensors hold the same for malformed."""
    try:
        frames.decode_tensors(body)
    except MalformedFrame:
        try:
            tensors.decode(body)
        except ValueError:
            return
        raise AssertionError("tensors.decode accepts what frames.decode_tensors refuses") from None
    if body:
        tensors.decode(body)


def bound_memory() -> None:
    """Let a reader that takes much memory fail."""
    try:
        import resource
    except ImportError:
        return
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    bound_memory()
    tally = fuzz(options.count, options.seed)
    print(tally.words)
    print(*tally.problems[:20], sep="\n")
    return 1 if tally.problems else 0


if __name__ == "__main__":
    sys.exit(main())
