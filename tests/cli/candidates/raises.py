"""Wrong: raises from code of its own."""


def _half(in_features):
    raise ValueError("the input has one axis too many")


def run_silu(in_features):
    return _half(in_features)
