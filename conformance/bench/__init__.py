"""Speed: how fast a candidate is, compared with what, and whether that can be believed."""
