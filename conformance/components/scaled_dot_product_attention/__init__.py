"""Scaled dot-product attention: weighted means of values, the weights from scores of keys."""
