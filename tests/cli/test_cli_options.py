"""The options of a grading run, seen in what it reports."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

after = pytest.mark.after


@after("options")
def test_components_once_and_with_commas(done: Any) -> None:
    assert list(done.report["components"]) == ["linear", "silu", "softmax"]


@after("options")
def test_dtypes(done: Any) -> None:
    dtypes = {id.partition("[")[2] for id in done.outcomes()}
    assert dtypes == {"float32]", "float16]"}


@after("options")
def test_all_of_them_are_in_the_report(done: Any) -> None:
    found = done.report["environment"]
    assert found["level"] == "should"
    assert found["profile"] == "quick"
    assert found["dtypes"] == ["float32", "float16"]
    assert "60 s for each call" in found["isolation"]
    assert any(text.startswith("memory limit 4 GiB") for text in found["isolation"])
    assert found["command"].startswith("conformance grade ")
    assert done.folder == done.cwd / "out" / "here"
    assert {path.name for path in done.folder.iterdir()} == {
        *("report.md", "report.json", "results.jsonl")
    }
    assert not (done.cwd / "reports").exists()


@after("options")
def test_verbose(done: Any) -> None:
    assert "linear::definition[float32] PASSED" in done.out


@after("options")
def test_the_report_keeps_to_its_schema(done: Any) -> None:
    import jsonschema

    import conformance.report

    folder = Path(conformance.report.__file__).parent / "schema"
    schema = json.loads((folder / "report.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(done.report)


@after("missing")
def test_the_report_of_an_error_keeps_to_its_schema(done: Any) -> None:
    test_the_report_keeps_to_its_schema(done)


@after("seed", "seed again")
def test_the_same_seed_gives_the_same_report(done: Any, runs: Any) -> None:
    other = runs.get("seed again")
    for name in ("report.json", "report.md"):
        texts = [_timeless((run.folder / name).read_text("utf-8")) for run in (done, other)]
        assert texts[0] == texts[1]


def _timeless(text: str) -> str:
    """A report without times."""
    text = re.sub(r'"seconds": [\d.e-]+', '"seconds": 0', text)
    text = re.sub(r"[\d.]+ s in checks", "0 s in checks", text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:+]+", "TIME", text)


@after("seed", "other seed")
def test_another_seed_draws_other_inputs(done: Any, runs: Any) -> None:
    def margins(run: Any) -> dict[str, float]:
        return {c["id"]: c["margin"] for c in run.report["checks"]}

    other = runs.get("other seed")
    assert done.code == other.code == 0
    assert margins(done) != margins(other)
    assert done.report["environment"]["seed"] == 3


@after("declared, in process")
def test_in_process(done: Any) -> None:
    assert done.code == 4
    assert done.report["verdict"] == "incomplete"
    assert {check["outcome"] for check in done.report["checks"]} == {"passed"}
    assert "isolation: none" in done.out
    (isolation,) = done.report["environment"]["isolation"]
    assert isolation.startswith("none")


@after("check")
def test_a_single_check(done: Any) -> None:
    assert list(done.outcomes()) == ["silu::definition[float32]"]
    assert list(done.report["components"]) == ["silu"]


@after("declared, in process")
def test_a_library_is_judged_on_what_it_declares(done: Any) -> None:
    assert list(done.report["components"]) == ["silu"]
    assert "its adapters module declares COMPONENTS: silu" in done.report["environment"]["notices"]
    assert "its adapters module declares COMPONENTS: silu" in done.out


@after("zeros")
def test_the_replay_command_asks_again(done: Any, conformance: Any) -> None:
    """The command of a failure, as the report prints it, finds the same failure."""
    lines = [json.loads(text) for text in (done.folder / "results.jsonl").open(encoding="utf-8")]
    failed = next(line for line in lines if line.get("id") == "silu::gradient[float32]")
    words = shlex.split(failed["details"]["replay"])
    assert words[:2] == ["conformance", "grade"]
    again = conformance(" ".join(words[1:]))
    assert again.code == 1
    (check,) = again.report["checks"]
    assert check["message"] == failed["message"]
    assert failed["details"]["sentence"][:40] in again.out, "shown in full, as there is only one"


@after("seed")
def test_a_narrowed_run_does_not_replace_the_whole_report(done: Any) -> None:
    assert done.folder == done.cwd / "reports" / "right" / "partial"


@after("pytest deselected")
def test_nor_does_one_narrowed_by_pytest(done: Any) -> None:
    assert done.folder == done.cwd / "reports" / "right" / "partial"


@after("zeros")
def test_the_report_can_be_made_again(done: Any, conformance: Any, tmp_path: Path) -> None:
    again = conformance(f"report {done.folder} --out {tmp_path / 'again'}")
    assert again.code == 1
    assert "Verdict: NON-CONFORMING" in again.out
    for name in ("report.json", "report.md"):
        written = (tmp_path / "again" / name).read_bytes()
        assert written == (done.folder / name).read_bytes()


def test_an_old_report_is_not_left_beside_a_refusal(conformance: Any, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "report.json").write_text('{"verdict": "conforming"}', "utf-8")
    done = conformance("grade no_such_package --report out")
    assert done.code == 2
    assert done.report["verdict"] == "error"
