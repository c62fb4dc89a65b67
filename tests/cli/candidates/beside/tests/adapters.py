"""As in the course: tests/adapters.py, a helper beside it, the package beside tests."""

from importlib.metadata import version

from .common import widened

print("shapes", version("shapes"))


def run_silu(in_features):
    from shapes.functions import silu

    return silu(widened(in_features)).to(in_features.dtype)


def run_softmax(in_features, dim):
    from shapes.functions import softmax

    return softmax(in_features, dim)


def run_linear(d_in, d_out, weights, in_features):
    raise NotImplementedError


def run_rmsnorm(d_model, eps, weights, in_features):
    pass
