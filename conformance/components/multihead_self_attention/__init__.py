"""Causal multi-head self-attention without positions."""
