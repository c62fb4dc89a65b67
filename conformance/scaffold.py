"""Files that a new user starts from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from conformance.errors import UsageError

ADAPTERS = "adapters.py"
CONFIGURATION = "conformance.toml"

_HEAD = '''"""Adapters: how the conformance suite reaches this implementation.

Fill in the functions you have; the others may stay as they are and count as not implemented.
Every argument is passed by keyword. `conformance grade .` grades this folder.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

'''

_TOML = """# Read by the conformance suite. Both entries are optional.

# The adapters module, relative to this file.
adapters = "adapters.py"

# Classes whose module form (constructor, parameters, state dict) is to be graded:
# [modules]
# RMSNorm = "mypackage.layers:RMSNorm"
"""


def write_skeleton(folder: Path) -> list[Path]:
    """Write an adapters skeleton and a `conformance.toml`; returns what was written.

    UsageError when one of them exists already or the folder cannot be written.
    """
    wanted = {folder / ADAPTERS: _HEAD + "\n\n".join(_functions()), folder / CONFIGURATION: _TOML}
    for path in wanted:
        if path.exists():
            raise UsageError(f"{path} exists already; nothing was written")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in wanted.items():
            path.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror or error}") from error
    return list(wanted)


def _functions() -> Iterator[str]:
    """The functions of the contract as they stand in `conformance/adapters.py`."""
    source = (Path(__file__).parent / "adapters.py").read_text("utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            text = ast.get_source_segment(source, node)
            assert text is not None
            yield text + "\n"
