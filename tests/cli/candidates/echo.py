"""Wrong: gives back what it got."""


def run_silu(in_features):
    return in_features.clone()
