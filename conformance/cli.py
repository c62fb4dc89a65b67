"""The command `conformance`: grade, grade-all, replay, report, explain, fixtures, init.

Every command ends with an exit code of `conformance.errors.ExitCode`: 0 conforming (or done),
1 not conforming, 2 usage, 3 the candidate cannot be loaded, 4 internal error or incomplete, 5 no
sandbox where one is demanded.

Nothing heavy is imported before a command needs it: a short answer should come at once.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance import SPEC_VERSION, __version__, clean
from conformance.errors import ConformanceError, ExitCode, UsageError, internal_error
from conformance.options import OPENING, OPTIONS, WRITING, Option


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never raises and never shows a traceback."""
    _use_streams_that_cannot_fail()
    words = sys.argv[1:] if arguments is None else arguments
    if not words:
        parser().print_help()
        return int(ExitCode.USAGE)
    try:
        options = parser().parse_args(words)
    except SystemExit as ended:
        if ended.code and "--gate" in words:
            _draw_the_line("the command is wrong")
        raise
    options.words = words if arguments is None else None
    try:
        return int(options.command(options))
    except ConformanceError as error:
        return _complain(error, options)
    except KeyboardInterrupt:
        return _complain(ConformanceError("interrupted"), options)
    except Exception as error:
        return _complain(internal_error(error, f"conformance {options.name}"), options)


def _complain(error: ConformanceError, options: argparse.Namespace) -> int:
    print(f"conformance: {error.text}", file=sys.stderr, flush=True)
    if getattr(options, "gate", False):
        _draw_the_line(error.message)
    return int(error.exit_code)


def _draw_the_line(reason: str) -> None:
    from conformance.gate import ERROR, last_line

    print(last_line(ERROR, reason), flush=True)


def _use_streams_that_cannot_fail() -> None:
    """What the terminal cannot show is escaped; where nobody reads, nothing is written."""
    from conformance.streams import Patient

    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, Patient.around(stream))


# -- the command line ----------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(
        prog="conformance",
        description="Is this implementation of a transformer component right, and if not, what is "
        "wrong with it?",
        epilog="exit codes: 0 conforming or done, 1 not conforming, 2 wrong usage, 3 the candidate "
        "cannot be loaded, 4 internal error or incomplete, 5 no sandbox where one is demanded",
        allow_abbrev=False,
    )
    top.add_argument(
        "--version", action="version", version=f"conformance {__version__}, spec {SPEC_VERSION}"
    )
    commands = top.add_subparsers(dest="name", metavar="COMMAND", required=True)
    _add_grade(_command(commands, "grade", grade, "grade an implementation and write a report"))
    _add_grade_all(
        _command(commands, "grade-all", grade_all, "grade a class, with a table and a record")
    )
    _add_replay(
        _command(commands, "replay", replay, "ask one input again that was answered wrongly")
    )
    _add_report(
        _command(commands, "report", report, "write the reports anew from recorded results")
    )
    _add_explain(
        _command(commands, "explain", explain, "show a requirement with its checks, or list them")
    )
    _add_bench(_command(commands, "bench", bench, "measure how fast an implementation is"))
    _add_compare(_command(commands, "compare", compare, "say what changed from one run to another"))
    _add_fixtures(commands.add_parser("fixtures", help="build or verify the golden vectors"))
    _add_init(
        _command(
            commands,
            "init",
            init,
            "write a skeleton of an adapters module and a conformance.toml, or files for a CI",
        )
    )
    return top


def _command(commands: Any, name: str, run: Any, words: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=words, description=words[:1].upper() + words[1:] + ".", allow_abbrev=False
    )
    made.set_defaults(command=run)
    return made


def _add_grade(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "impl", metavar="IMPL", help="package, folder, or path of an adapters file"
    )
    for option in OPTIONS:
        _add_option(command, option)
    command.add_argument("-v", "--verbose", action="store_true", help="one line per check")
    command.add_argument(
        "--full", action="store_true", help="show every failure in the terminal, not only the first"
    )


def _add_replay(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "file", type=Path, metavar="FILE", help="a file of the folder counterexamples of a report"
    )
    command.add_argument(
        "--impl",
        metavar="IMPL",
        help="ask this candidate (default: the one in which the input was found)",
    )
    for option in OPTIONS:
        if option.name in OPENING:
            default = "" if option.flag else " (default: as in the run that found it)"
            _add_option(command, option, option.help + default)


def _add_option(
    command: argparse.ArgumentParser, option: Option, described: str | None = None
) -> None:
    words = (described or option.described).replace("%", "%%")
    if option.flag:
        command.add_argument(f"--{option.name}", dest=option.key, action="store_true", help=words)
    else:
        command.add_argument(
            f"--{option.name}",
            dest=option.key,
            metavar=option.metavar,
            action="append" if option.many else "store",
            help=words,
        )


def _add_grade_all(command: argparse.ArgumentParser) -> None:
    from conformance.batch.command import add_arguments

    add_arguments(command, _add_option)


def _add_bench(command: argparse.ArgumentParser) -> None:
    from conformance.bench.command import add_arguments

    add_arguments(command, _add_option)


def _add_compare(command: argparse.ArgumentParser) -> None:
    command.add_argument("before", type=Path, metavar="A.json", help="bench.json or report.json")
    command.add_argument(
        "after", type=Path, metavar="B.json", help="the later one, of the same kind"
    )


def _add_explain(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "requirement",
        nargs="?",
        metavar="REQUIREMENT",
        help="an id such as RMSNORM-EPS, or a component; without it, everything is listed",
    )
    command.add_argument(
        "--coverage", action="store_true", help="a table of what is checked in each component"
    )
    command.add_argument("--markdown", action="store_true", help="that table as Markdown")


def _add_init(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER")
    command.add_argument(
        "--ci",
        choices=("github", "gitlab", "gradescope"),
        help="write only the files with which this service grades submissions",
    )


def _add_report(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "results", type=Path, metavar="RESULTS", help="results.jsonl, or the folder it lies in"
    )
    command.add_argument(
        "--out", type=Path, metavar="FOLDER", help="where to write (default: beside the results)"
    )
    for option in OPTIONS:
        if option.name in WRITING:
            _add_option(command, option)


def _add_fixtures(command: argparse.ArgumentParser) -> None:
    commands = command.add_subparsers(dest="what", metavar="COMMAND", required=True)
    build = _command(
        commands, "build", fixtures_build, "write all golden vectors, the same bytes every time"
    )
    build.add_argument("--out", type=Path, metavar="FOLDER", help="(default: fixtures/)")
    verify = _command(
        commands, "verify", fixtures_verify, "check hashes and schema and recompute every value"
    )
    verify.add_argument("folder", nargs="?", type=Path, metavar="FOLDER")
    verify.add_argument(
        "--digits", action="store_true", help="confirm the values with 50 digits as well (slow)"
    )


# -- the commands --------------------------------------------------------------------------------


def grade(options: argparse.Namespace) -> int:
    """Run pytest with nothing but this suite: what else is installed takes no part in a verdict."""
    if options.words is not None and clean.suspicious(options.impl):
        return clean.start_over("conformance", options.words, options.impl)
    if options.hidden_seed_file is not None:  # pytest is going to take standard input away
        from conformance.hidden import read_hidden_seed

        read_hidden_seed(Path(options.hidden_seed_file).expanduser())
    # Before pytest is imported: it reads these.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    import pytest

    from conformance.plugin import SUITE_INI

    arguments = [f"--impl={options.impl}", "-c", str(SUITE_INI), f"--rootdir={Path.cwd()}"]
    arguments += ["-p", "conformance.plugin", "--assert=plain", "-rN"]
    for unused in ("cacheprovider", "unraisableexception", "threadexception"):  # they cost time
        arguments += ["-p", f"no:{unused}"]
    arguments += ["-v"] if options.verbose else []
    arguments += ["--tb=short" if options.full or options.check else "--tb=no"]
    for option in OPTIONS:
        arguments += _words(option.name, getattr(options, option.key))
    if options.gate:
        from conformance.gate import gated

        return gated(arguments)
    return int(pytest.main(arguments))


def _words(name: str, value: Any) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [f"--{name}"]
    return [f"--{name}={one}" for one in (value if isinstance(value, list) else [value])]


def grade_all(options: argparse.Namespace) -> int:
    """Grade every submission of a class."""
    for path in map(str, options.paths):
        if options.words is not None and clean.suspicious(path):
            return clean.start_over("conformance", options.words, path)
    from conformance.batch.command import grade_all

    return int(grade_all(options))


def replay(options: argparse.Namespace) -> int:
    """Ask one stored input again."""
    if options.words is not None and clean.suspicious(options.impl):
        return clean.start_over("conformance", options.words, options.impl)
    from conformance.counterexample.replay import replay_file

    text, code = replay_file(options.file, options.impl, vars(options), Path.cwd())
    print(text)
    return int(code)


def report(options: argparse.Namespace) -> int:
    """Make report.json and report.md again, and what else is asked for."""
    from conformance.course.again import outputs_from
    from conformance.course.audience import seen_by
    from conformance.course.shown import points_text_of
    from conformance.report import read_results, summary_text, write_reports
    from conformance.report.stream import RESULTS_NAME

    outputs = outputs_from(vars(options), Path.cwd())
    results: Path = options.results
    path = results / RESULTS_NAME if results.is_dir() else results
    folder = options.out or path.parent
    found = read_results(path)
    if not (found.header or found.error or found.checks) and path.stat().st_size:
        raise UsageError(f"{path} does not hold the results of a run")
    verdict = write_reports(path, folder, audience=outputs.audience, rubric=outputs.rubric)
    outputs.write(found, verdict)
    text = summary_text(
        seen_by(found, outputs.audience),
        verdict,
        folder=folder,
        encoding=getattr(sys.stdout, "encoding", None),
        points=points_text_of(found, verdict, outputs.rubric),
    )
    print("\n".join(filter(None, [outputs.opening_line(), text, *outputs.closing_lines()])))
    return int(verdict.exit_code)


def bench(options: argparse.Namespace) -> int:
    """Measure an implementation."""
    from conformance.bench.command import run_bench
    from conformance.options import command_line

    return int(run_bench(options.impl, vars(options), Path.cwd(), command_line()))


def compare(options: argparse.Namespace) -> int:
    """Say what is faster, slower, newly failing or fixed; 1 when something got worse."""
    from conformance.bench.compare import compare_files

    found = compare_files(options.before, options.after)
    print(found.text())
    return int(found.exit_code)


def explain(options: argparse.Namespace) -> int:
    """Print what is demanded and why, or what is covered."""
    if options.coverage:
        from conformance.coverage import coverage_markdown, coverage_text

        if options.requirement is not None:
            raise UsageError("--coverage is about all components; leave out the name")
        print(coverage_markdown() if options.markdown else coverage_text())
        return 0
    if options.markdown:
        raise UsageError("--markdown goes with --coverage")
    from conformance.explain import explain_text

    print(explain_text(options.requirement))
    return 0


def init(options: argparse.Namespace) -> int:
    """Write the files to start from."""
    if options.ci:
        from conformance.course.ci import ADVICE, write_ci

        for path in write_ci(options.ci, options.folder):
            print(f"wrote {shlex.quote(str(path))}")
        print(f"next: {ADVICE[options.ci]} (docs/courses.md)")
        return 0
    from conformance.scaffold import write_skeleton

    for path in write_skeleton(options.folder):
        print(f"wrote {shlex.quote(str(path))}")
    command = shlex.join(["conformance", "grade", str(options.folder)])
    print(f"fill in adapters.py, then: {command}")
    return 0


def fixtures_build(options: argparse.Namespace) -> int:
    """Write the golden vectors."""
    from conformance.golden.build import build
    from conformance.golden.load import default_folder

    folder = options.out or default_folder()
    try:
        manifest = build(folder)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror or error}") from None
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    print(f"{len(manifest['vectors'])} vectors, {size / 1e6:.2f} MB in {folder}")
    return 0


def fixtures_verify(options: argparse.Namespace) -> int:
    """Check the golden vectors; every problem is one line."""
    from conformance.golden.load import fixtures_folder
    from conformance.golden.verify import verify

    folder: Path = options.folder or fixtures_folder()
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder")
    problems = verify(folder, confirm=options.digits)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return int(ExitCode.NOT_CONFORMING)
    print("the golden vectors are as they should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
