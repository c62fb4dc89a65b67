"""The pytest plugin: `pytest --impl=X` grades X with the suite.

Without `--impl` it only adds its options. With it, and no path, the suite is collected in place of
the tests of the current folder.
"""

from __future__ import annotations

from typing import Any

import pytest

from conformance.options import OPTIONS


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--impl` and the options of `conformance.options`."""
    group = parser.getgroup("conformance", "conformance of transformer components")
    group.addoption(
        "--impl", metavar="IMPL", help="grade this package, folder or adapters file with the suite"
    )
    for option in OPTIONS:
        shown = "" if option.default is None else f" (default: {option.default})"
        settings: dict[str, Any] = {"dest": f"conformance_{option.key}", "help": option.help + shown}
        if option.flag:
            settings["action"] = "store_true"
        else:
            settings["metavar"] = option.metavar
            settings["action"] = "append" if option.many else "store"
        settings["default"] = None
        group.addoption(f"--{option.name}", **settings)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Keep the `conftest.py` files of the current folder out of a grading run.

    They belong to the candidate when a student grades with `--impl=.`, and could rewrite reports.
    """
    known = early_config.known_args_namespace
    if getattr(known, "impl", None) and not getattr(known, "file_or_dir", None):
        known.noconftest = True


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Prepare grading before pytest's own main program; bad options end here with their exit code."""
    if config.getoption("impl", None) is None:
        return None
    from conformance.grading import prepare

    return prepare(config)


def pytest_configure(config: pytest.Config) -> None:
    """In a process of pytest-xdist, where there is no main program, prepare grading here."""
    if config.getoption("impl", None) is not None and hasattr(config, "workerinput"):
        from conformance.grading import prepare

        prepare(config)
