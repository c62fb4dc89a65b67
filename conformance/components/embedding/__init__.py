"""Embedding: one row of a table per token id."""
