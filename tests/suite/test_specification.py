"""The specification, the checks and the cases belong together."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from conformance.adapters import COURSE_FUNCTIONS, OPTIONAL_FUNCTIONS
from conformance.explain import explain_text
from conformance.numerics.dtypes import is_float
from conformance.spec import COMPONENTS_FOLDER, all_requirements, component_names, component_spec
from conformance.suite.check import checks
from conformance.suite.component import component

NAMES = component_names()


def test_every_component_of_the_contract_is_specified() -> None:
    functions = {**COURSE_FUNCTIONS, **OPTIONAL_FUNCTIONS}
    assert {name: component_spec(name).function for name in NAMES} == functions


@pytest.mark.parametrize("name", NAMES)
def test_every_requirement_has_a_check(name: str) -> None:
    checked = {check.requirement.id for check in checks(name)}
    assert set(component_spec(name).requirements) == checked


@pytest.mark.parametrize("name", NAMES)
def test_every_check_names_a_requirement_and_its_id_is_unique(name: str) -> None:
    found = list(checks(name))  # raises when a requirement is unknown
    assert found
    assert len({check.id for check in found}) == len(found)


@pytest.mark.parametrize("name", NAMES)
def test_every_test_function_of_a_component_is_a_check(name: str) -> None:
    tree = ast.parse((COMPONENTS_FOLDER / name / f"test_{name}.py").read_text("utf-8"))
    written = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    assert written == {f"test_{check.name}" for check in checks(name)}


def test_requirements_are_complete_and_unique() -> None:
    found = all_requirements()
    assert sum(len(component_spec(name).requirements) for name in NAMES) == len(found)
    for requirement in found.values():
        assert re.fullmatch(r"[A-Z0-9]+(-[A-Z0-9]+)+", requirement.id)
        assert requirement.sentence.endswith(".")
        assert requirement.source.strip()


@pytest.mark.parametrize("name", NAMES)
def test_cases_belong_to_requirements_and_are_explained(name: str) -> None:
    owner = component(name)
    for case in owner.cases:
        assert case.requirement in owner.spec.requirements
        assert case.why.strip()
        assert set(case.flags) <= set(owner.spec.flags), case.name
        assert case.flags or not case.golden, case.name


@pytest.mark.parametrize("name", NAMES)
def test_cases_are_the_same_every_time_and_differ_by_seed(name: str) -> None:
    for case in component(name).cases:
        first, again = case.arguments(case.dtypes[0]), case.arguments(case.dtypes[0])
        assert _bytes(first) == _bytes(again), case.name


def test_some_draw_differs_between_seeds_in_every_component() -> None:
    for name in NAMES:
        cases = component(name).cases
        assert any(
            _bytes(c.arguments(c.dtypes[0])) != _bytes(c.arguments(c.dtypes[0], seed=1))
            for c in cases
        ), name


def _bytes(arguments: object) -> bytes:
    if isinstance(arguments, dict):
        return b"".join(key.encode() + _bytes(value) for key, value in sorted(arguments.items()))
    if hasattr(arguments, "tobytes"):
        return bytes(arguments.tobytes())
    return repr(arguments).encode()


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_asked_for_float_arguments_only(name: str) -> None:
    for case in component(name).cases:
        arguments = case.arguments(case.dtypes[0])
        for wanted in case.wrt:
            holder, _, key = wanted.partition(".")
            value = arguments[holder][key] if key else arguments[holder]
            assert is_float(value), f"{case.name}: {wanted}"


def test_no_tolerance_is_written_by_hand() -> None:
    """Tolerances come from `numerics.ensemble` alone."""
    package = COMPONENTS_FOLDER.parent
    found = [
        f"{path.relative_to(package)}: {node.arg if isinstance(node, ast.keyword) else node.attr}"
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.keyword) and node.arg in ("atol", "rtol", "abs_tol", "rel_tol"))
        or (isinstance(node, ast.Attribute) and node.attr in ("allclose", "isclose", "approx"))
    ]
    assert found == []


def test_the_judge_does_not_import_torch() -> None:
    """Only the worker, the in-process caller, and code that is graded may."""
    package = COMPONENTS_FOLDER.parent
    allowed = {
        "candidate/worker.py",
        "candidate/inprocess.py",
        "bench/fused.py",  # loaded in the process that is measured, beside the candidate
    }
    found = []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name in allowed or name.startswith("known/"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import) and any(a.name.startswith("torch") for a in node.names):
                found.append(name)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
                found.append(name)
    assert [name for name in found if name != "adapters.py"] == []


@pytest.mark.parametrize("name", [*NAMES, None])
def test_explain_lists_requirements(name: str | None) -> None:
    text = explain_text(name)
    wanted = component_spec(name).requirements if name else all_requirements()
    assert all(requirement in text for requirement in wanted)


def test_explain_prints_one_requirement_with_its_checks() -> None:
    for requirement in all_requirements().values():
        text = explain_text(requirement.id)
        assert f"{requirement.id} ({requirement.level})" in text
        assert f"{requirement.component}::" in text


def test_component_folders_have_the_same_files() -> None:
    for name in NAMES:
        present = {path.name for path in (COMPONENTS_FOLDER / name).iterdir()}
        assert {"__init__.py", "spec.toml", "oracle.py", "cases.py", f"test_{name}.py"} <= present
    assert {p.name for p in COMPONENTS_FOLDER.iterdir() if (p / "spec.toml").exists()} == set(NAMES)
    assert Path(COMPONENTS_FOLDER / "__init__.py").is_file()
