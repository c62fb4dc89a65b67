"""An honest candidate."""

import torch


def run_rotation_matrix(angles):
    c, s = angles.cos(), angles.sin()
    return torch.stack((torch.stack((c, -s), -1), torch.stack((s, c), -1)), -2)


def run_softmax(in_features, dim):
    raise NotImplementedError
