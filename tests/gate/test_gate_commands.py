"""`conformance grade --gate` from outside: its exit code and its last line."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

gated = pytest.mark.gated
SECRET = "c0ffee-and-a-long-secret-of-the-course"


def last(done: Any) -> str:
    return str(done.out.rstrip("\n").splitlines()[-1])


@gated("passes")
def test_pass(done: Any) -> None:
    assert done.code == 0, done.text
    assert last(done).startswith("GATE: PASS ")
    assert last(done).endswith(" of silu passed.")
    assert done.report["verdict"] == "conforming"
    assert "some inputs were drawn from a hidden seed" in done.report["environment"]["notices"]


@gated("wrong")
def test_fail(done: Any) -> None:
    assert done.code == 1
    assert last(done).startswith("GATE: FAIL ")
    assert "did not pass, in silu" in last(done)
    (notice,) = (n for n in done.report["environment"]["notices"] if "known in advance" in n)
    assert "--hidden-seed-file" in notice


@gated("chooses")
def test_a_submission_does_not_choose_what_it_is_graded_on(done: Any) -> None:
    assert done.code == 1
    assert last(done).startswith("GATE: FAIL Not implemented: linear, ")
    assert done.report["components"]["silu"]["status"] == "conforming"
    assert any("COMPONENTS" in n and "ignored" in n for n in done.report["environment"]["notices"])


@gated("cannot be loaded")
def test_cannot_be_loaded(done: Any) -> None:
    assert done.code == 3
    assert last(done).startswith("GATE: ERROR ")
    assert "package_that_nobody_has" in last(done)


@gated("ended")
def test_a_run_that_is_ended(done: Any) -> None:
    assert done.code == 4
    assert last(done).startswith("GATE: ERROR ")


@pytest.mark.parametrize("name", [pytest.param(n, marks=gated(n)) for n in ("edited", "removed")])
def test_results_that_are_touched(done: Any, name: str) -> None:
    assert done.code == 4
    assert last(done).startswith("GATE: ERROR ")
    assert "are not what this run has written there" in last(done)
    assert done.has_no_traceback()


REFUSED = {
    "grade reference_impl --gate --component silu": "--component takes a part of it",
    "grade reference_impl --gate --in-process": "--gate and --in-process",
    "grade . --gate --config settings.toml": "lies inside the submission",
    "grade {c}/zeros.py --gate --config no.toml": "No such file or directory",
    "grade no_such_package --gate": "nor an installed package",
    "grade --gate": "the command is wrong",
    "grade {c}/zeros.py --gate --config {config} --report file/below": "cannot write results to",
}


@pytest.mark.parametrize("command", REFUSED)
def test_what_is_refused(command: str, place: Any) -> None:
    place.write(
        {"settings.toml": "", "adapters.py": "def run_silu(x):\n    return x\n", "file": ""}
    )
    done = place.run(command)
    assert done.code == 2, done.text
    assert last(done).startswith("GATE: ERROR ")
    assert REFUSED[command] in last(done)
    assert not (place.cwd / "reports").exists()


def test_pytest_is_no_gate(place: Any) -> None:
    done = place.run("pytest --impl=reference_impl --gate")
    assert done.code == 2
    assert "--gate is for `conformance grade`" in done.err


@gated("wrong for the hidden")
def test_the_hidden_seed_stays_hidden(done: Any) -> None:
    """Neither the secret nor what is made of it is found anywhere; nor are inputs made of it."""
    assert done.code == 1
    key = hashlib.sha256(b"transformer-conformance hidden seed\0" + SECRET.encode()).hexdigest()
    files = [path for path in done.folder.rglob("*") if path.is_file()]
    texts = [path.read_bytes().decode("utf-8", "replace") for path in files]
    for text in (*texts, done.text):
        assert SECRET not in text
        assert key not in text


@gated("wrong for the hidden")
def test_what_is_wrong_for_hidden_inputs_only_is_said_without_them(done: Any) -> None:
    import json

    lines = [json.loads(line) for line in (done.folder / "results.jsonl").open(encoding="utf-8")]
    hidden = [x for x in lines if x["kind"] == "check" and (x["details"] or {}).get("hidden")]
    assert hidden, "stored inputs in another form, which the secret chooses"
    for line in hidden:
        assert line["message"] == "a hidden input is answered wrongly"
        assert "is wrong in" in line["details"]["hidden_message"]
        assert line["details"]["inputs"]
        assert "counterexample" not in line["details"]
        assert line["details"]["counterexample_note"] == "not stored: the input is a hidden one"
        assert line["details"]["hidden_message"] not in done.text


def test_a_secret_must_be_one(place: Any) -> None:
    command = "grade {c}/zeros.py --gate --config {config} --hidden-seed-file -"
    done = place.run(command, said="short\n")
    assert done.code == 2
    assert "fewer than 16 bytes can be guessed" in last(done)
    assert "short" not in done.text.replace("a short secret", "")


def test_a_secret_that_no_sandbox_hides(place: Any) -> None:
    (place.root / "secret").write_text(SECRET, "utf-8")
    command = "grade {c}/right.py --gate --config {config} --hidden-seed-file ../secret"
    done = place.run(f"{command} --sandbox off")
    assert done.code == 2
    assert "without a sandbox that hides this file" in last(done)
