"""The command `conformance`: grade, report, explain, fixtures, init.

Every command ends with an exit code of `conformance.errors.ExitCode`: 0 conforming (or done),
1 not conforming, 2 usage, 3 the candidate cannot be loaded, 4 internal error or incomplete.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from conformance import SPEC_VERSION, __version__
from conformance.errors import ConformanceError, ExitCode
from conformance.options import DEFAULTS, OPTIONS

app = typer.Typer(
    help="Is this implementation of a transformer component right, and if not, what is wrong?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
fixtures_app = typer.Typer(help="Build or verify the golden vectors.", no_args_is_help=True)
app.add_typer(fixtures_app, name="fixtures")

F = TypeVar("F", bound=Callable[..., Any])


def _option(key: str) -> Any:
    """The typer option of one entry of `conformance.options.OPTIONS`."""
    (found,) = (option for option in OPTIONS if option.key == key)
    shown = "" if found.default is None else f" [default: {DEFAULTS[key]}]"
    return typer.Option(
        f"--{found.name}",
        metavar=None if found.flag else found.metavar,
        help=found.help + shown,
        show_default=False,
    )


def _clear_errors(command: F) -> F:
    """End with one message and the right exit code instead of a traceback."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except ConformanceError as error:
            typer.echo(f"conformance: {error}", err=True)
            if error.details:
                typer.echo(error.details, err=True)
            raise typer.Exit(int(error.exit_code)) from None

    return run  # type: ignore[return-value]  # same signature as `command`


@app.command()
@_clear_errors
def grade(
    impl: Annotated[str, typer.Argument(help="package, folder, or path of an adapters file")],
    component: Annotated[list[str] | None, _option("component")] = None,
    level: Annotated[str | None, _option("level")] = None,
    dtype: Annotated[list[str] | None, _option("dtype")] = None,
    device: Annotated[str | None, _option("device")] = None,
    seed: Annotated[str | None, _option("seed")] = None,
    profile: Annotated[str | None, _option("profile")] = None,
    check: Annotated[list[str] | None, _option("check")] = None,
    report: Annotated[str | None, _option("report")] = None,
    python: Annotated[str | None, _option("python")] = None,
    timeout: Annotated[str | None, _option("timeout")] = None,
    import_timeout: Annotated[str | None, _option("import_timeout")] = None,
    memory: Annotated[str | None, _option("memory")] = None,
    in_process: Annotated[bool, _option("in_process")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="one line per check")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="show every failure in the terminal, not only the first")
    ] = False,
) -> None:
    """Grade an implementation and write a report."""
    import pytest

    given = {name: value for name, value in locals().items() if name in DEFAULTS}
    arguments = [f"--impl={impl}", "-c", str(Path(__file__).parent / "suite.ini")]
    arguments += [f"--rootdir={Path.cwd()}", "-p", "no:cacheprovider", "-p", "conformance.plugin"]
    arguments += ["-v"] if verbose else []
    arguments += ["--tb=short" if full else "--tb=no"]
    for option in OPTIONS:
        arguments += _words(option.name, given[option.key])
    # Only pytest itself and this plugin: nothing from the environment may take part in a verdict.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    raise typer.Exit(int(pytest.main(arguments)))


def _words(name: str, value: Any) -> list[str]:
    if value is None or value is False or value == []:
        return []
    if value is True:
        return [f"--{name}"]
    return [f"--{name}={one}" for one in (value if isinstance(value, list) else [value])]


@app.command()
@_clear_errors
def report(
    results: Annotated[Path, typer.Argument(help="results.jsonl, or the folder it lies in")],
    out: Annotated[
        Path | None, typer.Option("--out", help="folder for the reports [default: beside it]")
    ] = None,
) -> None:
    """Write report.json and report.md anew from recorded results."""
    from conformance.report import read_results, summary_text, write_reports

    path = results / "results.jsonl" if results.is_dir() else results
    folder = out or path.parent
    verdict = write_reports(path, folder)
    typer.echo(summary_text(read_results(path), verdict, folder=folder, encoding=_encoding()))
    raise typer.Exit(int(verdict.exit_code))


@app.command()
@_clear_errors
def explain(
    requirement: Annotated[
        str | None, typer.Argument(help="id such as RMSNORM-EPS, or a component; none lists all")
    ] = None,
) -> None:
    """Print a requirement with its source and checks, or list the requirements."""
    from conformance.explain import explain_text

    typer.echo(explain_text(requirement))


@app.command()
@_clear_errors
def init(
    folder: Annotated[Path, typer.Argument(help="where to write")] = Path(),
) -> None:
    """Write a skeleton of an adapters module and a conformance.toml."""
    from conformance.scaffold import write_skeleton

    for path in write_skeleton(folder):
        typer.echo(f"wrote {path}")
    typer.echo(f"fill in adapters.py, then: conformance grade {folder}")


@fixtures_app.command("build")
@_clear_errors
def fixtures_build(
    out: Annotated[Path | None, typer.Option("--out", help="folder [default: fixtures/]")] = None,
) -> None:
    """Write all golden vectors; the same bytes every time."""
    from conformance.golden.build import build
    from conformance.golden.load import default_folder

    folder = out or default_folder()
    manifest = build(folder)
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    typer.echo(f"{len(manifest['vectors'])} vectors, {size / 1e6:.2f} MB in {folder}")


@fixtures_app.command("verify")
@_clear_errors
def fixtures_verify(
    folder: Annotated[Path | None, typer.Argument(help="folder [default: fixtures/]")] = None,
    digits: Annotated[
        bool, typer.Option("--digits", help="confirm the values with 50 digits as well (slow)")
    ] = False,
) -> None:
    """Check schema, hashes and orphans, and recompute every value from the definitions."""
    from conformance.golden.load import fixtures_folder
    from conformance.golden.verify import verify

    problems = verify(folder or fixtures_folder(), confirm=digits)
    for problem in problems:
        typer.echo(problem, err=True)
    if problems:
        raise typer.Exit(int(ExitCode.NOT_CONFORMING))
    typer.echo("the golden vectors are as they should be")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"conformance {__version__}, spec {SPEC_VERSION}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="print version and exit"),
    ] = False,
) -> None:
    """Conformance suite for the components of a decoder-only transformer."""


def _encoding() -> str | None:
    return getattr(sys.stdout, "encoding", None)


def main() -> None:
    """Entry point of the command `conformance`."""
    app()


if __name__ == "__main__":
    main()
