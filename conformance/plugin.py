"""The pytest plugin: `pytest --impl=X` grades X with the suite.

It is loaded in every pytest run of its environment. Without `--impl` on the command line it does
nothing and adds nothing, so that options like `--seed` and `--device` stay free for others. With it
the suite is collected in place of the tests of the current folder.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance import clean
from conformance.options import OPTIONS
from conformance.spec import COMPONENTS_FOLDER

IMPL = "conformance_impl"
"""Where pytest keeps the value of `--impl`; a name of ours, another suite may have that option."""

SUITE_INI = Path(__file__).with_name("suite.ini")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add `--impl` and the options of `conformance.options` to a run that asks for them."""
    config = pluginmanager.get_plugin("pytestconfig")
    given = _arguments(config)
    grades = _asks_for_grading(given)
    if config is not None and _starts_over(config, given):
        command = _from_command(config)
        os._exit(clean.start_over("pytest", command, _impl_of(command)))
    if not grades and not {"-h", "--help"} & set(given):
        return
    group = parser.getgroup("conformance", "conformance of transformer components")
    more = "" if grades else " (its options: conformance grade --help)"
    try:
        group.addoption(
            "--impl",
            dest=IMPL,
            metavar="IMPL",
            help="grade this package, folder or adapters file with the suite" + more,
        )
        for option in OPTIONS if grades else ():
            group.addoption(f"--{option.name}", **_settings(option))
    except (ValueError, argparse.ArgumentError) as error:
        raise pytest.UsageError(
            f"another pytest plugin has an option of the same name ({error}); "
            "switch that plugin off with -p no:NAME, or use `conformance grade`"
        ) from None


def _settings(option: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {"dest": f"conformance_{option.key}", "default": None}
    settings["help"] = option.described
    if option.flag:
        settings["action"] = "store_true"
    else:
        settings["metavar"] = option.metavar
        settings["action"] = "append" if option.many else "store"
    return settings


def _arguments(config: pytest.Config | None) -> list[str]:
    """All that was asked for: in the environment, in a configuration file, in the command."""
    if config is None:
        return []
    try:
        configured = config.getini("addopts")
    except (KeyError, ValueError):  # no configuration file has been read yet
        configured = []
    return [*_from_environment(), *configured, *_from_command(config)]


def _from_environment() -> list[str]:
    try:
        return shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    except ValueError:  # pytest itself will complain
        return []


def _from_command(config: pytest.Config) -> list[str]:
    return [os.fspath(argument) for argument in config.invocation_params.args]


def _asks_for_grading(arguments: Iterable[str]) -> bool:
    return any(word == "--impl" or word.startswith("--impl=") for word in arguments)


def _starts_over(config: pytest.Config, given: Sequence[str]) -> bool:
    """Whether this command is better run in a clean Python, see `conformance.clean`.

    Not where a program has called pytest (it may be a debugger), nor in a process of pytest-xdist.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return False
    command = _from_command(config)
    if not _asks_for_grading(command) or {"--trust", "--in-process"} & set(given):
        return False
    program = Path(sys.argv[0])
    called = program.stem in ("pytest", "py.test") or program.parent.name == "pytest"
    if not called or command != sys.argv[1:] or config.invocation_params.plugins:
        return False
    return not clean.is_clean() and (
        config.inipath is not None or clean.suspicious(_impl_of(command))
    )


def _impl_of(command: Sequence[str]) -> str | None:
    """The value of `--impl`, read before pytest has parsed the command."""
    for word, following in zip(command, [*command[1:], None], strict=True):
        if word == "--impl":
            return following
        if word.startswith("--impl="):
            return word.partition("=")[2]
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Keep the `conftest.py` files and the `addopts` of the current folder out of a grading run.

    They belong to the candidate when a student grades with `--impl=.`: they could rewrite reports,
    and ask for plugins that are not there. With `--trust` they take part.
    """
    known = early_config.known_args_namespace
    if getattr(known, IMPL, None) is None:
        return
    if not getattr(known, "conformance_trust", False):
        known.noconftest = True
        command = _from_command(early_config)
        if _asks_for_grading(command):
            args[:] = [*_from_environment(), *command]
    # so that pytest does not look at `testpaths`; first, because an option at the end may have a
    # value that can be left out, as --benchmark-compare has
    args.insert(0, str(COMPONENTS_FOLDER))


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Prepare grading before pytest's own main program; bad options end with their exit code."""
    if config.getoption(IMPL, None) is None:
        return None
    command = _from_command(config)
    trusted = config.getoption("conformance_trust", None)
    if _asks_for_grading(command) and not trusted and _has_foreign_settings(config):
        return _without_settings(config, command)
    from conformance.prepare import prepare

    return prepare(config)


def _has_foreign_settings(config: pytest.Config) -> bool:
    """pytest has read a configuration file that nobody named on the command line."""
    return config.inipath is not None and not config.getoption("inifilename", None)


def _without_settings(config: pytest.Config, command: Sequence[str]) -> int:
    """The same command without the configuration file of the current folder.

    Settings like `filterwarnings = error` or `pythonpath` are meant for the candidate's own tests.
    Only where a program has called pytest; otherwise this is a new process already.
    """
    folder = config.invocation_params.dir
    arguments = ["-c", str(SUITE_INI), f"--rootdir={folder}", *command]
    return int(pytest.main(arguments, plugins=config.invocation_params.plugins))
