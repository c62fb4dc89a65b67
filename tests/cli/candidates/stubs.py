"""Half done: silu and softmax are written, linear and rmsnorm are stubs."""

import torch


def run_linear(d_in, d_out, weights, in_features):
    raise NotImplementedError


def run_rmsnorm(d_model, eps, weights, in_features):
    raise NotImplementedError("next week")


def run_silu(in_features):
    return in_features * torch.sigmoid(in_features)


def run_softmax(in_features, dim):
    return in_features.softmax(dim)
