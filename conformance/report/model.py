"""What one run recorded: the lines of `results.jsonl` as frozen data classes.

A line is one JSON object whose `kind` says which class it is.  `from_json` is strict: a key too
many, a key too few or a value of another type raises RecordError, because a results file that is
not exactly what we write cannot prove anything.  `schema/results.schema.json` says the same for
other programs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from conformance.candidate.messages import Outcome
from conformance.report import shape
from conformance.report.policy import PolicyRecord
from conformance.report.shape import Convert, RecordError, encode

RESULTS_SCHEMA = "transformer-conformance/results/1"
OUTCOMES = tuple(outcome.value for outcome in Outcome)
ERRORS = (
    *(Outcome.RAISED, Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY),
    Outcome.DELEGATED,
)
"""Outcomes in which the candidate gave no answer at all."""

LEVELS = ("MUST", "SHOULD", "MAY")
COUNTED = {"must": ("MUST",), "should": ("MUST", "SHOULD"), "may": ("MUST", "SHOULD")}
"""Level asked for -> levels that decide the verdict.  MAY never does: it is only observed."""


@dataclass(frozen=True)
class Candidate:
    """Who was graded: where it was found and how, and what of it was left alone."""

    name: str = ""
    path: str = ""
    module: str = ""
    how: str = ""
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Any) -> Candidate:
        return cls(**shape.read_fields(value, _CANDIDATE))

    def to_json(self) -> dict[str, Any]:
        return _plain(self)


CERTAINTIES = ("certain", "likely", "one of several", "described")


@dataclass(frozen=True)
class Diagnosis:
    """The likely mistake behind a failure.

    `fault` is its id in the catalogue ("a + b" for two together, empty where none fits and
    `sentence` describes what was seen). `component` is where the mistake is, which may be a part of
    what was graded. `certainty` is one of `CERTAINTIES`, `basis` says what it rests on, `others`
    are the faults that fit as well.
    """

    fault: str
    sentence: str
    hint: str = ""
    component: str = ""
    certainty: str = "likely"
    basis: str = ""
    others: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Any) -> Diagnosis:
        return cls(**shape.read_fields(value, _DIAGNOSIS))

    def to_json(self) -> dict[str, Any]:
        return _plain(self)


@dataclass(frozen=True)
class Details:
    """All that helps to understand one check; every entry may be absent.

    `error` and `tolerance` are numbers or words; `where` is the place of the worst entry, for
    example "index [0, 3, 2]"; `replay` is a command. `counterexample` is the file that holds the
    input and `counterexample_replay` the command that asks it again; `counterexample_note` says why
    there is no file. `hidden`: the input was drawn from a hidden seed, so that all of this is for
    the instructor's eyes; `hidden_message` says in full what `CheckRecord.message` does not.
    """

    sentence: str | None = None
    formula: str | None = None
    source: str | None = None
    case: str | None = None
    note: str | None = None
    dtype: str | None = None
    inputs: str | None = None
    expected: str | None = None
    got: str | None = None
    where: str | None = None
    error: float | str | None = None
    tolerance: float | str | None = None
    replay: str | None = None
    printed: str | None = None
    traceback: str | None = None
    counterexample: str | None = None
    counterexample_replay: str | None = None
    counterexample_note: str | None = None
    hidden: bool | None = None
    hidden_message: str | None = None

    @classmethod
    def from_json(cls, value: Any) -> Details:
        return cls(**shape.read_fields(value, _DETAILS, partial=True))

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in _plain(self).items() if value is not None}


IN_PROCESS = "none:"
"""How the isolation of a candidate that ran in the judge's process begins."""


@dataclass(frozen=True)
class Header:
    """The first line: what is graded, against what, and how.

    `selected` are the components the verdict is about.  `collected` is the number of checks that
    are going to run, `deselected` the number that -k, a path or the like took away from them, so
    that the whole is their sum.  `complete_selection` is false when anything was taken away.
    `requirements` are in the order in which a reader should meet them.  `policy` names the rules
    that hold for this run; then there is a record of what they found.
    """

    kind: ClassVar[str] = "header"

    suite_version: str
    spec_version: str
    fixtures_sha256: str
    candidate: Candidate
    command: str
    seed: int
    profile: str
    level: str
    dtypes: tuple[str, ...]
    device: str
    selected: tuple[str, ...]
    complete_selection: bool
    deselected: int
    collected: int
    environment: Mapping[str, Any]
    isolation: tuple[str, ...]
    notices: tuple[str, ...]
    requirements: tuple[str, ...]
    started: str
    policy: str = ""

    @classmethod
    def from_json(cls, value: Any) -> Header:
        values = shape.read_fields(value, {"schema": shape.one_of((RESULTS_SCHEMA,)), **_HEADER})
        del values["schema"]
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "schema": RESULTS_SCHEMA, **_plain(self)}

    @property
    def in_process(self) -> bool:
        """The candidate was not kept apart from the judge."""
        return any(text.startswith(IN_PROCESS) for text in self.isolation)

    @property
    def counted(self) -> tuple[str, ...]:
        """The levels that decide the verdict."""
        return COUNTED[self.level]


@dataclass(frozen=True)
class CheckRecord:
    """One check and how it ended.

    `margin` is the largest error in units of the tolerance: at most 1 passes; None where the check
    compares no values.
    """

    kind: ClassVar[str] = "check"

    id: str
    component: str
    requirement: str
    level: str
    outcome: str
    message: str = ""
    diagnosis: Diagnosis | None = None
    margin: float | None = None
    seconds: float = 0.0
    details: Details | None = None

    @classmethod
    def from_json(cls, value: Any) -> CheckRecord:
        return cls(**shape.read_fields(value, _CHECK))

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **_plain(self)}

    @property
    def passed(self) -> bool:
        return self.outcome == Outcome.PASSED

    @property
    def skipped(self) -> bool:
        return self.outcome == Outcome.SKIPPED

    @property
    def missed(self) -> bool:
        """It ran and did not pass."""
        return not self.passed and not self.skipped


@dataclass(frozen=True)
class Footer:
    """The last line; without it nobody knows whether the run came to its end."""

    kind: ClassVar[str] = "footer"

    collected: int
    written: int
    counts: Mapping[str, int]
    finished: str
    interrupted: bool

    @classmethod
    def from_json(cls, value: Any) -> Footer:
        return cls(**shape.read_fields(value, _FOOTER))

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **_plain(self)}


@dataclass(frozen=True)
class ErrorRecord:
    """Why there was nothing to grade: the message that the user saw and the exit code."""

    kind: ClassVar[str] = "error"

    message: str
    exit_code: int

    @classmethod
    def from_json(cls, value: Any) -> ErrorRecord:
        return cls(**shape.read_fields(value, {"message": shape.text, "exit_code": shape.integer}))

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **_plain(self)}


Record = Header | CheckRecord | PolicyRecord | Footer | ErrorRecord
RECORDS: Mapping[str, type[Record]] = {
    record.kind: record for record in (Header, CheckRecord, PolicyRecord, Footer, ErrorRecord)
}


@dataclass(frozen=True)
class Results:
    """What a results file holds.

    `problems` says in words why the file is not whole and proves nothing; empty when it is whole.
    """

    header: Header | None
    checks: tuple[CheckRecord, ...] = ()
    footer: Footer | None = None
    error: ErrorRecord | None = None
    policy: PolicyRecord | None = None
    problems: tuple[str, ...] = ()

    def ordered(self) -> tuple[CheckRecord, ...]:
        """The checks by id, and by all they say where an id comes twice."""
        if len({check.id for check in self.checks}) == len(self.checks):
            return tuple(sorted(self.checks, key=lambda check: check.id))
        return tuple(sorted(self.checks, key=lambda c: (c.id, json.dumps(c.to_json()))))


def record_from_json(value: Any) -> Record:
    """The record that one line holds; RecordError when it holds none."""
    data = dict(shape.mapping(value))
    kind = data.pop("kind", None)
    if not isinstance(kind, str) or kind not in RECORDS:
        raise RecordError(f"kind is not one of {', '.join(RECORDS)}")
    try:
        return RECORDS[kind].from_json(data)
    except RecordError as error:
        raise RecordError(f"{kind}: {error}") from error


def _plain(record: Any) -> dict[str, Any]:
    """The fields of a record as JSON values, in the order in which they are declared."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {
        key: value.to_json() if hasattr(value, "to_json") else encode(value)
        for key, value in values.items()
    }


def _counts(value: Any) -> Mapping[str, int]:
    outcome = shape.one_of(OUTCOMES)
    return {outcome(name): shape.count(number) for name, number in shape.mapping(value).items()}


_CANDIDATE: Mapping[str, Convert] = {
    "name": shape.text,
    "path": shape.text,
    "module": shape.text,
    "how": shape.text,
    "ignored": shape.texts,
}
_DIAGNOSIS: Mapping[str, Convert] = {
    "fault": shape.text,
    "sentence": shape.text,
    "hint": shape.text,
    "component": shape.text,
    "certainty": shape.one_of(CERTAINTIES),
    "basis": shape.text,
    "others": shape.texts,
}
_DETAILS: Mapping[str, Convert] = {
    field.name: shape.optional(
        {
            "error": shape.number_or_text,
            "tolerance": shape.number_or_text,
            "hidden": shape.flag,
        }.get(field.name, shape.text)
    )
    for field in fields(Details)
}
_HEADER: Mapping[str, Convert] = {
    "suite_version": shape.text,
    "spec_version": shape.text,
    "fixtures_sha256": shape.text,
    "candidate": Candidate.from_json,
    "command": shape.text,
    "seed": shape.integer,
    "profile": shape.text,
    "level": shape.one_of(tuple(COUNTED)),
    "dtypes": shape.texts,
    "device": shape.text,
    "selected": shape.texts,
    "complete_selection": shape.flag,
    "deselected": shape.count,
    "collected": shape.count,
    "environment": shape.mapping,
    "isolation": shape.texts,
    "notices": shape.texts,
    "requirements": shape.texts,
    "started": shape.text,
    "policy": shape.text,
}
_CHECK: Mapping[str, Convert] = {
    "id": shape.name,
    "component": shape.name,
    "requirement": shape.name,
    "level": shape.one_of(LEVELS),
    "outcome": shape.one_of(OUTCOMES),
    "message": shape.text,
    "diagnosis": shape.optional(Diagnosis.from_json),
    "margin": shape.optional(shape.number),
    "seconds": shape.seconds,
    "details": shape.optional(Details.from_json),
}
_FOOTER: Mapping[str, Convert] = {
    "collected": shape.count,
    "written": shape.count,
    "counts": _counts,
    "finished": shape.text,
    "interrupted": shape.flag,
}
