"""Miniature wrong candidates through the real command line, each with outcome and exit code."""

from __future__ import annotations

from typing import Any

import pytest

after = pytest.mark.after

WRONG_VALUES = {
    "rope_half_split": ("rope", "rope::definition[float32]"),
    "no_causal_mask": ("multihead_self_attention", "multihead_self_attention::causal[float32]"),
    "eps_outside_root": ("rmsnorm", "rmsnorm::eps_inside_the_root[float32]"),
    "float32_for_bfloat16": ("rmsnorm", "rmsnorm::half_precision[bfloat16]"),
    "post_norm": ("transformer_block", "transformer_block::definition[float32]"),
    "zeros": ("silu", "silu::definition[float32]"),
    "echo": ("silu", "silu::definition[float32]"),
}
"""Candidate: its component, and a check that must fail."""


@pytest.mark.parametrize(
    ("component", "check"),
    [pytest.param(*WRONG_VALUES[name], marks=after(name), id=name) for name in WRONG_VALUES],
)
def test_wrong_values_fail(done: Any, component: str, check: str) -> None:
    assert done.code == 1
    assert done.report["verdict"] == "non-conforming"
    assert done.report["components"][component]["status"] == "non-conforming"
    assert done.outcomes()[check] == "failed"
    assert "Verdict: NON-CONFORMING" in done.out
    assert f"--check '{check.partition('::')[0]}::" in done.out  # how to replay the first failure
    assert done.has_no_traceback()
    assert done.err == ""


@after("float32_for_bfloat16")
def test_only_the_dtype_is_wrong(done: Any) -> None:
    failed = {id for id, outcome in done.outcomes().items() if outcome == "failed"}
    assert "rmsnorm::definition[float32]" not in failed
    assert "float32 for bfloat16 input" in done.messages("rmsnorm")


@after("zeros")
@pytest.mark.parametrize("nothing", ["definition", "gradient", "negative_numbers"])
def test_zeros_pass_no_check_of_values(done: Any, nothing: str) -> None:
    assert done.outcomes()[f"silu::{nothing}[float32]"] == "failed"


@after("hangs")
def test_a_hang_is_bounded_and_the_others_go_on(done: Any) -> None:
    assert done.code == 1
    assert set(done.outcomes("silu").values()) == {"timed out"}
    assert set(done.outcomes("linear").values()) == {"passed"}
    assert "no answer within 2 s" in done.messages("silu")
    assert "not asked" in done.messages("silu")
    asked = [m for m in done.messages("silu").splitlines() if "no answer" in m]
    assert len(asked) == 1, "together with the question whether it is there, that is enough"


@after("exits")
def test_an_exit_with_success_is_a_crash(done: Any) -> None:
    assert done.code == 1
    assert set(done.outcomes().values()) == {"crashed"}
    assert "ended with exit status 0 during the call" in done.out
    assert "all tests passed" in (done.folder / "report.md").read_text("utf-8")  # as its output


@after("raises")
def test_an_exception_is_told_with_its_place(done: Any) -> None:
    assert done.code == 1
    assert "raised" in done.outcomes().values()
    assert "ValueError: the input has one axis too many" in done.out
    report = (done.folder / "report.md").read_text("utf-8")
    assert 'File "raises.py", line' in report, "the candidate's own lines"
    assert "worker.py" not in report, "none of ours"


UNRULY = {
    "linear": ("crashed", "killed by SIGSEGV (segmentation fault)"),
    "embedding": ("out of memory", "alloc"),
    "silu": ("timed out", "no answer within 2 s"),
    "swiglu": ("failed", "returned a tuple of 2 instead of a tensor"),
    "rmsnorm": ("failed", "returned a NumPy array instead of a tensor"),
    "rope": ("not implemented", "returned None instead of a tensor"),
    "softmax": ("passed", ""),
}


@after("unruly")
@pytest.mark.parametrize("component", UNRULY)
def test_nothing_a_component_does_touches_the_others(done: Any, component: str) -> None:
    outcome, message = UNRULY[component]
    assert done.code == 1
    assert set(done.outcomes(component).values()) == {outcome}
    assert message in done.messages(component)


@after("unruly")
def test_printing_without_end_is_bounded(done: Any) -> None:
    assert "progress progress" not in done.out
    assert (done.folder / "results.jsonl").stat().st_size < 5_000_000


@after("stubs")
def test_half_of_the_functions_are_stubs(done: Any) -> None:
    assert done.code == 1, "a selected component that is not implemented does not conform"
    components = done.report["components"]
    assert components["linear"]["status"] == components["rmsnorm"]["status"] == "not implemented"
    assert components["silu"]["status"] == components["softmax"]["status"] == "conforming"
    assert "Not implemented: linear and rmsnorm" in done.out
    assert components["linear"]["errors"] == 0


@after("pytest beside")
def test_a_course_repository_from_another_folder(done: Any) -> None:
    assert done.code == 1
    components = done.report["components"]
    assert components["silu"]["status"] == components["softmax"]["status"] == "conforming"
    assert components["linear"]["status"] == components["rmsnorm"]["status"] == "not implemented"
    assert done.report["candidate"]["module"] == "tests.adapters"
