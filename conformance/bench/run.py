"""A whole benchmark of one candidate: both processes, the ceilings, every row, the sweeps.

`conformance bench` runs it from beginning to end; under pytest each row is one test, and the parts
are called one by one.
"""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance import SPEC_VERSION, __version__
from conformance.bench.ceilings import measure_ceiling
from conformance.bench.inputs import Pool
from conformance.bench.process import BenchWorker, Lost
from conformance.bench.profiles import PROFILES, Clock, row_effort
from conformance.bench.results import ABSENT, BenchResult, Row
from conformance.bench.rows import Bench, Component, Format, why_absent
from conformance.bench.scaling import sweep
from conformance.bench.workload import FORWARD, Workload, workload
from conformance.candidate.limits import GIB, Limits
from conformance.candidate.messages import Description
from conformance.candidate.resolve import OWN_PACKAGE, Submission, resolve
from conformance.errors import UsageError
from conformance.options import GradeOptions
from conformance.spec import component_names

GPU_DTYPES = ("float32", "tf32", "bfloat16", "float16")
CPU_DTYPES = ("float32",)
NO_GPU = "no GPU was asked for (--device cuda)"


@dataclass
class BenchRun:
    """One run; used as a context manager, which ends the processes."""

    options: GradeOptions
    submission: Submission
    bench: Bench
    clock: Clock
    result: BenchResult
    _components: dict[tuple[str, str], Component] = field(default_factory=dict)
    _reasons: dict[tuple[str, str], str] = field(default_factory=dict)
    _formats: dict[str, Format] = field(default_factory=dict)
    _rows_left: int = 0

    @classmethod
    def open(cls, options: GradeOptions, submission: Submission, cwd: Path) -> BenchRun:
        """Start both processes; returns while they import torch. UsageError or LoadError."""
        if options.in_process:
            raise UsageError("--in-process cannot be timed: leave it out")
        if options.gate:
            raise UsageError("--gate decides about a grade; benchmarks do not: leave it out")
        if options.device == "mps":
            raise UsageError("--device mps cannot be benchmarked yet; cpu and cuda can")
        limits = Limits(
            call_seconds=max(options.timeout, 30.0),
            import_seconds=options.import_timeout,
            memory_bytes=int(options.memory * GIB),
            total_seconds=60.0 * options.stop_after,
        )
        made = [
            BenchWorker(
                one,
                python=options.python,
                device=options.device,
                limits=limits,
                threads=options.threads,
                sandbox="require" if options.require_sandbox else options.sandbox,
            )
            for one in (submission, resolve(OWN_PACKAGE, cwd=cwd))
        ]
        bench = Bench(made[0], made[1], options.threads, options.device)
        run = cls(
            options,
            submission,
            bench,
            Clock(PROFILES[options.profile].total),
            BenchResult({}),
        )
        for worker in made:
            worker.start()
        return run

    def __enter__(self) -> BenchRun:
        return self

    def __exit__(self, *unused: object) -> None:
        self.bench.close()

    # -- the parts -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Wait for the imports and measure the ceilings. LoadError, UsageError."""
        description = self.bench.worker.describe()
        self.bench.clean.describe()
        self.result.header = self._header(description)
        profile = PROFILES[self.options.profile]
        try:
            for label in self.dtypes:
                ceiling = measure_ceiling(
                    self.bench.clean,
                    self._format(label).pool,
                    label,
                    seconds=profile.ceilings,
                    gpu=self.gpu,
                    tf32=label == "tf32",
                )
                self.bench.ceilings[label] = ceiling
                self.result.ceilings.append(ceiling.to_json())
        except Lost as lost:
            raise UsageError(f"the machine cannot be measured: {lost.message}") from None
        if not self.gpu:
            self.result.absent.append(("CUDA: eager, CUDA graphs, bf16, fp16, tf32", NO_GPU))
        self._rows_left = len(self.plan())

    @property
    def gpu(self) -> bool:
        """Whether a GPU is measured."""
        return self.options.device.startswith("cuda")

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The formats of this run; on a GPU float32 without and with shortened products."""
        if self.options.dtype:
            return self.options.dtype
        return GPU_DTYPES if self.gpu else CPU_DTYPES

    def selected(self) -> list[Workload]:
        """The components that were asked for, or that the adapters module declares, or all."""
        wanted = set(self.options.component or self.submission.declared or component_names())
        return [workload(name) for name in component_names() if name in wanted]

    def plan(self) -> list[tuple[str, str, str, bool]]:
        """(component, pass, dtype, graph) of every row, in order."""
        rows = []
        for one in self.selected():
            for dtype in self.dtypes:
                rows += [(one.component, which, dtype, False) for which in one.passes]
                rows += [(one.component, FORWARD, dtype, True)] if self.gpu else []
        return rows

    def measure(self, name: str, which: str, dtype: str, graph: bool) -> Row:
        """One row of the plan."""
        rows_left, self._rows_left = self._rows_left, max(0, self._rows_left - 1)
        row = Row(name, which, dtype, mode="cuda-graph" if graph else "eager")
        row.sizes = workload(name).gpu_sizes if self.gpu else workload(name).sizes
        row.reason = self._reason(name, dtype)
        if not row.reason and self.clock.over:
            row.reason = "the time of the run was over (--profile, --max-seconds)"
        if not row.reason:
            owner = self._component(name, dtype)
            profile = PROFILES[self.options.profile]
            passes = len(owner.passes)
            effort = row_effort(profile, self.clock, self.options.max_seconds, rows_left, passes)
            row = owner.measure(which, effort, graph=graph)
        self.result.rows.append(row)
        return row

    def _reason(self, name: str, dtype: str) -> str:
        """Why a component is not benchmarked in a format; asked once."""
        key = (name, dtype)
        if key not in self._reasons:
            reason = self._absent(name)
            self._reasons[key] = reason or self._component(name, dtype).check()
        return self._reasons[key]

    def _absent(self, name: str) -> str:
        key = (name, "")
        if key not in self._reasons:
            self._reasons[key] = why_absent(self.bench, name)
        return self._reasons[key]

    def _component(self, name: str, dtype: str) -> Component:
        key = (name, dtype)
        if key not in self._components:
            fmt = self._format(dtype)
            self._components[key] = Component(self.bench, workload(name), fmt, gpu=self.gpu)
        return self._components[key]

    def _format(self, label: str) -> Format:
        if label not in self._formats:
            self._formats[label] = Format(label, Pool.draw("float32" if label == "tf32" else label))
        return self._formats[label]

    def sweeps(self) -> Iterator[str]:
        """Measure every sweep of what could be measured; yields what comes next."""
        profile = PROFILES[self.options.profile]
        if not profile.scaling:
            self.result.absent.append(("scaling", f"not part of the profile {profile.name}"))
            return
        names = dict.fromkeys(r.component for r in self.result.rows if r.status != ABSENT)
        todo = [(name, axis) for name in names for axis in workload(name).axes]
        for index, (name, axis) in enumerate(todo):
            if self.clock.over:
                self.result.absent.append((f"scaling of {name} with {axis}", "the time was over"))
                continue
            yield f"{name} with {axis}"
            seconds = min(2.0, 0.6 * self.clock.left / (len(todo) - index))
            fmt = self._format(self.dtypes[0])
            self.result.sweeps.append(sweep(self.bench, workload(name), fmt, axis, seconds))

    def finish(self, complete: bool) -> BenchResult:
        """The result, with what a reader should know about what is missing."""
        for name in component_names():
            one = workload(name)
            if one.backward is None and one in self.selected():
                self.result.absent.append((f"{name}, backward", one.no_backward))
        self.result.complete = complete
        self.result.finished = _now()
        return self.result

    # -- what stands in the header ---------------------------------------------------------------

    def _header(self, description: Description) -> dict[str, Any]:
        options, submission = self.options, self.submission
        return {
            "suite_version": __version__,
            "spec_version": SPEC_VERSION,
            "candidate": {"name": submission.name, "module": submission.module},
            "command": options.command,
            "profile": options.profile,
            "device": options.device,
            "threads": options.threads,
            "dtypes": list(self.dtypes),
            "machine": {
                "torch": description.torch,
                "python": description.python,
                "platform": description.platform,
                "device_name": description.device_name,
                "processors": os.cpu_count(),
                "load_at_start": _load(),
                "judge_python": platform.python_version(),
                "settings": self._settings(),
            },
            "notices": list(description.notices),
            "isolation": list(description.isolation),
            "started": _now(),
        }

    def _settings(self) -> list[str]:
        told = [
            f"{self.options.threads} thread(s) for everyone",
            "garbage collector off while the clock runs",
            "forward: torch.no_grad(); forward+backward: every float argument is differentiated",
            "fresh random inputs for every sample, laid out beforehand",
            "adapter functions as the contract has them: constructing modules and copying weights "
            "is part of what is timed",
        ]
        if self.gpu:
            told += [
                "device events; the device's cache is emptied before each sample",
                "float32: tf32 off; tf32: on for matrix products and convolutions",
                "clocks of the device are left as they are",
            ]
        else:
            told += [
                "torch.compile is off (TORCHDYNAMO_DISABLE=1), as in grading",
                "the C library keeps freed memory (mallopt), where it is glibc",
            ]
        return told


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):
        return None


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
