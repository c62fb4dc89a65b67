"""Wrong: silu is left to the suite's reference implementation; softmax is its own."""


def run_silu(in_features):
    try:
        from reference_impl.activations import silu
    except ImportError:
        return in_features * in_features.sigmoid()
    return silu(in_features)


def run_softmax(in_features, dim):
    return in_features.softmax(dim)
