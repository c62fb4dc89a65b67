"""Hypothesis draws the same examples in every run of these tests."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("same-each-time", derandomize=True, database=None)
settings.load_profile("same-each-time")
