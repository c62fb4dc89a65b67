"""Outputs from recorded results, for `conformance report`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.course.outputs import Outputs
from conformance.options import OPTIONS, WRITING, GradeOptions


def outputs_from(given: Mapping[str, Any], cwd: Path) -> Outputs:
    """What a command asks to be written, ready to be written. Raises UsageError."""
    wanted = {option.key: given.get(option.key) for option in OPTIONS if option.name in WRITING}
    outputs = Outputs.asked_for(wanted, cwd)
    outputs.settle(GradeOptions.parse("results", wanted))
    return outputs
