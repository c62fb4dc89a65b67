"""The catalogue of faults: complete, and of one piece with specification and definitions."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from conformance import definitions
from conformance.diagnosis.catalogue import Fault, Mistakes, fault_of, faults
from conformance.errors import InternalError
from conformance.spec import COMPONENTS_FOLDER, Level, component_names, component_spec, read_toml
from conformance.suite.component import component

NAMES = component_names()
STRICTER = [Level.MUST, Level.SHOULD, Level.MAY]

AT_RANDOM = "what it answers depends on chance"
IN_PLACE = "an overwritten gradient is a matter of memory, and definitions have none"
BY_STRIDES = "it refuses by strides, which definitions do not see"

WITHOUT_DEFINITION = {
    "glu-dropout-active": AT_RANDOM,
    "swiglu-dropout-active": AT_RANDOM,
    "attention-dropout-active": AT_RANDOM,
    "mha-dropout-active": AT_RANDOM,
    "mha-rope-dropout-active": AT_RANDOM,
    "block-dropout-active": AT_RANDOM,
    "lm-dropout-active": AT_RANDOM,
    "next-token-sampled": AT_RANDOM,
    "silu-backward-overwrites-gradient": IN_PLACE,
    "silu-backward-consumes-saved-tensor": IN_PLACE,
    "softmax-backward-consumes-saved-tensor": IN_PLACE,
    "glu-in-place-breaks-backward": IN_PLACE,
    "swiglu-in-place-breaks-backward": IN_PLACE,
    "lm-backward-consumes-saved-tensors": IN_PLACE,
    "embedding-contiguous-ids-only": BY_STRIDES,
}
"""Faults that no wrong definition expresses although they show in numbers, and why."""


def everything() -> list[Fault]:
    return [fault for name in NAMES for fault in faults(name).values()]


@pytest.mark.parametrize("name", NAMES)
def test_requirements_exist_and_are_no_weaker_than_the_fault(name: str) -> None:
    known = component_spec(name).requirements
    for fault in faults(name).values():
        assert fault.requirements, fault.id
        for requirement in fault.requirements:
            level = known[requirement].level
            assert STRICTER.index(level) <= STRICTER.index(fault.level), fault.id


def test_ids_are_unique_over_all_components() -> None:
    counts = Counter(fault.id for fault in everything())
    assert [identifier for identifier, count in counts.items() if count > 1] == []
    assert len(counts) > 700


@pytest.mark.parametrize("name", NAMES)
def test_every_fault_is_told_in_a_sentence_with_a_hint_and_a_source(name: str) -> None:
    for fault in faults(name).values():
        assert re.fullmatch(r"[A-Z`].*[^.\s]\.", fault.sentence), fault.id
        assert "\n" not in fault.sentence, fault.id
        assert fault.hint.strip() == fault.hint, fault.id
        assert fault.hint, fault.id
        assert fault.source.strip(), fault.id


@pytest.mark.parametrize("name", NAMES)
def test_faults_that_show_in_numbers_have_a_definition(name: str) -> None:
    numbers = ("value", "shape", "gradient", "crash")
    without = {f.id for f in faults(name).values() if f.visible in numbers and not f.pieces}
    assert without == {i for i in WITHOUT_DEFINITION if fault_of(i).component == name}


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_that_is_another_one_shares_its_pieces(name: str) -> None:
    for fault in faults(name).values():
        if fault.same_as:
            other = fault_of(fault.same_as)
            assert other.id != fault.id
            assert not other.same_as, "it is resolved to the end"
            assert other.pieces, fault.id
            assert fault.pieces is other.pieces


@pytest.mark.parametrize("name", NAMES)
def test_pieces_are_pieces_of_the_definitions(name: str) -> None:
    for fault in faults(name).values():
        with definitions.replaced(fault.pieces):  # raises for a name that no piece has
            pass


@pytest.mark.parametrize("name", NAMES)
def test_messages_are_regular_expressions(name: str) -> None:
    for fault in faults(name).values():
        re.compile(fault.message)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_from_an_earlier_call_is_an_argument(name: str) -> None:
    owner = component(name)
    given = {name for case in owner.cases for name in case.arguments(case.dtypes[0])}
    for fault in faults(name).values():
        assert not fault.stale or fault.visible in ("state", "value"), fault.id
        assert set(fault.stale) <= {*given, *owner.parameters}, fault.id


def test_all_keys_of_the_descriptions_are_read() -> None:
    known = set(Fault.__dataclass_fields__) - {"component", "pieces"}
    for name in NAMES:
        described = read_toml(COMPONENTS_FOLDER / name / "faults.toml")
        assert described["component"] == name
        for entry in described["fault"]:
            assert set(entry) <= known, entry["id"]


def test_faults_are_found_by_their_id_in_any_component() -> None:
    for name in NAMES:
        first = next(iter(faults(name).values()))
        assert fault_of(first.id) == first
    with pytest.raises(InternalError, match="there is no fault no-such-fault"):
        fault_of("no-such-fault")


def test_a_fault_cannot_be_registered_twice() -> None:
    mistakes = Mistakes("silu")
    mistakes.fault("one")(lambda x: x)
    assert set(mistakes.pieces["one"]) == {"silu"}
    with pytest.raises(InternalError, match="fault one is registered twice"):
        mistakes.fault("one", "sigmoid")(lambda x: x)
