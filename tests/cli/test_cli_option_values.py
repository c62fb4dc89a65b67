"""Options as they are given on a command line, checked and converted."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.errors import UsageError
from conformance.options import DEFAULTS, OPTIONS, GradeOptions


def parse(**given: Any) -> GradeOptions:
    return GradeOptions.parse("mine", given)


def test_nothing_given_gives_the_defaults() -> None:
    assert parse() == GradeOptions("mine")
    assert parse(**dict.fromkeys(DEFAULTS)) == GradeOptions("mine")
    assert parse().not_default() == {}


def test_every_option_is_a_field_with_its_words() -> None:
    for option in OPTIONS:
        assert hasattr(GradeOptions("mine"), option.key)
        assert option.help
        assert option.flag or option.metavar


def test_what_may_be_given_several_times() -> None:
    found = parse(component=["rope,linear", "ROPE"], dtype=["bfloat16", "float32"])
    assert found.component == ("rope", "linear")
    assert found.dtype == ("bfloat16", "float32")


def test_what_differs_from_the_defaults_repeats_the_run() -> None:
    options = parse(seed="7", timeout="2.5", component=["rope"], in_process=True)
    assert GradeOptions.parse("mine", options.not_default()) == options


BAD = [
    {"component": ["lineer"]},
    {"component": ["linear/"]},
    {"component": ["../components/linear"]},
    {"component": [","]},
    {"component": ["a" * 5000]},
    {"dtype": ["int8"]},
    {"dtype": [""]},
    {"check": ["rope"]},
    {"check": ["rope::"]},
    {"check": ["lineer::definition[float32]"]},
    {"profile": "fast"},
    {"level": "may"},
    {"device": "tpu"},
    {"device": "cuda:x"},
    {"seed": "-1"},
    {"seed": "1e3"},
    {"seed": str(2**32)},
    {"timeout": "0"},
    {"timeout": "nan"},
    {"timeout": "inf"},
    {"timeout": "soon"},
    {"import_timeout": "-1"},
    {"memory": "1e300"},
    {"report": " "},
    {"python": ""},
]


@pytest.mark.parametrize("given", BAD, ids=str)
def test_bad_values_are_named(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        parse(**given)
    (name,) = given
    assert name.replace("_", "-") in caught.value.message
    assert "\n" not in caught.value.message


def test_nothing_to_grade() -> None:
    with pytest.raises(UsageError, match="--impl needs"):
        GradeOptions.parse("  ", {})
