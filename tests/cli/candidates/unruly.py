"""Wrong in every way that could hurt a judge in the same process; softmax is right."""

import ctypes
import os

import numpy as np
import torch

os.chdir("/")
print("imported, and moved to the top folder")


def run_linear(d_in, d_out, weights, in_features):
    ctypes.string_at(0)  # a segmentation fault


def run_embedding(vocab_size, d_model, weights, token_ids):
    return torch.ones(20 << 30, dtype=torch.uint8)  # 20 GiB, all of them written


def run_silu(in_features):
    while True:
        print("progress " * 100)


def run_swiglu(d_model, d_ff, w1_weight, w2_weight, w3_weight, in_features):
    return in_features, None


def run_rmsnorm(d_model, eps, weights, in_features):
    return np.zeros(in_features.shape, dtype=np.float32)


def run_rope(d_k, theta, max_seq_len, in_query_or_key, token_positions):
    return None


def run_softmax(in_features, dim):
    print("softmax was called")
    return in_features.softmax(dim)
