"""The language model: embedding, blocks, final norm, head."""
