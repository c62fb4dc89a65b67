"""Linear: a matrix product without a bias."""
