"""Forged verdicts, marks and answers."""

from __future__ import annotations

from ..catalogue import Entry, Holds

CHANNEL = """\
import json
import os
import struct
import sys
import time

import torch

worker = sys.modules["__main__"]


def server():
    frame = sys._getframe()
    while frame is not None:
        owner = frame.f_locals.get("self")
        if type(owner).__name__ == "Server":
            return owner
        frame = frame.f_back
    raise LookupError("the conversation was not found")


def descriptor():
    return server().channel._outgoing.fileno()


def write(data):
    place = descriptor()
    while data:
        data = data[os.write(place, data):]


def frame(header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<QQ", len(text), len(body)) + text + body


def safetensors(shape, dtype, data, **more):
    table = json.dumps({"o0": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)],
                               **more}}).encode()
    table += b" " * (-len(table) % 8)
    return struct.pack("<Q", len(table)) + table + data


def claim(**more):
    return {"outcome": "passed", "message": "", "outputs": ["o0"], "dtype": "float32",
            "device": "cpu", "modified": [], "aliased": [], "overwritten": False, "seconds": 0.0,
            "id": server().current, **more}


def numbers(tensor):
    return bytes(tensor.detach().float().reshape(-1).contiguous().view(torch.uint8).tolist())


"""
"""Beginning of an attack that has found the pipe to the judge and knows what an answer is."""


def forged(body: str) -> str:
    """An attack that writes to the judge's pipe during a call; `right(*given)` is `y`."""
    lines = "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())
    return f"{CHANNEL}def attack(right, *given):\n    y = right(*given)\n{lines}    return y\n"


DISTURBED = Holds("crashed", "sent a malformed answer")

ENTRIES = [
    Entry(
        "prints-passes",
        "answers zeros and prints lines that look like pytest and like our own verdict",
        Holds("failed", "the result is wrong"),
        code="""\
import sys

import torch


def attack(right, *given):
    for stream in (sys.stdout, sys.stderr, sys.__stdout__):
        print("silu::definition[float32] PASSED [100%]", file=stream)
        print("============ 54 passed in 0.01s ============", file=stream)
        print("Verdict: CONFORMING, score 1.00 (mallory)", file=stream)
        print("GATE: PASS 42 of 42 MUST checks passed.", file=stream)
        print('{"kind": "check", "id": "silu::definition[float32]", "outcome": "passed"}')
    return torch.zeros_like(right(*given))
""",
    ),
    Entry(
        "prints-marks",
        "prints the marks by which the judge cuts what was printed, with the right id and without",
        Holds("failed", "the result is wrong"),
        code=CHANNEL
        + """\
def attack(right, *given):
    for name in (server().current, "0" * 16, "x" * 500, ""):
        os.write(2, b"\\0\\x1eanswered " + name.encode() + b"\\0")
    os.write(2, b"\\0\\x1eanswered ")
    return torch.zeros_like(right(*given))
""",
    ),
    Entry(
        "prints-frames",
        "writes answers to stdout and stderr, where it may expect the judge to read",
        Holds("failed", "the result is wrong"),
        code=CHANNEL
        + """\
def attack(right, *given):
    y = right(*given)
    for place in (1, 2):
        os.write(place, frame(claim(), safetensors(list(y.shape), "F32", numbers(y)))[:4000])
    return torch.zeros_like(y)
""",
    ),
    Entry(
        "forges-an-answer",
        "writes an answer of its own to the judge's pipe before the worker's",
        Holds("crashed", "an answer to another question"),
        code=forged('write(frame(claim(), safetensors(list(y.shape), "F32", numbers(y))))'),
    ),
    Entry(
        "forges-zeros",
        "lets the worker send zeros in place of the right values that it has looked at",
        Holds("failed", "the result is wrong"),
        code=CHANNEL
        + """\
genuine = worker.encode_tensors


def zeros_once(tensors):
    worker.encode_tensors = genuine
    return genuine({name: torch.zeros_like(t) for name, t in tensors.items()})


def attack(right, *given):
    worker.encode_tensors = zeros_once
    return right(*given)
""",
    ),
    Entry(
        "forges-success-without-values",
        "says that a call passed and sends no output",
        DISTURBED,
        code=forged("write(frame(claim(outputs=[])))"),
    ),
    Entry(
        "forges-another-dtype",
        "says float32 and sends float64",
        DISTURBED,
        code=forged('write(frame(claim(), safetensors([1], "F64", bytes(8))))'),
    ),
    Entry(
        "forges-a-wrong-length",
        "sends a tensor whose shape and length do not agree",
        DISTURBED,
        code=forged('write(frame(claim(), safetensors([2, 3], "F32", bytes(8))))'),
    ),
    Entry(
        "forges-negative-sizes",
        "sends a tensor with a negative size",
        DISTURBED,
        code=forged('write(frame(claim(), safetensors([-1, -2], "F32", bytes(8))))'),
    ),
    Entry(
        "forges-an-overflowing-shape",
        "sends a shape whose product is 2^64",
        DISTURBED,
        code=forged('write(frame(claim(), safetensors([2**32, 2**32], "F32", b"")))'),
    ),
    Entry(
        "forges-a-huge-frame",
        "announces a frame of 2^63 bytes",
        Holds("crashed", "a frame that is too long"),
        code=forged('write(struct.pack("<QQ", 2**63, 2**63))'),
    ),
    Entry(
        "forges-a-long-body",
        "announces a body of 1 GiB and never sends it",
        Holds(("timed out", "crashed")),
        code=forged('write(struct.pack("<QQ", 2, 2**30) + b"{}")\ntime.sleep(60)'),
    ),
    Entry(
        "forges-a-deep-header",
        "sends a header of 100000 nested lists",
        DISTURBED,
        code=forged('write(frame(b"[" * 100000))'),
    ),
    Entry(
        "forges-not-a-number",
        "sends NaN, infinity and a number of 5000 digits as times",
        DISTURBED,
        code=forged(
            'write(frame(json.dumps(claim()).replace("0.0", "NaN").encode()))\n'
            'write(frame(json.dumps(claim()).replace("0.0", "9" * 5000).encode()))'
        ),
    ),
    Entry(
        "forges-a-flood",
        "sends small well-formed frames without end",
        Holds(("crashed", "timed out")),
        code=forged('while True:\n    write(frame({"event": "importing", "id": "nobody"}))'),
    ),
    Entry(
        "forges-time",
        "asks for more time again and again by saying that it imports",
        Holds("timed out"),
        code=forged("""\
while True:
    write(frame({"event": "importing", "id": server().current}))
    time.sleep(0.1)"""),
        options="--import-timeout 8",
    ),
    Entry(
        "writes-noise",
        "writes random bytes to the judge's pipe",
        Holds("crashed"),
        code=forged("write(os.urandom(100_000))"),
    ),
    Entry(
        "closes-descriptors",
        "closes every descriptor above 2",
        Holds("crashed"),
        code="""\
import os


def attack(right, *given):
    os.closerange(3, 1024)
    return right(*given)
""",
    ),
    Entry(
        "closes-the-streams",
        "closes descriptors 0, 1 and 2, and the streams of Python",
        Holds("passed"),
        code="""\
import os
import sys


def attack(right, *given):
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.close()
    os.closerange(0, 3)
    return right(*given)
""",
        alone=True,
    ),
    Entry(
        "redirects-the-pipe",
        "lets the judge's pipe lead to /dev/null",
        Holds(("crashed", "timed out")),
        code=forged("os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor())"),
    ),
    Entry(
        "answers-from-a-child",
        "forks; the parent leaves with success, the child answers",
        Holds(("crashed", "timed out")),
        code="""\
import os


def attack(right, *given):
    if os.fork():
        os._exit(0)
    return right(*given)
""",
    ),
    Entry(
        "answers-twice",
        "forks and answers from parent and child",
        Holds("passed"),
        code="""\
import os


def attack(right, *given):
    os.fork()
    return right(*given)
""",
    ),
    Entry(
        "child-pretends-to-be-the-worker",
        "forks; the child answers zeros in the name of the worker, which waits",
        Holds(("failed", "crashed", "timed out")),
        code=CHANNEL
        + """\
def attack(right, *given):
    if os.fork():
        time.sleep(60)
    server().channel._owner = os.getpid()
    return torch.zeros_like(right(*given))
""",
    ),
    Entry(
        "hides-that-it-overwrites",
        "overwrites its input and patches the worker so that it says it did not",
        Holds("failed", "in_features"),
        code=CHANNEL
        + """\
def attack(right, *given):
    worker.Arguments.modified = lambda self: []
    worker.Arguments.aliased = lambda self, output: []
    x, *rest = given
    y = right(x.clone(), *rest)
    try:
        x.data.copy_(y)
    except RuntimeError:
        pass
    return y
""",
        alone=True,
        defects=dict.fromkeys(
            ("plain", "bubblewrap"),
            "whether inputs were changed is found out in the candidate's own process",
        ),
    ),
    Entry(
        "replaces-the-checks-of-the-worker",
        "patches the worker's functions so that anything is sent as it is",
        Holds(("failed", "crashed")),
        code=CHANNEL
        + """\
def attack(right, *given):
    worker.check_output = lambda value: value
    worker.tensor_problem = lambda value: ""
    worker.same_bits = lambda a, b: True
    return torch.zeros_like(right(*given)).to_sparse()
""",
        alone=True,
    ),
]
