"""JUnit XML."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.course import Rubric, award
from conformance.course.junit import BODY, MESSAGE, render_junit
from conformance.report import Details, ErrorRecord, Results
from conformance.report.model import OUTCOMES

SCHEMA = xmlschema.XMLSchema10(str(Path(__file__).with_name("junit.xsd")))


def parsed(text: str) -> ElementTree.Element:
    SCHEMA.validate(text)
    root = ElementTree.fromstring(text.encode())
    for node in (root, *root):
        cases = node.findall(".//testcase")
        assert int(node.attrib["tests"]) == len(cases)
        assert int(node.attrib["failures"]) == sum(c.find("failure") is not None for c in cases)
        assert int(node.attrib["errors"]) == sum(c.find("error") is not None for c in cases)
    return root


def endings(root: ElementTree.Element) -> dict[str, str]:
    """`component::name` -> failure, error, skipped or passed."""
    return {
        f"{case.attrib['classname']}::{case.attrib['name']}": case[0].tag if len(case) else "passed"
        for case in root.iter("testcase")
    }


def test_one_test_case_per_check(samples: Any) -> None:
    night = samples.night()
    found = endings(parsed(render_junit(night)))
    assert set(found) == {check.id for check in night.checks}
    assert found["rmsnorm::definition[float32]"] == "passed"
    assert found["rmsnorm::eps_inside_root[float32]"] == "failure"
    assert found["rope::definition[float32]"] == "error"
    assert found["rope::strided[float32]"] == "skipped"
    assert found["glu::definition[float32]"] == "failure"
    assert found["rmsnorm::weights_untouched[float32]"] == "skipped"  # SHOULD


def test_every_outcome_at_every_level(samples: Any) -> None:
    told = {
        (outcome, level): endings(
            parsed(
                render_junit(
                    samples.results(
                        [samples.check("rope::a", outcome=outcome, level=level)],
                        selected=("rope",),
                        level="should",
                    )
                )
            )
        )["rope::a"]
        for outcome in OUTCOMES
        for level in ("MUST", "SHOULD", "MAY")
    }
    for (outcome, level), tag in told.items():
        if outcome == "passed":
            assert tag == "passed"
        elif level == "MAY" or outcome == "skipped":
            assert tag == "skipped"
        else:
            failure = outcome in ("failed", "not implemented")
            assert tag == ("failure" if failure else "error"), outcome


def test_a_run_that_proves_nothing_is_an_error(nothing: dict[str, Results]) -> None:
    loading = Results(None, error=ErrorRecord("adapters.py: invalid syntax", 3))
    for case, results in {**nothing, "loading": loading}.items():
        if case == "not selected":  # a verdict on less than the rubric asks for
            continue
        found = endings(parsed(render_junit(results)))
        assert found["conformance::verdict"] == "error", case


def test_points_and_verdict_are_properties(passing: Results, rubric: Rubric) -> None:
    root = parsed(render_junit(passing, grade=award(passing, rubric)))
    found = {p.attrib["name"]: p.attrib["value"] for p in root.iter("property")}
    assert found == {"verdict": "conforming", "exit_code": "0", "points": "25 of 25 points"}


def test_texts_are_bounded(samples: Any) -> None:
    details = Details(inputs="x" * 10**6, printed="y\n" * 10**5, traceback="z" * 10**6)
    checks = [
        samples.check(f"rope::{n}", outcome="raised", message="m" * 10**6, details=details)
        for n in range(3)
    ]
    root = parsed(render_junit(samples.results(checks)))
    for case in root.iter("error"):
        assert len(case.attrib["message"]) <= MESSAGE
        assert len(case.text or "") <= BODY[0] + 100


HOSTILE = "]]><![CDATA[\x00\x1b[31m\x0b\ud800\ufffe\uffff\u202e&<>\"'\r\n\t" + "\U0001f600"


def test_what_xml_cannot_hold_is_written_as_an_escape(samples: Any) -> None:
    details = Details(inputs=HOSTILE, printed=HOSTILE)
    check = samples.check(f"rope::{HOSTILE}", outcome="raised", message=HOSTILE, details=details)
    results = samples.results([check])
    candidate = replace(results.header.candidate, name=HOSTILE)
    root = parsed(
        render_junit(replace(results, header=replace(results.header, candidate=candidate)))
    )
    (error,) = root.iter("error")
    assert "\\ufffe" in error.attrib["message"]
    assert "\x1b" not in (error.text or "")


@settings(max_examples=40, deadline=None)
@given(text=st.text(min_size=1, max_size=30))
def test_any_text_gives_a_valid_file(samples: Any, text: str) -> None:
    check = samples.check("rope::a", component=text, outcome="failed", message=text)
    parsed(render_junit(samples.results([check], selected=(text,))))


def test_the_order_of_checks_does_not_matter(samples: Any) -> None:
    night = samples.night()
    shuffled = replace(night, checks=tuple(reversed(night.checks)))
    assert render_junit(shuffled) == render_junit(night)


def test_an_id_that_comes_twice_is_shown_twice(samples: Any) -> None:
    results = samples.results(
        [samples.check("rope::a"), samples.check("rope::a", outcome="failed")]
    )
    root = parsed(render_junit(replace(results, problems=("check 'rope::a' comes 2 times",))))
    names = Counter(case.attrib["name"] for case in root.iter("testcase"))
    assert names == {"a": 2, "verdict": 1}


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 12345.6789])
def test_times_are_plain_numbers(samples: Any, seconds: float) -> None:
    root = parsed(render_junit(samples.results([samples.check(seconds=seconds)])))
    case = next(root.iter("testcase"))
    assert case.attrib["time"] == f"{seconds:.3f}"
