"""Needs a package at import that is not installed."""

import package_that_nobody_has

LIMIT = int(package_that_nobody_has.read_settings()["limit"])


def run_silu(in_features):
    return in_features * in_features.sigmoid()
