"""Golden vectors: stored inputs, exact values and tolerances (`fixtures/`)."""
