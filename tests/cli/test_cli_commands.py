"""The commands beside `grade`."""

from __future__ import annotations

import ast
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.cli import main
from conformance.golden.load import fixtures_folder
from conformance.spec import all_requirements, component_names


@pytest.mark.parametrize("command", ["--help", "grade --help", "report --help", "fixtures --help"])
def test_help(command: str, conformance: Any) -> None:
    done = conformance(command)
    assert done.code == 0
    assert done.out.startswith("usage: conformance")


def test_version(conformance: Any) -> None:
    done = conformance("--version")
    assert done.code == 0
    assert done.out.startswith("conformance ")
    assert "spec" in done.out


def test_explain_lists_every_requirement(conformance: Any) -> None:
    done = conformance("explain")
    assert done.code == 0
    assert set(all_requirements()) <= set(done.out.split())


def test_explain_what_is_covered(conformance: Any) -> None:
    done = conformance("explain --coverage")
    assert done.code == 0
    head, _, *rows = done.out.splitlines()
    assert head.split()[:6] == ["component", "MUST", "SHOULD", "MAY", "checks", "vectors"]
    assert set(component_names()) <= {row.split()[0] for row in rows if row.split()}


def test_explain_a_component(conformance: Any) -> None:
    done = conformance("explain silu")
    assert done.code == 0
    assert "SILU-DEFINITION" in done.out
    assert "RMSNORM" not in done.out


def test_explain_a_requirement(conformance: Any) -> None:
    done = conformance("explain rmsnorm-eps")
    assert done.code == 0
    assert done.out.startswith("RMSNORM-EPS (MUST), component rmsnorm, function run_rmsnorm")
    for part in ("formula:", "source:", "checks:", "rmsnorm::eps_inside_the_root[float32]"):
        assert part in done.out


def test_a_skeleton_is_not_implemented_and_never_an_error(conformance: Any, tmp_path: Path) -> None:
    written = conformance("init mine")
    assert written.code == 0
    assert "conformance grade mine" in written.out
    ast.parse((tmp_path / "mine" / "adapters.py").read_text("utf-8"))
    done = conformance("grade mine --profile quick")
    assert done.code == 1
    assert set(done.outcomes().values()) == {"not implemented"}
    assert {c["errors"] for c in done.report["components"].values()} == {0}
    assert done.report["score"] == 0.0
    assert done.has_no_traceback()


def test_what_init_prints_can_be_pasted(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    for name in ("stdout", "stderr"):  # `main` puts its own in their place
        monkeypatch.setattr(sys, name, getattr(sys, name))
    folder = tmp_path / "my folder; $HOME"
    assert main(["init", str(folder)]) == 0
    *written, last = capsys.readouterr().out.splitlines()
    paths = [shlex.split(line.removeprefix("wrote ")) for line in written]
    assert paths == [[str(folder / "adapters.py")], [str(folder / "conformance.toml")]]
    assert shlex.split(last.partition(": ")[2]) == ["conformance", "grade", str(folder)]


def test_a_skeleton_replaces_nothing(conformance: Any, tmp_path: Path) -> None:
    (tmp_path / "adapters.py").write_text("mine = True\n", "utf-8")
    done = conformance("init")
    assert done.code == 2
    assert "exists already; nothing was written" in done.err
    assert (tmp_path / "adapters.py").read_text("utf-8") == "mine = True\n"
    assert not (tmp_path / "conformance.toml").exists()


def test_tampered_fixtures_do_not_verify(conformance: Any, tmp_path: Path) -> None:
    copy = shutil.copytree(fixtures_folder(), tmp_path / "fixtures")
    path = copy / "silu.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    done = conformance("fixtures verify fixtures")
    assert done.code == 1
    assert "silu.safetensors" in done.err
    assert done.has_no_traceback()
