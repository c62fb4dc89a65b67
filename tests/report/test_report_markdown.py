"""The Markdown report: what it says, that it stays small, and that no text can break out of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from conformance.report import Candidate, Details, Diagnosis, ErrorRecord, Results
from conformance.report import text as safe
from conformance.report.markdown import render_markdown

OUR_HTML = {"<details>", "</details>"}
GITHUB_LIMIT = 1024 * 1024

HOSTILE = [
    "```\n# injected\n</details><script>alert(1)</script>",
    "~~~\n`````` ``` ` ``",
    "<img src=x onerror=alert(1)> <!-- --> <?php ?> <![CDATA[ x ]]>",
    "</summary></details><details open>",
    "| a | b |\n| --- | --- |\n| 1 | 2 |",
    "a\\|b|c\\\\|d\\",
    "![x](http://e.example/x.png) [y](javascript:alert(1)) <http://e.example>",
    "[ref]: http://e.example 'title'\n[ref]",
    "# heading\n\n- item\n\n1. one\n> quote\n---\n===\n***\n    code",
    "**bold** _emphasis_ ~~gone~~ $x$ $$y$$ &lt;b&gt; &#60;i&#62; :tada: @somebody #1",
    "\x1b[31mred\x1b]0;title\x07 \x00 \x08 \u202e\u2066\u200b\ufeff \u2028\u2029 \x85 \r\n# h",
    "\ud800 lone",
    "`",
    "`` ` ``` ",
    " ` ",
    "\\",
    "\\`",
    "* x",
    "+ x",
    "- x",
    "12) x",
    "1. x",
    "=",
    "---",
    "\t# x",
    "{{ 7 * 7 }} {% raw %} {# x #}",
    "www.e.example https://e.example/?a=b&c=d",
    "x" * 5000,
    "`" * 5000,
    "|" * 3000,
    "line\n" * 5000,
]


def parsed(markdown: str) -> list[Token]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)


def skeleton(markdown: str) -> list[str]:
    """Everything about a document except what its texts say."""
    bones = []
    for token in parsed(markdown):
        bones.append(f"{token.type} {token.tag} {token.info}")
        if token.type == "html_block":
            bones.append(token.content)
        bones += [child.type for child in token.children or () if not is_text(child)]
    return bones


def is_text(token: Token) -> bool:
    return token.type in ("text", "text_special", "entity", "softbreak")


def stranger(samples: Any, text: str) -> Results:
    """A run in which every text that is not ours says `text`."""
    names = (f"rmsnorm{text}", f"rope{text}", f"glu{text}", f"silu{text}")
    details = Details(**dict.fromkeys(Details.__dataclass_fields__, text))

    def check(number: int, component: int, outcome: str, **more: Any) -> Any:
        record = samples.check(f"a::{number}{text}", outcome=outcome, message=text, **more)
        requirement = f"R{number % 3}{text}"
        return replace(record, component=names[component], requirement=requirement)

    checks = [
        check(0, 0, "passed", margin=0.5),
        *(check(n, 0, "failed", details=details) for n in range(1, 5)),
        check(5, 0, "failed", level="SHOULD", diagnosis=Diagnosis(text, text), details=details),
        *(check(n, 1, "raised", details=details) for n in range(6, 10)),
        check(10, 1, "skipped"),
        check(11, 2, "not implemented"),
        *(check(n, 3, "crashed", diagnosis=Diagnosis(text, text)) for n in range(12, 14)),
        *(replace(check(n, 3, "failed"), requirement=f"X{n}{text}") for n in range(20, 60)),
    ]
    return samples.results(  # type: ignore[no-any-return]  # the fixture is untyped
        checks,
        candidate=Candidate(text, text, text, text, (text,) * 30),
        command=text,
        suite_version=text,
        fixtures_sha256=text,
        profile=text,
        dtypes=(text,),
        device=text,
        selected=names,
        environment={text: text, f"b{text}": {text: [text]}},
        isolation=(text,) * 30,
        notices=(text,),
        started=text,
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_changes_the_structure(samples: Any, text: str) -> None:
    # the last letter keeps texts that are all white space from being left out
    hostile = render_markdown(stranger(samples, f"{text}x"))
    assert skeleton(hostile) == skeleton(render_markdown(stranger(samples, "x")))


@settings(max_examples=60, deadline=None)
@given(text=st.text(alphabet="`|\\<>&*_[]()!#-+=~$\n\r\t 1.)ax\u202e\x1b", max_size=40))
@example(text="``")
def test_no_drawn_text_changes_the_structure(samples: Any, text: str) -> None:
    hostile = render_markdown(stranger(samples, f"x{text}x"))
    assert skeleton(hostile) == skeleton(render_markdown(stranger(samples, "xx")))


@pytest.mark.parametrize("text", HOSTILE)
def test_no_html_but_our_own(samples: Any, text: str) -> None:
    for results in (
        stranger(samples, text),
        Results(None, error=ErrorRecord(text, 3)),
        Results(samples.header(), problems=(f"line 3: unknown key {text!r}", text)),
    ):
        for token in parsed(render_markdown(results)):
            if token.type == "html_block":
                lines = token.content.strip().splitlines()
                assert all(
                    line in OUR_HTML
                    or (line.startswith("<summary>") and line.endswith("</summary>"))
                    for line in lines
                )
                assert "HOSTILE" not in token.content
            for child in token.children or ():
                assert child.type not in ("html_inline", "link_open", "image")


@pytest.mark.parametrize("text", [text for text in HOSTILE if len(text) < 300])
def test_code_shows_the_text_itself(text: str) -> None:
    span = parsed(safe.code(text))[1].children or []
    assert [token.type for token in span] == ["code_inline"]
    assert span[0].content == safe.one_line(text)
    block = parsed(safe.fence(text))
    assert [token.type for token in block] == ["fence"]
    assert block[0].content.rstrip("\n") == safe.shorten(text, 4000, 60).rstrip("\n")
    table = f"| a |\n| --- |\n| {safe.cell_code(text)} |"
    cell = [token for token in parsed(table) if token.type == "inline"][1].children or []
    assert [token.type for token in cell] == ["code_inline"]
    assert cell[0].content == safe.one_line(text, 120)


@pytest.mark.parametrize("text", [text for text in HOSTILE if len(text) < 300])
def test_prose_is_nothing_but_text(text: str) -> None:
    tokens = parsed(safe.prose(text))
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert all(is_text(child) for child in tokens[1].children or ())
    shown = "".join(child.content for child in tokens[1].children or ())
    assert shown.replace("\u200b", "") == safe.one_line(text)


def test_what_the_template_forgets_to_mark_is_escaped() -> None:
    from conformance.report.blocks import environment

    template = environment().from_string("{{ value }} {{ value ~ '!' }}")
    assert "<b>" not in template.render(value="<b>|`")


def test_key_content(samples: Any) -> None:
    report = render_markdown(samples.night())
    wanted = [
        "# ❌ Non-conforming: `night-owl`",
        "**5 of 9 MUST checks did not pass, in rmsnorm and rope; not implemented: glu.**",
        "**What to do next.** Start with RMSNORM-EPS in rmsnorm, explained below. "
        "Likely mistake: eps is added after the root, not before. This repeats only that check:",
        "pytest --impl=. -k 'rmsnorm and eps_inside_root and float32'",
        "| `rmsnorm` | ❌ non-conforming | 1/3 | 0/1 | 1/1 | 2.61e+06 |",
        "| `rope` | ❌ non-conforming | 1/4 | 0/1 (1 skipped) | - | 0.9 |",
        "| `glu` | ⬜ not implemented | 0/2 | - | - | - |",
        "- `glu`: `run_glu raises NotImplementedError`",
        "#### `RMSNORM-EPS` · MUST · 2 of 2 checks failed",
        "The eps that is given stands inside the root, added to the mean square.",
        "Formula: `y = x / sqrt(mean(x^2) + eps) * g`. Source: Zhang and Sennrich 2019, eq. 4;",
        "**Likely mistake:** eps is added after the root, not before. (`eps-outside-root`)",
        "error      0.313, tolerance 1.2e-07, 2.61e+06 times the tolerance",
        "where      index [0, 0]",
        "expected   0.316227766 in row [0.316228, -0.632456]",
        "got        0.629627 in row [0.629627, -1.25925]",
        "case       tiny magnitudes",
        "why asked  Values of the size of sqrt(eps): only here does the place of eps show.",
        "Further checks of this requirement that failed:",
        "#### Raised an exception · MUST · 3 checks of 3 requirements",
        "It concerns `ROPE-DEFINITION`, `ROPE-NORM_KEPT`, `ROPE-RELATIVE`.",
        "ValueError: not enough values to unpack (expected 4, got 3)",
        "<summary>1 failed check at a level that does not change the verdict (SHOULD, MAY)",
        "- `rope`: 1 check skipped: `no cuda`",
        "- `rmsnorm::all_zero_row[float32]`: `a zero row gives 0`",
        "| `rope::identity_at_zero[float32]` | `ROPE-IDENTITY_AT_ZERO` | 0.9 |",
        "| verdict | `non-conforming, exit code 1` |",
        "- `memory limit 8 GiB`",
        "- `stood in for the missing package wandb`",
        "- **Margin**: the largest error",
        "0 conforming, 1 not conforming, 2 wrong usage",
    ]
    places = [report.find(line) for line in wanted]
    assert [line for line, place in zip(wanted, places, strict=True) if place < 0] == []
    assert places == sorted(places)


def test_should_failures_are_told_openly_when_they_count(samples: Any) -> None:
    bad = samples.check("rope::x[float32]", level="SHOULD", outcome="failed")
    checks = [samples.check(), samples.check("rope::d[float32]"), bad]
    assert "does not change the verdict" in render_markdown(samples.results(checks))
    counted = render_markdown(samples.results(checks, level="should"))
    assert "does not change the verdict" not in counted
    assert "#### `ROPE-X` · SHOULD · 1 of 1 check failed" in counted


def test_equal_failures_in_several_dtypes_are_told_once(samples: Any) -> None:
    checks = [
        samples.check(f"rope::x[{dtype}]", outcome="failed", message="wrong", requirement="ROPE-X")
        for dtype in ("float32", "bfloat16", "float16")
    ]
    report = render_markdown(samples.results(checks, selected=("rope",)))
    assert report.count("#### ") == 1
    assert "The same in `rope::x[float16]`, `rope::x[float32]`." in report


def test_every_verdict_says_what_to_do_next(samples: Any) -> None:
    passing = [samples.check(), samples.check("rope::d[float32]")]
    skipped = [*passing, samples.check("rope::s[float32]", outcome="skipped")]
    absent = [samples.check(), samples.check("rope::d[float32]", outcome="not implemented")]
    whole = samples.results(passing)
    for results, advice in [
        (whole, "Nothing has to change."),
        (samples.results(skipped), "Remove the cause given above. Run it again:"),
        (samples.results(absent), "Implement rope."),
        (samples.results(passing, deselected=1), "run the whole, without --check, -k"),
        (replace(whole, footer=None), "Let the run come to its end. Run it again:"),
        (replace(whole, error=ErrorRecord("x", 3)), "Mend what the message says. Run it again:"),
        (Results(None, error=ErrorRecord("x", 2)), "Mend what the message says."),
        (Results(None, error=ErrorRecord("x", 4)), "report it"),
    ]:
        assert advice in render_markdown(results).replace("\\", "")


def test_many_failures_give_a_report_of_bounded_size(samples: Any) -> None:
    names = [f"component{number}" for number in range(16)]
    long = "💥`|<b>\u202e\n" * 2000
    details = Details(**dict.fromkeys(Details.__dataclass_fields__, long))
    checks = [
        samples.check(
            f"{names[number % 16]}::{number}",
            outcome="failed",
            level="MUST" if number % 5 else "SHOULD",
            message=f"{number} {long}",
            details=details,
        )
        for number in range(3200)
    ]
    report = render_markdown(samples.results(checks, selected=tuple(names)))
    assert len(report.encode()) < GITHUB_LIMIT * 0.6
    assert "more, see report.json" in report


def test_three_hundred_ordinary_failures_stay_readable(samples: Any) -> None:
    wrong = samples.night().checks[1]
    checks = [
        replace(wrong, id=f"rmsnorm::{number}", requirement=f"RMSNORM-{number}")
        for number in range(300)
    ]
    report = render_markdown(samples.results(checks, selected=("rmsnorm",)))
    assert len(report.encode()) < 32 * 1024
    assert report.count("#### ") == 6
    assert "- … and 274 more, see report.json" in report
