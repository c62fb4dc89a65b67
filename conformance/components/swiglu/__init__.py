"""SwiGLU: the gated feed-forward network with SiLU as its gate."""
