"""Putting texts that somebody else wrote into Markdown without letting them do anything there.

A candidate decides what its exceptions say, what it prints and what its folders are called.  So
every text is first cleaned (no terminal escapes, no invisible or reordering characters) and then
takes one of three forms, none of which it can leave: a fence, a code span, or escaped prose.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from itertools import groupby

MAX_LINE = 400
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "$": "&#36;"}
_PUNCTUATION = set("\\`*_[]~|!#")


class Safe(str):
    """Markdown that may go into a document as it is."""

    __slots__ = ()


def clean(text: str) -> str:
    """The text with plain newlines and spaces; what would not be seen is written as an escape."""
    text = _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).expandtabs(4)
    return "".join(ch if ch == "\n" else _visible(ch) for ch in text)


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """The cleaned text on one line, white space collapsed, at most `limit` characters."""
    line = " ".join(clean(text[: limit * 8]).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def shorten(text: str, chars: int, lines: int) -> str:
    """The cleaned text cut to so many characters and lines, with a last line that says so."""
    rows = clean(text[: chars + 1]).strip("\n").split("\n")
    kept = "\n".join(row.rstrip() for row in rows[:lines])[:chars]
    if len(text) > chars or len(rows) > lines:
        kept += "\n… (cut off here)"
    return kept


def last_lines(text: str, chars: int, lines: int) -> str:
    """The end of a text, where a traceback says what happened."""
    rows = clean(text[-chars:]).strip("\n").split("\n")
    cut = len(text) > chars or len(rows) > lines
    return ("… (cut off here)\n" if cut else "") + "\n".join(rows[-lines:])[-chars:]


def wrap(text: str, width: int = 88, indent: int = 0) -> str:
    """Running text broken into lines, all of them indented; a fence does not do that by itself."""
    rows = clean(text[: MAX_LINE * 8]).split("\n")
    lines = [line for row in rows for line in textwrap.wrap(row, width - indent) or [""]]
    return "\n".join(" " * indent + line for line in lines)


def prose(text: str, limit: int = 2 * MAX_LINE) -> Safe:
    """One line of running text in which nothing is markup."""
    line = one_line(text, limit)
    escaped = "".join(_ENTITIES.get(ch, f"\\{ch}" if ch in _PUNCTUATION else ch) for ch in line)
    # no mention of a person, no link, and no list at the start of a line
    escaped = re.sub(r"@(?=\w)", "@&#8203;", escaped).replace("://", ":&#8203;//")
    escaped = re.sub(r"\bwww\.", "www&#46;", escaped, flags=re.IGNORECASE)
    escaped = re.sub(r"^([-+=])", r"\\\1", escaped)
    return Safe(re.sub(r"^(\d+)([.)])(?= |$)", r"\1\\\2", escaped))


def code(text: str, limit: int = MAX_LINE) -> Safe:
    """A code span."""
    line = one_line(text, limit)
    if not line:
        return Safe("(empty)")
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return Safe(f"{ticks}{pad}{line}{pad}{ticks}")


def cell_code(text: str, limit: int = 120) -> Safe:
    """A code span for a cell of a table, where a bar needs an escape even inside code."""
    return Safe(code(text, limit).replace("|", "\\|"))


def fence(text: str, language: str = "text", *, chars: int = 4000, lines: int = 60) -> Safe:
    """A fenced block, longer than any run of backticks in it."""
    body = shorten(text, chars, lines)
    ticks = "`" * max(3, _longest_run(body) + 1)
    return Safe(f"{ticks}{language}\n{body}\n{ticks}")


def facts(rows: list[tuple[str, str]]) -> str:
    """Labelled texts in two columns, for a fence; rows without a text are left out."""
    kept = [(label, text) for label, text in rows if text]
    width = max((len(label) for label, _ in kept), default=0) + 2
    return "\n".join(
        f"{label:<{width}}" + text.replace("\n", "\n" + " " * width) for label, text in kept
    )


def _visible(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN:
        return " " if char == "\xa0" else char
    number = ord(char)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def _longest_run(text: str) -> int:
    return max((sum(1 for _ in run) for char, run in groupby(text) if char == "`"), default=0)
