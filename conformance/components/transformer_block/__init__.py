"""A pre-norm transformer block: attention and feed-forward network on a residual stream."""
