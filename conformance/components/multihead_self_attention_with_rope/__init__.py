"""Causal multi-head self-attention with queries and keys rotated by their positions."""
