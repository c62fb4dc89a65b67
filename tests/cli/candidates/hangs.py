"""Wrong: silu never comes back; linear is right and graded all the same."""


def run_silu(in_features):
    while True:
        pass


def run_linear(d_in, d_out, weights, in_features):
    return in_features @ weights.T
