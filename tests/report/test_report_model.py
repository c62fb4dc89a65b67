"""The records and `results.schema.json` say the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conformance.report
from conformance.candidate.messages import Outcome
from conformance.report.model import RESULTS_SCHEMA, ErrorRecord, record_from_json
from conformance.report.shape import RecordError, encode

SCHEMA = json.loads(
    (Path(conformance.report.__file__).parent / "schema" / "results.schema.json").read_text()
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 10**400)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not x.is_integer())
    | st.sampled_from(["", "x", "inf", "nan", "MUST", "must", "passed", "header", RESULTS_SCHEMA])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner)
)


def accepted(record: Any) -> bool:
    try:
        record_from_json(record)
    except RecordError:
        return False
    return True


def records(samples: Any) -> list[dict[str, Any]]:
    night = samples.night()
    return [
        night.header.to_json(),
        night.footer.to_json(),
        ErrorRecord("no", 3).to_json(),
        *(check.to_json() for check in night.checks),
    ]


def test_schema_is_a_schema_and_accepts_what_we_write(samples: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for record in records(samples):
        VALIDATOR.validate(record)
        assert record_from_json(record).to_json() == record


def test_outcomes_in_the_schema_are_those_of_the_harness() -> None:
    assert SCHEMA["$defs"]["outcome"]["enum"] == [outcome.value for outcome in Outcome]


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_reader_and_schema_agree_on_what_is_wrong(samples: Any, data: st.DataObject) -> None:
    record = json.loads(json.dumps(data.draw(st.sampled_from(records(samples)))))
    nested = [value for value in record.values() if isinstance(value, dict) and value]
    place = data.draw(st.sampled_from([record, *nested]))
    key = data.draw(st.sampled_from([*sorted(place), "surprise"]))
    if data.draw(st.booleans()):
        place.pop(key, None)
    else:
        place[key] = data.draw(values)
    huge = any(isinstance(v, int) and abs(v) > 10**300 for v in place.values())
    if not huge:  # a schema has no largest number, a float has
        assert accepted(record) == VALIDATOR.is_valid(record)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_encode_leaves_nothing_that_json_cannot_write(value: float) -> None:
    text = json.dumps(encode({"deep": [value, {"x": value}], "path": Path("a")}), allow_nan=False)
    assert str(value) in text
