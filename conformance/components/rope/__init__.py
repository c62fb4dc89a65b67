"""Rotary position embedding: neighbouring features are turned by angles that grow with position."""
