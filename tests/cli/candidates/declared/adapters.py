"""A library that offers one component and says so."""

COMPONENTS = ["silu"]


def run_silu(in_features):
    return in_features * in_features.sigmoid()
