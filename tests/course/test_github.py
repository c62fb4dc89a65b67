"""Annotations and job summary of GitHub Actions."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest

from conformance.course import Rubric, award
from conformance.course.audience import INSTRUCTOR, STUDENT
from conformance.course.github import (
    MOST_ANNOTATIONS,
    Folders,
    annotation_lines,
    command,
    job_summary,
)
from conformance.report import Details, Results, judge

COMMAND = re.compile(r"^::(error|notice) ([a-z]+=[^:,\s][^:,]*(,[a-z]+=[^:,]+)*)::(.*)$")
HERE = Folders(PurePosixPath("/w/repo"), PurePosixPath("/w/repo"))


def lines(
    results: Results, folders: Folders | None = HERE, audience: str = INSTRUCTOR
) -> list[str]:
    """The annotations, each of which is one command on one line."""
    found = annotation_lines(results, judge(results), None, audience=audience, folders=folders)
    for line in found:
        assert COMMAND.match(line), line
        assert line.isprintable()
    return found


def located(results: Results, path: str) -> Results:
    assert results.header is not None
    candidate = replace(results.header.candidate, path=path)
    return replace(results, header=replace(results.header, candidate=candidate))


def test_the_verdict_first_then_the_failures_that_decide(samples: Any) -> None:
    found = lines(located(samples.night(), "tests/adapters.py"))
    assert found[0].startswith("::error title=conformance%3A non-conforming::5 of 9 MUST checks")
    assert len(found) == 3
    assert found[1].startswith(
        "::error file=tests/adapters.py,title=rmsnorm%3A RMSNORM-EPS (MUST)::failed: the result"
    )
    assert "%0ALikely mistake: eps is added after the root, not before." in found[1]
    assert "raised: ValueError: not enough values to unpack" in found[2]
    assert "weights dictionary" not in "".join(found)  # a SHOULD decides nothing


def test_success_is_a_notice(passing: Results, rubric: Rubric) -> None:
    grade = award(passing, rubric)
    (line,) = annotation_lines(passing, judge(passing), grade, audience=STUDENT)
    assert line.startswith("::notice title=conformance%3A conforming::")
    assert "25 of 25 points." in line


def test_no_verdict_is_an_error(nothing: dict[str, Results], rubric: Rubric) -> None:
    for case, results in nothing.items():
        grade = award(results, rubric)
        (line, *_) = annotation_lines(results, judge(results), grade, audience=STUDENT)
        assert "Infrastructure failure" in line
        assert line.startswith("::error ") or case == "not selected"


def test_so_many_and_no_more(samples: Any) -> None:
    checks = [samples.check(f"rope::c{n}", outcome="failed") for n in range(40)]
    found = lines(samples.results(checks))
    assert len(found) == MOST_ANNOTATIONS
    assert "And 31 more failed checks, see the summary." in found[0]


@pytest.mark.parametrize(
    "text", ["a\n::error::b", "\r::notice title=x::y", "%0A::error::", "a,b:c"]
)
def test_nothing_that_others_say_becomes_a_command(samples: Any, text: str) -> None:
    check = samples.check(f"rope::{text}", outcome="failed", requirement=text, message=text)
    results = located(samples.results([check]), f"x{text}.py")
    for line in lines(results):
        assert not re.search(r"[\r\n]", line)
    assert command("error", "100%\nb", title="a: b, c").endswith("title=a%3A b%2C c::100%25%0Ab")


def raised(samples: Any, *frames: str) -> Results:
    traceback = "\n".join(f'  File "{frame}", line {n + 7}, in f' for n, frame in enumerate(frames))
    details = Details(traceback=f"{traceback}\nValueError: x")
    return samples.results([samples.check("rope::a", outcome="raised", details=details)])


def test_where_it_was_raised(samples: Any) -> None:
    results = located(
        raised(samples, "tests/adapters.py", "model/rope.py"), "sub/tests/adapters.py"
    )
    assert "::error file=sub/model/rope.py,line=8,title=" in lines(results)[1]
    inner = Folders(PurePosixPath("/w/repo"), PurePosixPath("/w/repo/sub"))
    assert "::error file=model/rope.py,line=8,title=" in lines(results, inner)[1]
    outer = Folders(PurePosixPath("/w/repo/deep"), PurePosixPath("/w/repo"))
    assert "::error file=deep/sub/model/rope.py,line=8," in lines(results, outer)[1]
    absolute = located(results, "/w/repo/x/tests/adapters.py")
    assert "::error file=x/model/rope.py,line=8," in lines(absolute)[1]


def test_no_place_outside_the_repository(samples: Any) -> None:
    for path in ("/elsewhere/tests/adapters.py", "../tests/adapters.py", "folder"):
        results = located(raised(samples, "tests/adapters.py"), path)
        assert "file=" not in lines(results)[1], path
    results = located(raised(samples, "../../etc/passwd.py"), "tests/adapters.py")
    assert "::error file=tests/adapters.py,title=" in lines(results)[1]
    assert "file=" not in lines(results, folders=None)[1]


def test_the_summary_is_the_report_with_points(samples: Any, rubric: Rubric) -> None:
    night = samples.night()
    grade = award(night, rubric)
    text = job_summary(night, None, grade, audience=STUDENT)
    assert text.startswith("# ❌ Non-conforming: `night-owl`")
    assert "## Points\n\n**0 of 25 points.**" in text
    assert "| `rmsnorm` | 0 | 10 | MUST 0 of 10 (1 of 2 requirements); all-or-nothing |" in text


def test_points_and_verdict_stay_where_there_is_little_room(samples: Any, rubric: Rubric) -> None:
    night = samples.night()
    text = job_summary(night, None, award(night, rubric), audience=STUDENT, room=2000)
    assert len(text.encode()) < 2000
    assert "Non-conforming" in text
    assert "**0 of 25 points.**" in text
    assert "`report.md`" in text
