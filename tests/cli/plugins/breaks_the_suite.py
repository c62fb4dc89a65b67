"""A pytest plugin that puts a mistake into one check of the suite."""

from conformance.components.silu import test_silu as checks


def broken(grade):
    raise ZeroDivisionError("a mistake of ours")


broken.check = checks.test_definition.check
broken.__name__ = "test_definition"
checks.test_definition = broken
