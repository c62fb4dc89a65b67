"""Checks of the module form: on which device a class puts its parameters."""

from __future__ import annotations

from conformance.suite.case import Case
from conformance.suite.grader import Example, Grader
from conformance.suite.modules import ModuleForm, build

ELSEWHERE = "meta"
"""A device that every machine has and nothing is on by default: torch's, for shapes alone."""


def honours_device(grade: Grader, form: ModuleForm, case: Case) -> None:
    """Every parameter lies on the device that is given at construction."""
    arguments = case.arguments("float32")
    keywords = {"device": ELSEWHERE}
    reply = build(grade, form, arguments, keywords=keywords)
    built = Example({**form.built_with(arguments), **keywords}, form.class_name, "on that device")
    wrong = [
        f"{p['name']} on {p['device']}"
        for p in reply.module["parameters"]
        if p["device"] != ELSEWHERE
    ]
    message = f"built with device = {ELSEWHERE}, but {', '.join(wrong)}"
    grade.holds(not wrong, message, built, reply)
