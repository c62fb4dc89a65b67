"""Wrong: norms come after the residual sums, as in the first transformer, and not before."""

import torch


def _norm(x, gain):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * gain


def _turned(x, theta):
    length, width = x.shape[-2:]
    frequencies = theta ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * frequencies
    even, odd = x[..., 0::2], x[..., 1::2]
    pairs = (even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos())
    return torch.stack(pairs, dim=-1).flatten(-2)


def _attention(x, weights, heads, theta):
    *lead, length, _ = x.shape
    q, k, v = (
        (x @ weights[f"attn.{n}_proj.weight"].T).reshape(*lead, length, heads, -1).transpose(-3, -2)
        for n in "qkv"
    )
    scores = _turned(q, theta) @ _turned(k, theta).transpose(-2, -1) / q.shape[-1] ** 0.5
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    mixed = scores.masked_fill(later, -torch.inf).softmax(-1) @ v
    return mixed.transpose(-3, -2).flatten(-2) @ weights["attn.output_proj.weight"].T


def _feed_forward(x, weights):
    gate = x @ weights["ffn.w1.weight"].T
    return (gate * gate.sigmoid() * (x @ weights["ffn.w3.weight"].T)) @ weights["ffn.w2.weight"].T


def run_transformer_block(d_model, num_heads, d_ff, max_seq_len, theta, weights, in_features):
    x = _norm(
        in_features + _attention(in_features, weights, num_heads, theta), weights["ln1.weight"]
    )
    return _norm(x + _feed_forward(x, weights), weights["ln2.weight"])
