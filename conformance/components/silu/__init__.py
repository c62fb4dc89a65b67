"""SiLU: each number times its logistic function."""
