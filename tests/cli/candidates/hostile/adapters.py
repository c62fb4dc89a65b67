"""Right, in a folder whose own tests and settings must not take part."""

from elsewhere import silu


def run_silu(in_features):
    return silu(in_features)
