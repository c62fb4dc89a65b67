"""pytest-benchmark creates its folder `.benchmarks` in every run, needed or not."""

from __future__ import annotations

from typing import Any

USED_BY = ("benchmark_save", "benchmark_autosave", "benchmark_compare")


def without_needless_folder(option: Any, folder: Any) -> None:
    """Point its storage at a folder that is there already, unless this run saves or compares."""
    if not hasattr(option, "benchmark_storage"):
        return
    if any(getattr(option, name, None) for name in USED_BY):
        return
    if option.benchmark_storage == "file://./.benchmarks":
        option.benchmark_storage = f"file://{folder}"
