"""Small made-up runs for the tests of the reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.report import (
    Candidate,
    CheckRecord,
    Details,
    Diagnosis,
    Footer,
    Header,
    Results,
    ResultsWriter,
)


class Samples:
    """Builds headers, checks and whole results; every argument replaces one field."""

    def header(self, **fields: Any) -> Header:
        header = Header(
            suite_version="0.1.0",
            spec_version="1.0",
            fixtures_sha256="5f" * 32,
            candidate=Candidate(
                name="night-owl",
                path="/home/owl/assignment1",
                module="tests.adapters",
                how="folder with tests/adapters.py",
                ignored=("tests/conftest.py",),
            ),
            command="pytest --impl=.",
            seed=0,
            profile="standard",
            level="must",
            dtypes=("float32", "bfloat16"),
            device="cpu",
            selected=("rmsnorm", "rope"),
            complete_selection=True,
            deselected=0,
            collected=0,
            environment={"python": "3.11.7", "torch": "2.13.0+cpu", "threads": 2},
            isolation=("separate process", "memory limit 8 GiB"),
            notices=("stood in for the missing package wandb",),
            requirements=(),
            started="2026-11-30T00:01:02+00:00",
        )
        return replace(header, **fields)

    def check(self, id: str = "rmsnorm::definition[float32]", **fields: Any) -> CheckRecord:
        component, _, name = id.partition("::")
        requirement = f"{component}-{name.partition('[')[0]}".upper()
        check = CheckRecord(id, component, requirement, "MUST", "passed", seconds=0.01)
        return replace(check, **fields)

    def results(self, checks: Sequence[CheckRecord], **fields: Any) -> Results:
        """A whole run of these checks; `fields` are those of the header."""
        counts: dict[str, int] = {}
        for check in checks:
            counts[check.outcome] = counts.get(check.outcome, 0) + 1
        header = self.header(**{"collected": len(checks), **fields})
        footer = Footer(header.collected, len(checks), counts, "2026-11-30T00:01:09+00:00", False)
        return Results(header, tuple(checks), footer)

    def write(self, path: Path, results: Results) -> None:
        """The results as a file, through the writer."""
        with ResultsWriter(path) as writer:
            if results.header:
                writer.header(results.header)
            for check in results.checks:
                writer.check(check)
            if results.error:
                writer.error(results.error.message, results.error.exit_code)
            if results.footer:
                writer.footer(
                    finished=results.footer.finished, interrupted=results.footer.interrupted
                )

    def night(self) -> Results:
        """A typical evening: one mistake that is known, one exception, a remark, a stub."""
        details = Details(
            sentence="The eps that is given stands inside the root, added to the mean square.",
            formula="y = x / sqrt(mean(x^2) + eps) * g",
            source="Zhang and Sennrich 2019, eq. 4; course 3.5.1, eq. 4",
            case="tiny magnitudes",
            note="Values of the size of sqrt(eps): only here does the place of eps show.",
            dtype="float32",
            inputs="in_features = float32 (1, 2): [[0.001, -0.002]]\neps = 1e-05",
            expected="0.316227766 in row [0.316228, -0.632456]",
            got="0.629627 in row [0.629627, -1.25925]",
            where="index [0, 0]",
            error=0.3134,
            tolerance=1.2e-07,
            replay="pytest --impl=. -k 'rmsnorm and eps_inside_root and float32'",
            printed="eps is 1e-05\n",
        )
        wrong = self.check(
            "rmsnorm::eps_inside_root[float32]",
            requirement="RMSNORM-EPS",
            outcome="failed",
            message="the result is wrong in 2 of 2 entries; worst at [0, 0]: expected 0.3162278, "
            "got 0.629627, 2.61e+06 times the tolerance of 1.2e-07",
            diagnosis=Diagnosis(
                "eps-outside-root",
                "eps is added after the root, not before.",
                component="rmsnorm",
            ),
            margin=2.61e6,
            details=details,
        )
        raised = Details(
            sentence="Pair i is turned by position * theta^(-2i/d_k).",
            source="Su et al. 2021, eq. 15",
            case="positions as a vector",
            dtype="float32",
            inputs="in_query_or_key = float32 (1, 2, 4)\ntoken_positions = int64 (2,): [5, 0]",
            traceback='  File "model.py", line 12, in forward\n    b, h, s, d = x.shape\n'
            "ValueError: not enough values to unpack (expected 4, got 3)",
            replay="pytest --impl=. -k 'rope and definition'",
        )
        message = "ValueError: not enough values to unpack (expected 4, got 3)"
        checks = [
            self.check(margin=0.31),
            wrong,
            replace(
                wrong,
                id="rmsnorm::eps_inside_root[bfloat16]",
                message="the result is wrong in 2 of 2 entries; worst at [0, 1]",
                margin=41.0,
                details=replace(details, dtype="bfloat16"),
            ),
            self.check(
                "rmsnorm::weights_untouched[float32]",
                level="SHOULD",
                outcome="failed",
                message="the weights dictionary was changed",
            ),
            self.check("rmsnorm::all_zero_row[float32]", level="MAY", message="a zero row gives 0"),
            *(
                self.check(
                    f"rope::{name}[float32]", outcome="raised", message=message, details=raised
                )
                for name in ("definition", "norm_kept", "relative")
            ),
            self.check("rope::identity_at_zero[float32]", margin=0.9),
            self.check(
                "rope::strided[float32]", level="SHOULD", outcome="skipped", message="no cuda"
            ),
            *(
                self.check(
                    f"glu::{name}[float32]",
                    outcome="not implemented",
                    message="run_glu raises NotImplementedError",
                )
                for name in ("definition", "gradient")
            ),
        ]
        return self.results(checks, selected=("rmsnorm", "rope", "glu"))


@pytest.fixture(scope="session")
def samples() -> Samples:
    return Samples()
