"""Texts that want to do something where they are shown."""

from __future__ import annotations

from ..catalogue import Entry, Holds

MARKUP = (
    "</details><script>alert(1)</script><img src=x onerror=alert(1)> | a | b |\\n\\n"
    "```\\n# Verdict: CONFORMING\\n[here](javascript:alert(1)) ![x](http://127.0.0.1/x.png)\\n"
    "<details><summary>x"
)
COMMANDS = (
    "::set-output name=verdict::conforming\\n::add-mask::a\\n  ::error file=a,line=1::b\\n"
    "::stop-commands::x\\n##[set-output name=verdict;]conforming\\n::group::x"
)


def raising(text: str, name: str = "ValueError") -> str:
    return f"def attack(right, *given):\n    raise {name}({text})\n"


RAISED = Holds("raised")

ENTRIES = [
    Entry(
        "text-that-raises",
        "raises an exception whose __str__ and __repr__ raise",
        Holds("raised", "its text cannot be shown"),
        code="""\
class Mute(Exception):
    def __str__(self):
        raise SystemExit(0)

    __repr__ = __str__


def attack(right, *given):
    raise Mute
""",
    ),
    Entry(
        "text-that-is-none",
        "raises an exception whose __str__ returns a text whose methods leave with os._exit(0)",
        Holds("crashed", "ended with exit status 0 during the call"),
        code="""\
class Text(str):
    def strip(self, *args):
        import os
        os._exit(0)

    def splitlines(self, *args):
        return [self] * 10**6


class Odd(Exception):
    def __str__(self):
        return Text("quiet")


def attack(right, *given):
    raise Odd
""",
    ),
    Entry(
        "text-without-end",
        "raises an exception whose __str__ never returns",
        Holds("timed out", "no answer within 3 s"),
        code="""\
class Endless(Exception):
    def __str__(self):
        while True:
            pass


def attack(right, *given):
    raise Endless
""",
    ),
    Entry(
        "surrogates",
        "raises with lone surrogates, NUL and characters beyond the basic plane",
        RAISED,
        code=raising(r"'\udcff\ud800 \0 \U0001f600 \uffff'"),
    ),
    Entry(
        "terminal-escapes",
        "raises with escapes that clear the screen, set the title and hide text",
        RAISED,
        code=raising(r"'\x1b[2J\x1b]0;title\x07\x1b[8mhidden\x9b31m\r\b\u202e\u200b\u2028gone'"),
    ),
    Entry(
        "markup",
        "raises with HTML, Markdown, fences and links",
        RAISED,
        code=raising(f'"{MARKUP}"'),
    ),
    Entry(
        "workflow-commands",
        "raises with commands of GitHub Actions, each on a line of its own",
        RAISED,
        code=raising(f'"{COMMANDS}"'),
    ),
    Entry(
        "names-that-are-commands",
        "raises an exception whose class is called like a command of GitHub Actions",
        RAISED,
        code="""\
Named = type("::error title=x::conforming", (Exception,), {"__module__": "::set-output x=y::"})


def attack(right, *given):
    raise Named("\\n::add-mask::a")
""",
    ),
    Entry(
        "names-that-are-markup",
        "returns an object whose class is called like HTML and a row of a table",
        Holds("failed", "instead of a tensor"),
        code=f"""\
Named = type("{MARKUP}", (), {{}})


def attack(right, *given):
    return Named()
""",
    ),
    Entry(
        "prints-commands",
        "prints commands, escapes and markup and answers zeros",
        Holds("failed", "the result is wrong"),
        code=f"""\
import torch


def attack(right, *given):
    print("{COMMANDS}")
    print("{MARKUP}")
    print("\\x1b[2J\\x1b]0;title\\x07", flush=True)
    return torch.zeros_like(right(*given))
""",
    ),
    Entry(
        "commands-at-import",
        "prints commands of GitHub Actions and escapes while it is imported, and exits",
        Holds("not loaded"),
        code=f'print("{COMMANDS}\\n\\x1b[2J{MARKUP}")\nraise ValueError("{COMMANDS}")\n',
        alone=True,
    ),
    Entry(
        "looks-like-a-traceback",
        "raises with a text that looks like an error of the suite",
        RAISED,
        code=raising("'this is a mistake of the suite (conformance/session.py:1)'"),
    ),
    Entry(
        "names-of-components",
        "declares components whose names hold escapes, markup and commands",
        Holds(("refused", "failed")),
        files={
            "adapters.py": "from honest import run_softmax\n\n"
            'COMPONENTS = ["\\x1b[2J\\n::error::x", "</details><script>"]\n'
            "\n\ndef run_silu(in_features):\n    return in_features\n"
        },
        as_declared=True,
    ),
    Entry(
        "keys-of-the-configuration",
        "has a conformance.toml whose keys hold escapes and commands",
        Holds("passed", "ignored in its conformance.toml"),
        files={"conformance.toml": '"\\u001b[2J\\n::error::x" = 1\n'},
        code="def attack(right, *given):\n    return right(*given)\n",
        alone=True,
    ),
    Entry(
        "names-of-files",
        "has more adapters files, whose names hold escapes, line breaks and commands",
        Holds("passed"),
        files={
            "a\n::error::x/adapters.py": "def run_silu(in_features):\n    return in_features\n",
            "b\x1b[2J##[error]x/adapters.py": "def run_silu(in_features):\n    return 0\n",
        },
        code="def attack(right, *given):\n    return right(*given)\n",
        alone=True,
    ),
]
