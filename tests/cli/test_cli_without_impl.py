"""Without `--impl` the plugin costs nothing and changes nothing."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

OWN_SUITE = {
    "conftest.py": """
        def pytest_addoption(parser):
            for name in ("seed", "device", "profile", "timeout", "level", "report", "check"):
                parser.addoption("--" + name, default="mine")
            parser.addoption("--impl-of-mine", default="mine")
        """,
    "pytest.ini": "[pytest]\naddopts = --strict-markers\n",
    "test_mine.py": """
        from hypothesis import given, strategies as st

        def test_options(pytestconfig):
            assert pytestconfig.getoption("seed") == "7"
            assert pytestconfig.getoption("device") == "mine"
            assert pytestconfig.getoption("impl", None) is None

        def test_nothing_heavy():
            import sys
            loaded = {name for name in sys.modules if name.startswith("conformance")}
            light = {"conformance", "conformance.plugin", "conformance.options"}
            light |= {"conformance.clean"}
            light |= {"conformance.errors", "conformance.spec"}
            assert loaded <= light, loaded - light
            assert "torch" not in sys.modules

        @given(st.integers())
        def test_law(number):
            assert number == number

        def test_speed(benchmark):
            benchmark.pedantic(lambda: 1, rounds=1)
        """,
}


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(textwrap.dedent(text), "utf-8")


def test_a_suite_of_others_is_unaffected(conformance: Any, tmp_path: Path) -> None:
    """Its options may have our names, its plugins are there, its tests are collected."""
    _write(tmp_path, OWN_SUITE)
    done = conformance("pytest --seed 7 -q")
    assert done.code == 0, done.text
    assert "4 passed" in done.out
    assert "conformance" not in done.out.replace("transformer-conformance", "")


def test_neither_torch_nor_numpy_is_imported(conformance: Any, tmp_path: Path) -> None:
    """With our plugin alone: others that are installed here import NumPy themselves."""
    (tmp_path / "sitecustomize.py").write_text(
        textwrap.dedent(
            """
            import atexit, sys

            def tell():
                heavy = {"torch", "numpy", "ml_dtypes", "hypothesis", "jinja2", "safetensors"}
                print("HEAVY", sorted(heavy & set(sys.modules)))
                print("PLUGIN", "conformance.plugin" in sys.modules)

            atexit.register(tell)
            """
        ),
        encoding="utf-8",
    )
    env = {"PYTHONPATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = conformance("pytest -q -p conformance.plugin", **env)
    assert "HEAVY []\nPLUGIN True" in done.out, done.text


def test_the_help_shows_how_to_grade(conformance: Any) -> None:
    done = conformance("pytest --help")
    assert done.code == 0
    assert "--impl=IMPL" in done.out
    assert "--import-timeout" not in done.out
    with_options = conformance("pytest --help --impl=x")
    assert with_options.code == 0
    assert "--import-timeout" in with_options.out


def test_a_plugin_with_an_option_of_ours(conformance: Any, tmp_path: Path) -> None:
    """Where another plugin has taken a name, a grading run says so."""
    (tmp_path / "other_plugin.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--timeout')\n", encoding="utf-8"
    )
    done = conformance("pytest -p other_plugin --impl=reference_impl", PYTHONPATH=str(tmp_path))
    assert done.code == 4  # pytest's own code for a command it refuses
    assert "another pytest plugin has an option of the same name" in done.text
    assert done.has_no_traceback()
