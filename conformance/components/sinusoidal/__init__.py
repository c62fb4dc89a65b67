"""Sinusoidal encoding: sines and cosines of the position, to be added to the embeddings."""
