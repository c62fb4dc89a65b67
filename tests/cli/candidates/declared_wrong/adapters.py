"""Declares a component that there is not."""

COMPONENTS = ["silu", "gelu"]


def run_silu(in_features):
    return in_features * in_features.sigmoid()
