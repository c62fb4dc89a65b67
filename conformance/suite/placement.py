"""Checks of the module form: on which device a class puts its parameters."""

from __future__ import annotations

from conformance.candidate.messages import Reply
from conformance.suite.case import Case
from conformance.suite.composites import Composite, use
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
    _all_elsewhere(grade, built, reply)


def honours_device_where_taken(grade: Grader, form: Composite, case: Case) -> None:
    """The same for a class that may take a device; noted where it does not."""
    built = use(grade, form, case.arguments("float32"), device=ELSEWHERE)
    if built is None:
        return
    if "device" not in built.matched.names:
        grade.note("the constructor takes no device")
        return
    _all_elsewhere(grade, built.example, built.reply)


def _all_elsewhere(grade: Grader, built: Example, reply: Reply) -> None:
    wrong = [
        f"{p['name']} on {p['device']}"
        for p in reply.module["parameters"]
        if p["device"] != ELSEWHERE
    ]
    message = f"built with device = {ELSEWHERE}, but {', '.join(wrong)}"
    grade.holds(not wrong, message, built, reply)
