"""Inputs that were answered wrongly, as files: stored by a run, asked again by `replay`."""
