"""A pre-norm transformer block: attention, then the feed-forward network, each on a residual path."""
