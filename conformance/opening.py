"""Finding and opening the candidate, before anything heavy is imported.

The candidate is found first. Then its folders are taken off the judge's `sys.path`, so that its
`numpy.py` or `tabulate.py` is not imported in place of the real one. Only then may come the rest.
"""

from __future__ import annotations

import site
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.candidate.resolve import Submission, resolve
from conformance.errors import UsageError
from conformance.options import GradeOptions
from conformance.report.stream import RESULTS_NAME

if TYPE_CHECKING:
    from conformance.candidate.inprocess import InProcess
    from conformance.candidate.process import Worker


def resolved(impl: str, cwd: Path) -> Submission:
    """The candidate of that name, path or folder; UsageError or LoadError."""
    try:
        return resolve(impl, cwd=cwd)
    except (OSError, ValueError) as error:  # a name that is too long, a folder that cannot be read
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"--impl={impl[:200]}: {reason}") from None


def forget_paths(root: Path) -> None:
    """Take the submission's folders off `sys.path`; the standard library and packages stay."""
    ours = Path(__file__).resolve().parents[1]
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    kept = [Path(sysconfig.get_path(name)).resolve() for name in names]
    kept += [Path(site.getusersitepackages()).resolve()] if site.ENABLE_USER_SITE else []
    for entry in list(sys.path):
        path = Path(entry or ".").resolve()
        if not path.is_relative_to(root) or path == ours:
            continue
        if not any(path.is_relative_to(folder) for folder in kept):
            sys.path.remove(entry)


def opened(options: GradeOptions, submission: Submission) -> Worker | InProcess:
    """Start the candidate's process, or import it here; returns while a process still imports.

    Raises UsageError, LoadError, or SandboxError where a sandbox is demanded and there is none.
    """
    sandbox = "require" if options.require_sandbox else options.sandbox
    if options.in_process and sandbox == "require":
        raise UsageError("--in-process has no sandbox; leave it out, or --require-sandbox")
    if options.in_process:
        from conformance.candidate.inprocess import InProcess

        return InProcess(submission, options.device, seed=options.seed)
    from conformance.candidate.limits import GIB, Limits
    from conformance.candidate.process import Worker

    limits = Limits(
        call_seconds=options.timeout,
        import_seconds=options.import_timeout,
        memory_bytes=int(options.memory * GIB),
        total_seconds=60.0 * options.stop_after,
    )
    worker = Worker(
        submission,
        python=options.python,
        device=options.device,
        limits=limits,
        seed=options.seed,
        sandbox=sandbox,
        hidden=_not_for_the_candidate(options, Path.cwd()),
    )
    worker.start()
    return worker


def _not_for_the_candidate(options: GradeOptions, cwd: Path) -> list[Path]:
    """Reports, which hold expected values, and secrets: they may lie in the submission's folder."""
    reports = {path.parent for path in cwd.glob(f"reports/**/{RESULTS_NAME}")}
    given = (options.report, options.config, options.hidden_seed_file)
    named = [Path(cwd, path) for path in given if path is not None and str(path) != "-"]
    return [path.resolve() for path in (*reports, *named)]
