"""Right, but slow enough to be interrupted."""

import time


def run_linear(d_in, d_out, weights, in_features):
    time.sleep(0.25)
    return in_features @ weights.T


def run_silu(in_features):
    time.sleep(0.1)
    return in_features * in_features.sigmoid()
