"""Build hook: a wheel carries the golden vectors; an editable install uses those of the checkout.

Included in an editable install, they would leave a folder `conformance` in site-packages that holds
nothing but a copy, and that a candidate could import.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class FixturesHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling's own parameter
    """Adds `fixtures/` to wheels as `conformance/fixtures/`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a build; `version` is "standard" or "editable"."""
        if version == "standard":
            build_data["force_include"]["fixtures"] = "conformance/fixtures"
