"""What a candidate prints is cut by request and bounded."""

from __future__ import annotations

import itertools
import os

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.candidate.capture import Bounded, Capture
from conformance.candidate.worker import MARK


def captured(chunks: list[bytes], identities: list[str], limit: int = 1000) -> list[str]:
    """Texts by request, and what is left, for a stream written in these chunks."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as stream:
        capture = Capture(stream, limit)
        for chunk in chunks:
            os.write(writing, chunk)
        os.close(writing)
        texts = [capture.take(identity) for identity in identities]
        return [*texts, capture.rest()]


def test_text_belongs_to_its_request() -> None:
    data = b"one" + MARK + b"a\0" + b"two" + MARK + b"b\0" + b"rest"
    assert captured([data], ["a", "b"]) == ["one", "two", "rest"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 60), max_size=8))
def test_chunks_do_not_matter(cuts: list[int]) -> None:
    data = b"on\0e" + MARK + b"a\0" + b"\0\x1e" + MARK + b"b\0" + b"rest"
    edges = sorted({0, len(data), *(c for c in cuts if c < len(data))})
    chunks = [data[i:j] for i, j in itertools.pairwise(edges)]
    assert captured(chunks, ["a", "b"]) == ["on\N{REPLACEMENT CHARACTER}e", "\ufffd\ufffd", "rest"]


def test_a_forged_mark_without_end_is_text() -> None:
    data = MARK + b"x" * 200 + MARK + b"a\0"
    assert captured([data], ["a"])[0].endswith("x" * 200)


def test_a_request_that_never_comes() -> None:
    assert captured([b"text"], ["a"]) == ["text", "text"]


def test_long_text_keeps_its_beginning_and_its_end() -> None:
    text = Bounded(100)
    for _ in range(1000):
        text.add(b"0123456789")
    assert text.text().startswith("0123456789" * 5)
    assert text.text().endswith("0123456789" * 5)
    assert "[9900 bytes left out]" in text.text()


def test_short_text_is_whole() -> None:
    text = Bounded(100)
    for chunk in (b"a" * 49, b"b" * 2, b"c" * 40):
        text.add(chunk)
    assert text.text() == "a" * 49 + "bb" + "c" * 40
