"""Conformance suite for the components of a decoder-only transformer."""

__version__ = "0.1.0"

SPEC_VERSION = "1.0"
"""Version of the requirements (the `spec.toml` files); changes when a verdict may change."""
