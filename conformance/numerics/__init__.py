"""Float formats, rounding models, differentiable arrays, tolerances and comparison (NumPy only)."""
