"""Wrong: pairs (i, i + d/2) are turned, as in other code bases, and not (2i, 2i + 1)."""

import torch


def run_rope(d_k, theta, max_seq_len, in_query_or_key, token_positions):
    half = d_k // 2
    frequencies = theta ** (-2 * torch.arange(half, dtype=torch.float32) / d_k)
    angles = token_positions[..., None].float() * frequencies
    cos, sin = angles.cos(), angles.sin()
    first, second = in_query_or_key[..., :half].float(), in_query_or_key[..., half:].float()
    turned = torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)
    return turned.to(in_query_or_key.dtype)
