"""GLU: one projection gates another through the logistic function."""
