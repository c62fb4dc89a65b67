"""Softmax: numbers along one axis as probabilities."""
